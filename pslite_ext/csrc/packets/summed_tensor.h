// What an aggregator knows of a tensor, of one of its slots, of a worker, and of a link to it.
//
// Thread-safety: none; an aggregator owns them, and locks.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "packets/aggregator.h"
#include "packets/declaration.h"
#include "packets/levels.h"
#include "packets/resumption.h"
#include "packets/row_sum.h"
#include "packets/slot_progress.h"
#include "packets/slot_sum.h"

namespace mercury {

inline Status Corrupt(const Declaration& declared, const std::string& what) {
  return Status::Corrupt("tensor '" + declared.name + "': " + what);
}

// A part of a worker's copy that has come, and is still to be added.
struct Aggregator::Arrived {
  Coded coded;
  int worker = 0;
  uint32_t at = 0, count = 0;
  Block block;
  bool whole = false;  // with it, the copy is
  int workers = 1;     // that the copy stands for
};

struct Aggregator::Slot {
  SlotSum sum;
  const Codec* back = nullptr;  // of the sum under way, when it is sent
  std::vector<Arrived> arrived;
  bool adds = false;             // a lane has taken the sum, and adds what arrives
  std::unique_ptr<RowSum> rows;  // instead, where rows are summed
  int begun = 0, complete = 0;   // workers whose copies are, by those that stand for them
  int out = 0;                   // of the complete ones, those of workers that have gone since
  int workers = 0;               // whose copies the value is the sum of; 0: it is no sum
  uint32_t answerable = 0;       // elements of the sum under way that all copies have
  uint8_t round = 0;             // rounds that are done, modulo 256
  std::vector<int> waiting;      // workers that fetch what is not there yet
  int in = 0;                    // workers whose copies have come
  bool in_from_afar = false;     // of another host's
  int64_t came_us = 0;           // when the latest did
  int64_t summed_us = 0;         // when the sum before was made; 0: there was none
  int giver = -1;                // whose first value is under way; -1: nobody's
  uint32_t given = 0;            // elements of it
  bool is_first = false;         // the value is a first value, no sum
  bool fetched = false;          // and has been: who has fetched it can give it
};

struct Aggregator::SummedTensor {
  Declaration declared;  // by the first worker
  int first_worker = 0;
  Share share;
  uint64_t unit_slots = 1;
  std::vector<Slot> slots;
  SlotProgress progress;
  Levels levels{0};
  std::vector<Resumption> resumptions;  // by slot; empty: it has always been summed here
  std::vector<uint32_t> unit_ready;     // complete slots, by unit
  std::vector<uint32_t> unit_sent;      // by worker: bytes of the unit under way
  std::vector<int64_t> number_of;       // each worker's, the last; -1: it has not declared it
  int32_t priority = 0;
  uint64_t kept = 0;  // of Aggregator::kept_
  Status failed;

  // Of a host's sums:
  std::shared_ptr<Operation> own;  // the leader's copy; null: it is not there
  uint8_t own_round = 0;
  uint64_t to_give = 0;          // slots whose sums have not come back
  std::vector<Share> on_server;  // by server; none of those on this host
  std::vector<uint64_t> ready;   // by server: slots from its first on that can go on

  bool rows() const { return declared.row_elements != 0; }
  const Codec& plain() const { return PlainCodec(declared.dtype); }
};

// What a worker calls by a number.
struct Aggregator::Named {
  SummedTensor* tensor = nullptr;
  Coded coded;
  int workers = 1;  // that a copy stands for
};

// What the leader's streams are still to be told.
struct Aggregator::HostNews {
  uint64_t key = 0;
  int server = 0;
  uint64_t slots = 0;
  uint8_t round = 0;
  Status failed;
};

// A sum, or a part of one, that waits to be sent to a worker.
struct Aggregator::Ready {
  SummedTensor* tensor = nullptr;
  uint64_t mine = 0;
  Block sum;
  const Codec* codec = nullptr;  // of the sum; null: rows
  uint64_t sent = 0;             // elements, or bytes of rows
  uint8_t round = 0;
  int workers = 0;       // that it is the sum of; 0: it is no sum
  bool fetched = false;  // asked for, not the answer to a copy
  uint64_t bytes = 0;    // of rows
  int lane = -1;         // that has begun to send it; -1: none has
};

struct Aggregator::Peer {
  explicit Peer(size_t levels_max) : ready(levels_max) {}
  std::vector<Named> tensors;   // by number
  uint64_t slots = 0;           // of all of them
  std::deque<OutPacket> first;  // goes out before any sum
  UrgencyQueue<Ready> ready;
  SummedTensor* sends = nullptr;  // of which its last data was
  uint64_t packet_bytes = 0;
  std::vector<double> rates;  // of its links, in bytes a second
  int goodbyes = 0;
  bool departed = false;
  bool out = false;     // and the job does without it
  bool is_new = false;  // the same: as yet
};

// The packet that a link is receiving.
struct Aggregator::Receiving {
  std::string text;
  Named named;
  uint64_t mine = 0;
  uint32_t at = 0, count = 0;  // elements, or bytes of rows
  Block block;                 // where it comes to lie
};

}  // namespace mercury
