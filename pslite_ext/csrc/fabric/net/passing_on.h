// What passes through a worker of a chain: packets come, its own update is added to them, and they
// go on while the rest still comes.
//
//   told (kPassOn), nothing comes yet ->|
//                                       |-> both: packets come and go -> End
//   announced, nobody has told yet ---->|   or what comes is broken: the chain ends here
//
// What comes is known by its places: those of the hop that passes it on, but the last, which is the
// worker's own. What nobody was told to pass on is let go of once something with later places was
// told: it is of a plan that was given up.
//
// Thread-safety: none; the lane owns it. Invariants: each element is added to once; what has been
// given out is not written again.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "fabric/live/orders.h"
#include "fabric/net/inflow.h"
#include "fabric/net/spare_vectors.h"

namespace mercury::fabric {

constexpr size_t kUntoldMost = 16;  // of which nobody has told yet

class PassingOn {
 public:
  PassingOn(double momentum, SpareVectors spares)
      : momentum_(momentum), spares_(std::move(spares)) {}

  // What comes for `hop` is passed on as that, with `own` added.
  void Told(int64_t number, const Hop& hop, std::shared_ptr<const Vector> own, const Codec* codec);
  // A transfer for one of its hops, sooner or later.
  void Comes(Goal goal, std::vector<int64_t> places, std::shared_ptr<const Inflow> inflow);

  // Of what nobody has told: what is of places before `place`, or broken.
  void Drop(Goal goal, int64_t place);
  void DropBroken();

  // Adds what has come; how many bytes of the hop are there.
  size_t Advance(int64_t number);
  bool Knows(int64_t number) const { return told_.count(number) != 0; }
  bool whole(int64_t number) const;
  // So many elements of what goes on are there.
  size_t there(int64_t number) const { return told_.at(number).added; }
  Cargo CargoOf(int64_t number) const { return told_.at(number).cargo; }
  // What comes for these hops is broken.
  std::vector<int64_t> Broken() const;
  std::vector<int64_t> numbers() const;
  void End(int64_t number) { told_.erase(number); }

 private:
  struct Passing {
    Goal goal = Goal::kServer;
    std::vector<int64_t> before;
    std::shared_ptr<const Vector> own;
    const Codec* codec = nullptr;
    bool two_sums = false;
    std::shared_ptr<const Inflow> inflow;
    std::shared_ptr<Vector> step;  // one's own, where what comes has none
    size_t added = 0;              // elements
    Cargo cargo;
  };
  struct Untold {
    Goal goal = Goal::kServer;
    std::vector<int64_t> places;
    std::shared_ptr<const Inflow> inflow;
  };
  void Join(Passing* passing, std::shared_ptr<const Inflow> inflow);

  const double momentum_;
  const SpareVectors spares_;
  std::map<int64_t, Passing> told_;  // by the hop's number
  std::list<Untold> untold_;
};

}  // namespace mercury::fabric
