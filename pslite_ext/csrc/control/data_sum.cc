#include "control/data_sum.h"

#include <utility>

#include "base/crc32c.h"
#include "base/little_endian.h"

namespace mercury {
namespace {

// An array's deleter: it holds what the array is of.
struct Shared {
  std::shared_ptr<void> keep;
  std::shared_ptr<SumOnce> sum;
  void operator()(char* /*data*/) const {}
};

uint32_t SumOfFrame(const ps::SArray<char>& frame) {
  const auto* shared = std::get_deleter<Shared>(frame.ptr());
  if (shared != nullptr && shared->sum) return shared->sum->Of(frame.data(), frame.size());
  return Crc32c(0, frame.data(), frame.size());
}

}  // namespace

void DataSum::Add(uint32_t frame) {
  uint8_t bytes[sizeof(frame)];
  Store<uint32_t>(bytes, frame);
  value_ = Crc32c(value_, bytes, sizeof(bytes));
}

ps::SArray<char> Share(char* data, size_t bytes, std::shared_ptr<void> keep,
                       std::shared_ptr<SumOnce> sum) {
  ps::SArray<char> array;
  array.reset(data, bytes, Shared{std::move(keep), std::move(sum)});
  return array;
}

uint32_t SumOf(const std::vector<ps::SArray<char>>& frames) {
  DataSum sum;
  for (const ps::SArray<char>& frame : frames) sum.Add(SumOfFrame(frame));
  return sum.value();
}

}  // namespace mercury
