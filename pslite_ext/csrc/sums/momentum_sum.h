// Updates that a server applies one after another with momentum, summed on the way.
//
// With momentum, an update u makes a step: step = momentum x step + u, then sum = sum + step. That
// is what a server does to its model (`sum` the weights, `step` their last change), and what an
// aggregator does to what it has gathered (both from zero). A group of k such updates therefore
// carries two sums and k, and is appended to a model, or to a group that comes before it, like
// this:
//
//   sum  += reach x step + group.sum        reach = momentum + ... + momentum^k
//   step  = carry x step + group.step       carry = momentum^k
//
// A single update is a group of one, whose two sums are the update itself. Without momentum there
// are no steps, and everything is one sum.
//
// Thread-safety: pure functions. Ownership: none; the runs must not overlap, except that a group's
// two sums may be the same. Elements are appended each by itself, so that a vector may be appended
// in runs, packet by packet, on any threads. Invariant: any grouping of a list of updates gives the
// model that applying them one by one gives, but for rounding.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mercury {

// How far k updates carry the step before them.
struct MomentumStride {
  double reach = 0;
  double carry = 0;
};

// `momentum` is at least 0 and below 1.
MomentumStride StrideOf(double momentum, int64_t updates);

// A run of elements of a model, or of what has been gathered; `step` is null without momentum.
template <typename T>
struct RunningSum {
  T* sum = nullptr;
  T* step = nullptr;
};

// The same run of a group that is appended; a single update is both.
template <typename T>
struct GroupSum {
  const T* sum = nullptr;
  const T* step = nullptr;
};

// For float and double.
template <typename T>
void Append(const MomentumStride& stride, const RunningSum<T>& into, const GroupSum<T>& group,
            size_t elements);

// The same, into other memory than what there was before, which stays as it is.
template <typename T>
void AppendTo(const RunningSum<T>& into, const MomentumStride& stride, const RunningSum<T>& before,
              const GroupSum<T>& group, size_t elements);

}  // namespace mercury
