// What a range of a tensor's elements looks like on the wire, and how it is added to a sum.
//
// A codec is a row of one table (codec.cc). It codes some elements together: a range that begins at
// a multiple of so many is coded without looking at what comes before it, so that slots and parts
// of slots can be sent and added each by itself. The plain codec of a type is its elements as they
// are; what servers send back is plain.
//
// Thread-safety: pure functions. Ownership: none; buffers need no alignment and must not overlap.
// Invariants: any bytes of the right length can be added; Elements(Bytes(n), n) is n.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/packet_alignment.h"
#include "sums/sum_kernels.h"

namespace mercury {

// Elements that are coded together: 64 bytes of them, as they are.
inline uint64_t CodedTogether(DType dtype) { return kPacketAlignment / ElementBytes(dtype); }

struct Codec {
  uint8_t number = 0;  // on the wire; a plain codec has its type's
  const char* name = "";
  DType dtype = DType::kFloat32;  // of the tensors that it is for
  bool plain = true;              // coded, an element is itself
  bool has_parameter = false;     // that who adds must know

  uint64_t together() const { return CodedTogether(dtype); }
  // Of a range that begins at a multiple of that.
  uint64_t (*bytes)(uint64_t elements) = nullptr;
  // Codes `values`; what is lost stays in `residual`. Null: coded elements are the values.
  void (*encode)(float parameter, const char* values, float* residual, uint64_t elements,
                 char* coded) = nullptr;
  // sum[i] += value of element i; into room, sum[i] = value.
  void (*add)(float parameter, const char* coded, uint64_t elements, char* sum,
              Into into) = nullptr;

  // How many elements, at most `most`, so many coded bytes are; false: no number of them.
  bool Elements(uint64_t coded_bytes, uint64_t most, uint64_t* elements) const;
};

// Null: there is none of that number or name.
const Codec* FindCodec(uint8_t number);
const Codec* FindCodec(std::string_view name);
// "1bit, 2bit": those that are not plain, by which users ask for them.
std::string CompressionNames();
// Of a type that ElementBytes knows.
const Codec& PlainCodec(DType dtype);

}  // namespace mercury
