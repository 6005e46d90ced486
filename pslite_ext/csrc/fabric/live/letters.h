// What MLfabric's nodes say to each other, as bytes: who they are, push requests, orders, news,
// what the server has applied, what the bytes that follow are.
//
// A letter is the format's version and the letter's number in a byte each, then its fields in the
// order of its struct, as base/fields.h has them. It names neither sender nor receiver: the link it
// comes on tells.
//
// Thread-safety: pure functions. Invariants: Decode(Encode(x)) gives x; Decode accepts nothing that
// Encode cannot have made, no list of places that does not rise, no number that is not finite, and
// nothing longer than the limits below.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/status.h"
#include "fabric/live/askers.h"
#include "fabric/live/collector.h"
#include "fabric/live/model_daemon.h"
#include "fabric/live/orders.h"

namespace mercury::fabric {

constexpr uint8_t kLetterVersion = 10;
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
  int64_t servers = 1;
  int64_t replicas = 0;
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
struct Attendance {
  std::string identity;  // the job's
  int64_t delay_bound = 0;
  Staleness staleness;
  Rule rule;
  int64_t elements = 0;
  bool first_from_worker = false;  // worker 0 gives the model's first values
  std::vector<double> weights;     // of the workers' updates, by rank; perhaps none
  int64_t codec = 0;               // as what updates travel: its number; 0: as they are
  std::vector<Seat> seats;         // of all but the scheduler
};

// The way of `bytes` to those who have asked for them.
struct Tree {
  int64_t bytes = 0;
  std::vector<Edge> edges;
  bool by_packets = false;  // each is passed on as it comes; else when all of it is there
  double share = 1;         // of the server's way out, that it takes
  double takes_s = 0;       // until it should have left the server
};

// Bits that have come from one node to another without a pause.
struct Carriage {
  int from = 0;
  int to = 0;
  double bits = 0;
  double start_s = 0;  // by the scheduler's clock
  double end_s = 0;
  bool passed_on = false;  // while they came: `from` may have waited for them
};

// A worker has been told how to send an update to the server.
struct Hearing {
  UpdateId update;
  double at_s = 0;  // by the scheduler's clock
};

struct ConfirmLetter {  // the server has applied these
  std::vector<Placed> applied;
};
struct ReadyLetter {};  // all links are there
struct BeginLetter {};
struct TimeLetter {
  int64_t asked_us = 0;     // by the one who asks
  int64_t answered_us = 0;  // by the scheduler; 0: asked
};
// What comes next as transfer `number` on this link: an update, a group, or what a chain has
// summed. Without a number, nobody comes.
struct UpdatesLetter {
  int64_t number = 0;
  bool two = false;  // vectors
  Goal goal = Goal::kServer;
  bool to_aggregator = false;
  bool chained = false;
  std::vector<int64_t> places;
  std::vector<int64_t> skipped;
};
struct AbortedLetter {  // the rest of the transfer will not come
  int64_t number = 0;
};
// Transfer `number` will be a model, or the sum of an all-reduce.
struct ModelLetter {
  int64_t number = 0;
  bool two = false;  // vectors
  int64_t version = 0;
  int64_t place = 0;              // it is in it, and all before it
  std::vector<int64_t> progress;  // for a replica: so many of each worker's are in it
  int64_t wish = 0;               // for a worker: the wish that it grants
  std::vector<Onward> onward;     // and who passes it on to whom
  bool by_packets = false;        // as Tree has it
};
struct GetLetter {
  Wish wish;
};
struct GotLetter {    // it has the sum of an all-reduce
  int64_t reign = 0;  // as Request has it
  Wish wish;
};
struct UnreachableLetter {  // the link to `node` is broken
  int node = 0;
};
struct GoneLetter {  // the scheduler has lost `node`
  int node = 0;
};
struct ServerIsLetter {  // `node` is the server from now on
  int node = 0;
};
struct AskingLetter {  // a tree is wanted, for all that have an edge
  Tree tree;
};

// To a server but the first: it is to send its stripe of that version, or sum, to `to`, as that
// letter says. It has applied, by then, exactly what the first server had.
struct StripeLetter {
  int to = 0;
  ModelLetter letter;
  bool reduce = false;
};

// The place in the list, from 1, is the letter's number on the wire.
using Letter = std::variant<Request, Order, News, ConfirmLetter, Joining, Attendance, ReadyLetter,
                            BeginLetter, TimeLetter, UpdatesLetter, AbortedLetter, GetLetter,
                            ModelLetter, UnreachableLetter, ServerIsLetter, Carriage, GotLetter,
                            AskingLetter, Tree, Hearing, StripeLetter, GoneLetter>;

// Who gets what; the time and broken transfers are every node's. The parts do not compile if they
// do not handle what they get, and refuse the rest.
template <typename L, typename... Ls>
constexpr bool kIsOneOf = (std::is_same_v<L, Ls> || ...);
template <typename L>  // who is there
constexpr bool kForNode = kIsOneOf<L, Joining, Attendance, ReadyLetter, BeginLetter, GoneLetter>;
template <typename L>
constexpr bool kForScheduler =
    kIsOneOf<L, Request, News, UnreachableLetter, Carriage, GotLetter, AskingLetter, Hearing>;
template <typename L>  // servers, the replica
constexpr bool kForModel = kIsOneOf<L, Order, News, ConfirmLetter, UpdatesLetter, ModelLetter,
                                    GetLetter, Tree, StripeLetter, ServerIsLetter>;
template <typename L>
constexpr bool kForWorker = kIsOneOf<L, Order, UpdatesLetter, ModelLetter, ServerIsLetter>;

std::string Encode(const Letter& letter);
Status Decode(std::string_view bytes, Letter* letter);

}  // namespace mercury::fabric
