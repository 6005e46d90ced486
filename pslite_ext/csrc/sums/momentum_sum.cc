#include "sums/momentum_sum.h"

namespace mercury {

MomentumStride StrideOf(double momentum, int64_t updates) {
  MomentumStride stride{0, 1};
  for (int64_t i = 0; i < updates; ++i) {
    stride.carry *= momentum;
    stride.reach += stride.carry;
    if (stride.carry == 0) break;
  }
  return stride;
}

template <typename T>
void Append(const MomentumStride& stride, const RunningSum<T>& into, const GroupSum<T>& group,
            size_t elements) {
  if (into.step == nullptr) {
    for (size_t i = 0; i < elements; ++i) into.sum[i] += group.sum[i];
    return;
  }
  const T reach = static_cast<T>(stride.reach);
  const T carry = static_cast<T>(stride.carry);
  for (size_t i = 0; i < elements; ++i) {
    const T before = into.step[i];
    into.sum[i] += reach * before + group.sum[i];
    into.step[i] = carry * before + group.step[i];
  }
}

template <typename T>
void AppendTo(const RunningSum<T>& into, const MomentumStride& stride, const RunningSum<T>& before,
              const GroupSum<T>& group, size_t elements) {
  if (into.step == nullptr) {
    for (size_t i = 0; i < elements; ++i) into.sum[i] = before.sum[i] + group.sum[i];
    return;
  }
  const T reach = static_cast<T>(stride.reach);
  const T carry = static_cast<T>(stride.carry);
  for (size_t i = 0; i < elements; ++i) {
    const T step = before.step[i];
    into.sum[i] = before.sum[i] + (reach * step + group.sum[i]);
    into.step[i] = carry * step + group.step[i];
  }
}

template void AppendTo(const RunningSum<float>&, const MomentumStride&, const RunningSum<float>&,
                       const GroupSum<float>&, size_t);
template void AppendTo(const RunningSum<double>&, const MomentumStride&, const RunningSum<double>&,
                       const GroupSum<double>&, size_t);
template void Append(const MomentumStride&, const RunningSum<float>&, const GroupSum<float>&,
                     size_t);
template void Append(const MomentumStride&, const RunningSum<double>&, const GroupSum<double>&,
                     size_t);

}  // namespace mercury
