// What Prophet did in each iteration, for the trace: how its figures have changed.
//
// Thread-safety: none; no I/O. Invariant: every iteration is told once, in order.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "policy/prophet/block_record.h"
#include "policy/prophet/prophet_profile.h"

namespace mercury {

class ProphetNotes {
 public:
  // Takes an iteration, the first being 0, and the trace's note of it.
  using Write = std::function<void(int64_t iteration, std::string note)>;

  explicit ProphetNotes(Write write) : write_(std::move(write)) {}

  // Whether an iteration has ended that Tell has not told of.
  bool Behind(const ProphetFigures& profile) const {
    return write_ != nullptr && profile.iterations != profile_.iterations;
  }
  void Tell(const ProphetFigures& profile, const BlockFigures& blocks);

 private:
  const Write write_;
  ProphetFigures profile_;  // when it told last
  BlockFigures blocks_;
};

}  // namespace mercury
