// What a range of a tensor's elements looks like on the wire, how it is added to a sum, and how the
// sum is sent back.
//
// A codec is a row of one table (codec.cc). It codes some elements together: a range that begins at
// a multiple of so many is coded without looking at what comes before it, so that slots and parts
// of slots can be sent and added each by itself. The plain codec of a type is its elements as they
// are. Sums of 16-bit floats are made in float32, and rounded once, when they are sent.
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

struct Codec {
  uint8_t number = 0;  // on the wire; a plain codec has its type's
  const char* name = "";
  DType dtype = DType::kFloat32;  // of the tensors that it is for
  DType sum = DType::kFloat32;    // of what it is added to
  bool plain = true;              // coded, an element is itself
  bool back = true;               // sums go back so, too; else plain
  bool has_parameter = false;     // that who adds must know
  bool has_residual = false;      // what is lost goes with the next gradient
  uint64_t together = 0;          // elements that are coded together

  // Of a range that begins at a multiple of that.
  uint64_t (*bytes)(uint64_t elements) = nullptr;
  // Codes `values`, which are of the sum's type; what is lost stays in `residual`. Null: there is
  // nothing to do.
  void (*encode)(float parameter, const char* values, float* residual, uint64_t elements,
                 char* coded) = nullptr;
  // sum[i] += value of element i; into room, sum[i] = value.
  void (*add)(float parameter, const char* coded, uint64_t elements, char* sum,
              Into into) = nullptr;

  // Whether coded elements may become the sum without being copied.
  bool is_sum() const { return plain && sum == dtype; }
  // As what its sums go back.
  const Codec& sent_back() const;
  // How many elements, at most `most`, so many coded bytes are; false: no number of them.
  bool Elements(uint64_t coded_bytes, uint64_t most, uint64_t* elements) const;
  // As many as fit into so many bytes, but those that are coded together at least.
  uint64_t MostIn(uint64_t coded_bytes) const {
    const uint64_t groups = coded_bytes / bytes(together);
    return groups < 1 ? together : groups * together;
  }
};

// How some elements are coded.
struct Coded {
  const Codec* codec = nullptr;
  float parameter = 0;
};

// Null: there is none of that number.
const Codec* FindCodec(uint8_t number);
// Those that are not plain, by which users ask for them. Null: there is none of that name.
const Codec* FindCompression(std::string_view name);
// "1bit, 2bit, ..."
std::string CompressionNames();
// "float32, bf16, ...": as what whole gradients can travel, both ways.
std::string WireNames();
// Of a type that ElementBytes knows.
const Codec& PlainCodec(DType dtype);
// As what sums of it are kept.
inline const Codec& SumCodec(const Codec& codec) { return PlainCodec(codec.sum); }
inline const Codec& Codec::sent_back() const { return back ? *this : PlainCodec(dtype); }

}  // namespace mercury
