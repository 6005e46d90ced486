#include "sums/momentum_sum.h"

#include <cmath>
#include <limits>
#include <vector>

#include "harness.h"

using namespace mercury;
using namespace mercury::testing;

namespace {

constexpr size_t kElements = 7;
using Vector = std::vector<float>;

// A model, or what an aggregator has gathered.
template <typename T>
struct Pair {
  std::vector<T> sum = std::vector<T>(kElements, 0);
  std::vector<T> step = std::vector<T>(kElements, 0);
  int64_t updates = 0;

  // Element by element in two runs, as packets come.
  void Take(double momentum, const std::vector<T>& group_sum, const std::vector<T>& group_step,
            int64_t count) {
    const MomentumStride stride = StrideOf(momentum, count);
    for (const auto& [first, end] : {std::pair<size_t, size_t>{0, 3}, {3, kElements}}) {
      Append<T>(stride, {&sum[first], momentum > 0 ? &step[first] : nullptr},
                {&group_sum[first], &group_step[first]}, end - first);
    }
    updates += count;
  }
};

Vector Draw(Random* random) {
  Vector drawn(kElements);
  for (float& value : drawn) value = random->Float(-1, 1);
  return drawn;
}

// The magnitude that rounding is relative to: the same sums of absolute values.
std::vector<double> Absolute(const Vector& values) {
  std::vector<double> absolute;
  for (const float value : values) absolute.push_back(std::abs(double{value}));
  return absolute;
}

void CheckNear(const std::vector<float>& got, const std::vector<double>& wanted,
               const std::vector<double>& magnitude, int64_t operations) {
  for (size_t i = 0; i < kElements; ++i) {
    const double allowed = static_cast<double>(operations) *
                           double{std::numeric_limits<float>::epsilon()} * magnitude[i];
    CHECK_TRUE(std::abs(double{got[i]} - wanted[i]) <= allowed);
  }
}

// Groups of updates, and groups that were appended to groups: (sum, step) of updates [first, end).
Pair<float> Gather(double momentum, const std::vector<Vector>& updates, size_t first, size_t end,
                   Random* random) {
  Pair<float> gathered;
  for (size_t at = first; at < end;) {
    const size_t length = 1 + random->Below(end - at);
    if (length == 1 || length == end - first) {
      gathered.Take(momentum, updates[at], updates[at], 1);
      ++at;
    } else {
      const Pair<float> inner = Gather(momentum, updates, at, at + length, random);
      gathered.Take(momentum, inner.sum, inner.step, inner.updates);
      at += length;
    }
  }
  return gathered;
}

}  // namespace

TEST(any_grouping_is_applied_as_one_by_one) {
  Random random;
  for (int round = 0; round < 1000; ++round) {
    const double momentum = random.OneIn(2) ? 0 : 0.9;
    const Vector weights = Draw(&random);
    const Vector step = Draw(&random);
    std::vector<Vector> updates;
    for (uint64_t left = 1 + random.Below(12); left > 0; --left) updates.push_back(Draw(&random));
    // What the paper says, in float64: w += u + momentum x (w - w_before).
    Pair<double> exact{{weights.begin(), weights.end()}, {step.begin(), step.end()}, 0};
    Pair<double> magnitude{Absolute(weights), Absolute(step), 0};
    Pair<float> one_by_one{weights, step, 0};
    for (const Vector& update : updates) {
      const std::vector<double> absolute = Absolute(update);
      for (size_t i = 0; i < kElements; ++i) {
        exact.step[i] = momentum * exact.step[i] + double{update[i]};
        exact.sum[i] += exact.step[i];
      }
      magnitude.Take(momentum, absolute, absolute, 1);
      one_by_one.Take(momentum, update, update, 1);
    }
    Pair<float> grouped{weights, step, 0};
    for (size_t at = 0; at < updates.size();) {
      const size_t length = 1 + random.Below(updates.size() - at);
      const Pair<float> group = Gather(momentum, updates, at, at + length, &random);
      CHECK_EQ(group.updates, length);
      grouped.Take(momentum, group.sum, group.step, group.updates);
      at += length;
    }
    const auto operations = static_cast<int64_t>(4 * updates.size() + 4);
    for (const Pair<float>* model : {&one_by_one, &grouped}) {
      CHECK_EQ(model->updates, updates.size());
      CheckNear(model->sum, exact.sum, magnitude.sum, operations);
      if (momentum > 0) CheckNear(model->step, exact.step, magnitude.step, operations);
    }
  }
}

TEST(another_order_is_another_model) {
  // Two updates in another order differ by momentum x (u1 - u2): order is not optional.
  const std::vector<double> first(kElements, 1);
  const std::vector<double> second(kElements, 3);
  Pair<double> in_order;
  in_order.Take(0.5, first, first, 1);
  in_order.Take(0.5, second, second, 1);
  Pair<double> swapped;
  swapped.Take(0.5, second, second, 1);
  swapped.Take(0.5, first, first, 1);
  for (size_t i = 0; i < kElements; ++i) {
    CHECK_EQ(in_order.sum[i] - swapped.sum[i], 0.5 * (1 - 3));
  }
}

TEST(strides) {
  const MomentumStride two = StrideOf(0.5, 2);
  CHECK_EQ(two.reach, 0.75);
  CHECK_EQ(two.carry, 0.25);
  CHECK_EQ(StrideOf(0.9, 0).reach, 0);
  CHECK_EQ(StrideOf(0.9, 0).carry, 1);
  CHECK_EQ(StrideOf(0, 5).reach, 0);
  CHECK_EQ(StrideOf(0, 5).carry, 0);
  CHECK_TRUE(std::abs(StrideOf(0.9, 1'000'000).reach - 9) < 1e-9);
}
