// A worker's daemon: it sends this worker's updates when and where it is told to, and acts as the
// aggregator of a group if it is told to.
//
//   update:  kept --kSend, kPassOn--> under way --over--> kept --kForget--> gone
//   group:   kGather --> gathering --whole--> under way --over--> gone
//               what comes for it before waits; what belongs to an older batch is discarded
//
// What a worker of a chain passes on begins as its own update does, but goes only as far as what
// comes along the chain is there: the caller says how far (`Reach`), and if the rest will not come
// (`Break`).
//
// There is one batch at a time, and at most one group for each goal. A newer group, or a newer hop
// of the same update for the same goal, replaces the older one: it was planned again.
//
// Thread-safety: none, one owner; `now_s` is passed in, by the scheduler's clock. Ownership: bytes
// are the caller's, who knows them by its own numbers (`memory`), by the update, or by the hop with
// which a group goes on. Invariants: each memory that arrives for a group is added or discarded,
// once; members are added in the order of their places; a group goes on once or, if none of its
// members came, is reported to its goal as empty.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "fabric/live/courier.h"
#include "fabric/live/group_order.h"
#include "fabric/live/orders.h"

namespace mercury::fabric {

// What the caller has to do.
struct Step {
  enum Kind {
    kAdd,           // `memory` to the group that goes on as `hop`; then it is free
    kDiscard,       // `memory` is of no use
    kDiscardGroup,  // nor is what was gathered for `hop`
    kAbort,         // `hop` will not be sent to its end
    kEmpty,         // tell `to` that none of `skipped` comes
    kForget,        // `update` is free
    kPassOn,        // add `update` to what comes for `hop`, and say how far that is
  };
  Kind kind = kAdd;
  int64_t memory = 0;
  int64_t hop = 0;
  Goal goal = Goal::kServer;
  int to = kServerNode;  // `goal`
  std::vector<int64_t> skipped;
  UpdateId update;
};
using Steps = std::vector<Step>;

// What a hop has brought to its receiver.
struct Parcel {
  Hop hop;
  std::vector<int64_t> places;   // of who is in it
  std::vector<int64_t> skipped;  // members of the group that did not come
};

class WorkerDaemon {
 public:
  // An update of this worker's is in memory.
  void Keep(UpdateId update, int64_t bytes) { kept_[update] = bytes; }
  // kSend, kPassOn, kGather, kSkip, kForget; others are nothing to it.
  Steps Obey(const Order& order, double now_s);
  // A member of a group has come whole.
  Steps Arrive(Goal goal, int64_t place, int64_t bytes, int64_t memory, double now_s);

  // As the courier's: what may be sent now, and when to ask again.
  std::vector<Allowance> Due(double now_s) const { return courier_.Due(now_s); }
  double WakeAt(double now_s, const Courier::NextOf& next = nullptr) const {
    return courier_.WakeAt(now_s, next);
  }
  const Hop* Find(int64_t hop) const { return courier_.Find(hop); }
  // So many bytes of what is passed on as `hop` are there.
  void Reach(int64_t hop, int64_t bytes) { courier_.Reach(hop, bytes); }
  // The rest of it will not come.
  Steps Break(int64_t hop);
  // What a hop that may be sent brings to its receiver.
  Parcel What(int64_t hop) const;
  // So much of a hop has been sent. Whether that was all.
  bool Sent(int64_t hop, int64_t bytes);

 private:
  struct GroupMember {
    int64_t bytes = 0;
    int64_t memory = 0;
  };
  struct Group {
    explicit Group(const std::vector<int64_t>& places) : order(places) {}
    int64_t hop = 0;
    GroupOrder order;
    std::map<int64_t, GroupMember> waiting;  // by place: here, but not their turn
    int64_t largest = 0;
    bool on_its_way = false;
  };
  void Send(const Hop& hop, bool passes_on, double now_s, Steps* steps);
  void Begin(const Hop& hop, double now_s, Steps* steps);
  void Skip(const Order& order, double now_s, Steps* steps);
  void Forget(UpdateId update, Steps* steps);
  void Take(Group* group, int64_t place, const GroupMember& member, double now_s, Steps* steps);
  void Add(Group* group, const std::vector<int64_t>& places, double now_s, Steps* steps);
  void Abort(int64_t hop, Steps* steps);

  Courier courier_;
  std::map<UpdateId, int64_t> kept_;                    // bytes
  std::map<std::pair<Goal, UpdateId>, int64_t> sends_;  // hops of this worker's own updates
  std::map<Goal, Group> groups_;
  std::map<Goal, int64_t> told_;  // the last place of any group
  std::map<std::pair<Goal, int64_t>, GroupMember>
      early_;  // by place: nobody has told of their group
};

}  // namespace mercury::fabric
