// What a tensor's number on a link stands for: which tensor, and how it is coded.
//
//   0  8  key                      24  4  the codec's parameter
//   8  8  elements                 28  4  workers that a copy stands for
//  16  1  type                     32  8  elements of a row; 0: whole arrays
//  17  1  codec                    40     name
//  18  1  1: asynchronous
//  19  1  0
//  20  4  index
//
// Thread-safety: a plain value, pure functions. Invariant: Decode(Encode(x)) == x; Decode accepts
// nothing that Encode cannot have made, nor a codec that is not the type's.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "links/wire.h"
#include "sums/codec.h"
#include "transport/tensor.h"

namespace mercury {

constexpr size_t kTensorNameBytesMax = 512;

struct Declaration {
  uint64_t key = 0;
  uint64_t elements = 0;
  DType dtype = DType::kFloat32;
  uint32_t index = 0;  // of the parameter, in traces
  uint8_t codec = 0;   // its number
  float parameter = 0;
  bool asynchronous = false;  // what comes is added to the value at once
  uint32_t workers = 1;       // that a copy by this number stands for
  uint64_t row_elements = 0;  // > 0: sets of rows (sums/sparse_sum.h)
  std::string name;

  uint64_t bytes() const { return elements * ElementBytes(dtype); }
};

std::string Encode(const Declaration& declaration);
Status Decode(const char* bytes, size_t size, Declaration* declaration);

// The offset of a packet of rows: byte `at` of the set of rows of slot number `slot`.
struct RowPlace {
  uint64_t slot = 0;
  uint64_t at = 0;
};
constexpr int kRowPlaceBits = 40;
inline uint64_t OffsetOf(const RowPlace& place) { return place.slot << kRowPlaceBits | place.at; }
inline RowPlace RowPlaceOf(uint64_t offset) {
  return {offset >> kRowPlaceBits, offset & ((uint64_t{1} << kRowPlaceBits) - 1)};
}

}  // namespace mercury
