// What the data plane of one process is told: by the settings, and by the job that it has joined.
//
// Thread-safety: plain values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>

#include "links/acceptor.h"
#include "links/link.h"
#include "links/tcp.h"
#include "packets/hosts.h"
#include "policy/policy.h"
#include "transport/server_shares.h"
#include "transport/stall_times.h"
#include "transport/transport.h"

namespace mercury {

struct MercuryOptions {
  // From the settings:
  PolicyOptions policy;
  TcpOptions tcp;
  int lanes = 1;
  bool checksum = false;
  bool deterministic = false;
  bool elastic = false;         // the job goes on without workers that it loses
  bool servers_may_go = false;  // and without servers
  uint64_t server_bytes_max = 0;
  StallTimes stall;
  int64_t handshake_timeout_us = 10000000;
  size_t strangers_max = kStrangersMax;  // connections that have not proved themselves yet
  std::string token;
  int workers = 1;  // for which there are places
  int free = 0;     // of these, at first: the last ones
  ServerShares shares;
  TraceRing* trace = nullptr;          // null: nothing is traced
  DispatchNumbers* numbers = nullptr;  // null: operations are not numbered
  Stalled stalled;                     // null: nobody ends the job for that
  // From the job:
  JobIdentity job{};
  int rank = 0;
  uint8_t entry = 0;        // how many have had its place before
  bool late = false;        // it came while the job ran
  uint64_t generation = 1;  // of the roster, when it did
  int links_beside = 0;     // of other processes and lanes on this host, for each lane
  Hosts hosts;              // and who is on which

  DoorOptions door() const {
    return {token, job,           terms(),
            tcp,   strangers_max, std::min(handshake_timeout_us, int64_t{kDoorTimeoutMs} * 1000)};
  }
  // The number that a leader has as a server of its host's workers.
  uint32_t leader_number(int worker) const {
    return static_cast<uint32_t>(shares.servers() + worker);
  }
  // A process that hangs is noticed by its silence towards the scheduler first.
  LinkOptions link() const {
    const int64_t silence_us = int64_t{tcp.timeout_ms} * 1200;
    LinkOptions link{policy.packet_bytes, checksum, silence_us, trace};
    link.links_beside = links_beside;
    return link;
  }
  uint64_t packet_overhead() const { return kHeaderBytes + (checksum ? kChecksumBytes : 0); }
  // With this process's rank as server; a worker fills in which server it means.
  Terms terms() const {
    Terms t;
    t.job = JobNumber(job);
    t.worker = t.server = static_cast<uint32_t>(rank);
    t.workers = static_cast<uint32_t>(workers);
    t.servers = static_cast<uint32_t>(shares.servers());
    t.lanes = static_cast<uint16_t>(lanes);
    t.packet_bytes = policy.packet_bytes;
    t.unit_bytes = policy.unit_bytes;
    t.policy = static_cast<uint8_t>(policy.kind);
    t.checksum = checksum;
    t.entry = entry;
    t.generation = generation;
    return t;
  }
};

// What the data plane tells its node, on a lane's thread. `status` does not name the peer.
struct PlaneEvents {
  std::function<void()> ready;
  std::function<void(int peer, const Status& status)> lost;  // peer -1: this process itself
  std::function<void(int worker, const Status& status)> lost_beside;  // of the worker's own host
  // Of a server: that worker, the so many-th in its place, has done its work.
  std::function<void(int worker, uint8_t entry)> finished;
  // The same: a worker has let that one in.
  std::function<void(int worker, uint8_t entry)> let_in;
  std::function<void()> all_out;  // the same: no worker is in the job any more
  // The same: whether workers have left because the job has failed.
  std::function<void(bool have)> failed;
};

}  // namespace mercury
