// The checksum of a message's data: a CRC-32C over the CRC-32C of each frame, so that the sum of a
// frame that many messages share is worked out once.
//
// Thread-safety: SumOf from any thread; a DataSum belongs to one. Ownership: an array that Share
// made keeps `keep`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/sum_once.h"
#include "ps/sarray.h"

namespace mercury {

class DataSum {
 public:
  void Add(uint32_t frame);
  uint32_t value() const { return value_; }

 private:
  uint32_t value_ = 0;
};

// Memory of ours as ps-lite's arrays have it. `sum`: that of these bytes, which do not change while
// it is there; null: nobody remembers it.
ps::SArray<char> Share(char* data, size_t bytes, std::shared_ptr<void> keep,
                       std::shared_ptr<SumOnce> sum);

uint32_t SumOf(const std::vector<ps::SArray<char>>& frames);

}  // namespace mercury
