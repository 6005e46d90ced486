// What MLfabric's nodes say to each other, as bytes: who they are, push requests, orders, news,
// what the server has applied, what the preceding bytes were.
//
// A letter is a kind, then the fields of that kind in the order of their structs: integers and
// doubles in eight bytes, enumerations and booleans in one, lists as a length in four bytes and
// their items, texts likewise. All is little-endian. A letter names neither sender nor receiver:
// the link it comes on tells. The first byte is the format's version.
//
// Thread-safety: pure functions. Invariants: Decode(Encode(x)) gives x; Decode accepts nothing that
// Encode cannot have made, no list of places that does not rise, no number that is not finite, and
// nothing longer than the limits below.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "fabric/live/askers.h"
#include "fabric/live/collector.h"
#include "fabric/live/model_daemon.h"
#include "fabric/live/orders.h"

namespace mercury::fabric {

constexpr uint8_t kLetterVersion = 7;
constexpr size_t kLetterBytesMax = 1 << 20;
constexpr uint32_t kListMost = 1 << 15;
constexpr uint32_t kLetterTextBytesMax = 1024;

// What a server does with updates before it adds them up. With Nesterov's momentum it does the same
// as with momentum, but workers get the model where its last step, once more, would take it.
struct Rule {
  double momentum = 0;
  bool nesterov = false;

  bool operator==(const Rule& other) const {
    return momentum == other.momentum && nesterov == other.nesterov;
  }
};

// Who joins: where it listens, what it was told of the job, and its model.
struct Joining {
  std::string host;
  int64_t port = 0;
  int64_t workers = 0;
  bool replica = false;   // there is one
  int64_t elements = 0;   // 0: a server or replica that gets the first values from worker 0
  int64_t checksum = 0;   // of the model's first values
  bool has_rule = false;  // a worker whose optimizer says what the server is to do
  Rule rule;
  double link_bit_per_s = 0;  // of its network card; 0: it does not know
  std::string told;  // settings on which all must agree, as control/shared_settings.h has them
};

// Where a node listens.
struct Seat {
  int node = 0;
  std::string host;
  int64_t port = 0;
  double link_bit_per_s = 0;  // 0: not known
};

// The job, as all nodes hear of it.
struct Roster {
  std::string identity;  // the job's
  int64_t delay_bound = 0;
  Staleness staleness;
  Rule rule;
  int64_t elements = 0;
  bool first_from_worker = false;  // worker 0 gives the model's first values
  std::vector<double> weights;     // of the workers' updates, by rank; perhaps none
  std::vector<Seat> seats;         // of all but the scheduler
};

// What the bytes of transfer `number` on this link were; without a number, nobody has come.
struct Waybill {
  int64_t number = 0;
  Goal goal = Goal::kServer;
  bool to_aggregator = false;
  std::vector<int64_t> places;
  std::vector<int64_t> skipped;
  int64_t version = 0;            // of a model
  int64_t place = 0;              // of a model: it is in it, and all before it
  std::vector<int64_t> progress;  // of a model for a replica: so many of each worker's are in it
  int64_t wish = 0;               // of a model or a sum for a worker: the wish that it grants
  std::vector<Onward> onward;     // and whom it is to pass it on to
};

// The way of `bytes` to those who have asked for them.
struct Tree {
  int64_t bytes = 0;
  std::vector<Edge> edges;
};

// Bits that have come from one node to another without a pause.
struct Carriage {
  int from = 0;
  int to = 0;
  double bits = 0;
  double start_s = 0;  // by the scheduler's clock
  double end_s = 0;
};

// A worker has been told how to send an update to the server.
struct Hearing {
  UpdateId update;
  double at_s = 0;  // by the scheduler's clock
};

struct Letter {
  enum class Kind : uint8_t {
    kRequest = 1,       // worker -> scheduler
    kOrder = 2,         // scheduler -> all
    kNews = 3,          // server, replica -> scheduler
    kConfirm = 4,       // server -> replica: it has applied these
    kJoin = 5,          // all -> scheduler
    kRoster = 6,        // scheduler -> all
    kReady = 7,         // all -> scheduler: all links are there
    kBegin = 8,         // scheduler -> all
    kTime = 9,          // all -> scheduler, and back
    kDelivered = 10,    // with the waybill: an update or a group is whole
    kAborted = 11,      // with the waybill's number: the rest will not come
    kGet = 12,          // worker -> server
    kModel = 13,        // with the waybill: a model, or the sum of an all-reduce, is whole
    kUnreachable = 14,  // all -> scheduler: the link to `node` is broken
    kServerIs = 15,     // scheduler -> all: `node` is the server from now on
    kCarried = 16,      // all -> scheduler
    kGot = 17,          // worker -> scheduler: it has the sum of an all-reduce
    kAsking = 18,       // server -> scheduler: a tree is wanted, for all that have an edge
    kTree = 19,         // scheduler -> server
    kHeard = 20,        // worker -> scheduler
  };
  Kind kind = Kind::kRequest;
  Request request;
  Order order;
  News news;
  double history_norm = 0;  // with news: of the model's last step
  std::vector<Placed> applied;
  Joining joining;
  Roster roster;
  int64_t asked_us = 0;     // kTime: by the one who asks
  int64_t answered_us = 0;  // kTime: by the scheduler; 0: asked
  Waybill waybill;
  Wish wish;  // kGet, kGot
  Tree tree;
  int node = 0;
  Carriage carriage;
  Hearing hearing;
};

std::string Encode(const Letter& letter);
Status Decode(std::string_view bytes, Letter* letter);

}  // namespace mercury::fabric
