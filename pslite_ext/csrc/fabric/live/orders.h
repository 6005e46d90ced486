// What the scheduler tells the daemons, and how a plan becomes orders.
//
// A plan has indices; daemons know nodes, places and times. Each hop of a plan becomes one order to
// its sender, and each group one to its aggregator.
//
// Thread-safety: plain values and pure functions. Invariants: only its sender is told of a hop; a
// group's members have the places of the plan's order; times are by the scheduler's clock.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fabric/batch.h"
#include "fabric/live/node_numbers.h"
#include "fabric/live/update_id.h"

namespace mercury::fabric {

// Whom an update is for.
enum class Goal { kServer, kReplica };

// One transfer: an update from its worker, or a group from its aggregator.
struct Hop {
  Goal goal = Goal::kServer;
  int from = 0;
  int to = 0;             // an aggregator's worker, or the goal, or on the way to the server the
                          // replica, which keeps a copy and passes it on
  bool gathered = false;  // `from` is the aggregator that sums `places`
  bool to_aggregator = false;
  bool two_sums = false;        // momentum weighs the members of groups
  bool chained = false;         // of a chain (chains.h): what comes of `places` but the last, with
                                // `update` added, packet by packet; `from` is the last one's worker
  std::vector<int64_t> places;  // rising
  UpdateId update;              // of a hop from a worker, its own
  int64_t bytes = 0;
  double start_s = 0;  // not sooner
  double end_s = 0;    // as planned
  std::vector<RateSpan> pieces;
};

// What became of an update; its worker hears of it once.
enum class Fate {
  kCommitted,
  kTooOld,     // no place in the batch would have been fresh enough
  kOvertaken,  // the server would have waited for it
  kLate,       // planned several times, and it never came in time
  kOrphaned,   // computed from a version that was lost with a server
  kLost,       // committed by a server that died before its replica had it
};

struct Order {
  enum Kind {
    kExpect,    // to the server: `updates` come, in this order; `place` is held, unless it is 0
    kSend,      // to a worker: `hop`
    kGather,    // to an aggregator: sum `hop.places`, then send them on as `hop` says
    kPassOn,    // to a worker of a chain but the first: `hop`
    kSkip,      // to an aggregator: these places will not come, for `hop.goal`
    kVoid,      // to the server: these places will not come; `even_arrived`: nor be applied. To the
                // replica: they need not be passed on
    kRelease,   // to the server: what is held up to `place` may be applied
    kSnapshot,  // to the server: send the replica `hop.to` the whole model; it follows from now on
    kTakeOver,  // to the replica: be the server; `updates` is the order as far as it is known
    kReport,    // to a worker: `fate` of `update`
    kForget,    // to a worker: nobody will ask for `update` any more
    kFail,      // the job cannot go on, for what `text` says (base/status.h)
  };
  Kind kind = kFail;
  int node = kServerNode;
  std::vector<Placed> updates;
  std::vector<int64_t> places;
  int64_t place = 0;
  bool even_arrived = false;
  Hop hop;
  UpdateId update;
  Fate fate = Fate::kCommitted;
  std::string text;
};
using Orders = std::vector<Order>;

Order MakeOrder(Order::Kind kind, int node);
Fate FateOf(DropReason reason);
// "committed", "too_old" ...
const char* FateName(Fate fate);

// Whose hops are laid out: those of one goal.
struct Route {
  Goal goal = Goal::kServer;
  int node = kServerNode;        // of the goal
  std::vector<int> aggregators;  // nodes, as the batch has them
  std::vector<Placed> updates;   // by the index that the plan's transfers use
  double now_s = 0;              // when the plan was made
  bool two_sums = false;         // as Hop has it
  int relay = kReplicaNode;      // the replica, if chains come to the server through it
};

// Of those that are told to somebody: the replica needs no order to pass on.
std::vector<Hop> HopsOf(const std::vector<Transfer>& transfers, const Route& route);
// Whether it goes to the server through the replica.
bool IsRelayed(const Hop& hop);
// As orders: kGather and kPassOn, before kSend.
void Tell(const std::vector<Hop>& hops, Orders* orders);

}  // namespace mercury::fabric
