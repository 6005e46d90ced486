// The daemon of a node that holds the model: the server, or its replica until that takes over.
//
// It takes what arrives, decides what is applied (commit_order.h), and reports what became of it:
// the server to the scheduler and to the replica, the replica to the scheduler.
//
//   server:   orders and arrivals -> apply, commit, void, held          (to the scheduler)
//                                 -> what was applied, in order         (to the replica)
//   replica:  arrivals, and what the server has applied -> has, applied (to the scheduler)
//             the whole model -> caught up; kTakeOver -> took over, and it is a server
//
// Thread-safety: none, one owner; no clock. Ownership: bytes are the caller's, who knows them by
// `memory`. Steps are carried out in order, so a reported norm of the model's last step is that of
// the model at that moment. Invariants: those of CommitOrder; each memory is applied or discarded,
// once; until it takes over, a replica applies only what the server has told it; each held group is
// reported once.
#pragma once

#include <cstdint>
#include <vector>

#include "base/node_name.h"
#include "base/status.h"
#include "fabric/live/commit_order.h"
#include "fabric/live/orders.h"

namespace mercury::fabric {

// What the scheduler hears. The numbers are those of the collector's functions.
struct News {
  enum Kind {
    kCommitted,       // `places` are applied; `version` then
    kVoided,          // `places` never will be
    kHeld,            // `places` are next, have come, and are held
    kReplicaHas,      // a group of `places` has come
    kReplicaApplied,  // `places` are applied; to be said with `history_norm`
    kCaughtUp,        // the whole model has come, up to `place`; with `history_norm`, too
    kTookOver,        // it is the server, at `version`
  };
  Kind kind = kCommitted;
  std::vector<int64_t> places;
  int64_t place = 0;
  int64_t version = 0;
  double history_norm = 0;  // of the model's last step; the caller knows it
};

// What the caller has to do.
struct ModelStep {
  enum Kind {
    kApply,    // append `memory`, which holds so many `updates`, to the model, or to the sum of an
               // all-reduce; then it is free
    kDiscard,  // `memory` is of no use
    kTell,     // say `news` to the scheduler
    kConfirm,  // tell those who follow that the server has applied `updates`
    kSendModel,  // send the replica `to` the model: `version`, all up to `place`
  };
  Kind kind = kApply;
  int64_t memory = 0;
  std::vector<Placed> updates;
  int64_t version = 0;
  int64_t versions = 0;  // with kApply: as Applied has them
  bool first = true;
  int64_t place = 0;
  int to = kReplicaNode;
  News news;
};
using ModelSteps = std::vector<ModelStep>;

class ModelDaemon {
 public:
  // `confirm`: a server that others follow: a replica, which is not told of all-reduces, or servers
  // of other parts of the model.
  ModelDaemon(Role role, int64_t delay_bound, bool confirm)
      : role_(role),
        confirm_(confirm),
        delay_bound_(delay_bound),
        order_(0, role == Role::kServer ? delay_bound : mercury::kNever) {}

  // kExpect, kVoid, kRelease, kSnapshot; to a replica, kTakeOver. An error: the scheduler asks for
  // what must not be; nothing has happened.
  Status Obey(const Order& order, ModelSteps* steps);
  // An update or a group has come whole.
  ModelSteps Arrive(const std::vector<int64_t>& places, const std::vector<int64_t>& skipped,
                    int64_t memory);
  // To a replica: the server has applied these.
  Status Confirmed(const std::vector<Placed>& updates, ModelSteps* steps);
  // To a replica: its model is now the server's of `version`, all up to `place`.
  ModelSteps TakeModel(int64_t version, int64_t place);
  // To a server: nobody follows any more, until it is told to send a model.
  void FollowersLost() { confirm_ = false; }

  Role role() const { return role_; }
  int64_t version() const { return order_.version(); }
  bool Awaits(int worker) const { return order_.Awaits(worker); }
  bool Possible(int64_t place) const { return order_.Possible(place); }

 private:
  void Advance(ModelSteps* steps);
  void SayApplied(std::vector<Placed> updates, int64_t version, ModelSteps* steps);
  Status TakeOver(const Order& order, ModelSteps* steps);

  Role role_;
  bool confirm_;
  const int64_t delay_bound_;
  CommitOrder order_;
  std::vector<int64_t> said_held_;
};

}  // namespace mercury::fabric
