#include "sums/compress.h"

#include <array>
#include <cstring>

namespace mercury {
namespace {

// How one element is quantised: its code, and what each code stands for.
struct OneBit {
  static constexpr unsigned kBits = 1;
  float threshold;
  unsigned Code(float value) const { return value > threshold; }
  std::array<float, 2> Values() const { return {-1.0F, 1.0F}; }
};

struct TwoBit {
  static constexpr unsigned kBits = 2;
  float threshold;
  unsigned Code(float value) const {
    const unsigned plus = value >= threshold;
    const unsigned minus = value <= -threshold;
    return plus * 3 | (minus & ~plus) << 1;
  }
  // No Code is 1; from the network it may come, and counts as zero.
  std::array<float, 4> Values() const { return {0.0F, 0.0F, -threshold, threshold}; }
};

template <typename Quantiser>
uint8_t PackByte(const Quantiser& quantiser, const float* grad, float* residual, size_t count) {
  const auto values = quantiser.Values();
  unsigned byte = 0;
  for (size_t i = 0; i < count; ++i) {
    const float value = residual[i] + grad[i];
    const unsigned code = quantiser.Code(value);
    residual[i] = value - values[code];
    byte |= code << (i * Quantiser::kBits);
  }
  return static_cast<uint8_t>(byte);
}

template <typename Quantiser>
void PackEach(const Quantiser& quantiser, const float* grad, float* residual, size_t elements,
              uint8_t* packed) {
  constexpr size_t kPerByte = 8 / Quantiser::kBits;
  const size_t whole = elements / kPerByte;
  for (size_t i = 0; i < whole; ++i) {
    packed[i] = PackByte(quantiser, grad + i * kPerByte, residual + i * kPerByte, kPerByte);
  }
  if (elements % kPerByte == 0) return;
  const size_t first = whole * kPerByte;
  packed[whole] = PackByte(quantiser, grad + first, residual + first, elements % kPerByte);
}

// Through memcpy: the sum may lie in a received message, at any address.
template <bool kAssign>
void Put(float* at, float value) {
  if (!kAssign) {
    float sum;
    std::memcpy(&sum, at, sizeof(sum));
    value += sum;
  }
  std::memcpy(at, &value, sizeof(value));
}

template <bool kAssign, typename Quantiser>
void Unpack(const Quantiser& quantiser, const uint8_t* packed, size_t elements, float* sum) {
  constexpr size_t kPerByte = 8 / Quantiser::kBits;
  constexpr unsigned kMask = (1U << Quantiser::kBits) - 1;
  const auto values = quantiser.Values();
  const size_t whole = elements / kPerByte;
  for (size_t i = 0; i < whole; ++i) {
    for (size_t j = 0; j < kPerByte; ++j) {
      Put<kAssign>(sum + i * kPerByte + j, values[packed[i] >> (j * Quantiser::kBits) & kMask]);
    }
  }
  for (size_t i = whole * kPerByte; i < elements; ++i) {
    const size_t shift = i % kPerByte * Quantiser::kBits;
    Put<kAssign>(sum + i, values[packed[whole] >> shift & kMask]);
  }
}

template <typename Quantiser>
void Unpack(const Quantiser& quantiser, const uint8_t* packed, size_t elements, float* sum,
            Into into) {
  if (into == Into::kRoom) {
    Unpack<true>(quantiser, packed, elements, sum);
  } else {
    Unpack<false>(quantiser, packed, elements, sum);
  }
}

}  // namespace

size_t CompressedBytes(Compression kind, size_t elements) {
  switch (kind) {
    case Compression::kNone:
      return elements * sizeof(float);
    case Compression::kOneBit:
      return elements / 8 + (elements % 8 != 0);
    case Compression::kTwoBit:
      return elements / 4 + (elements % 4 != 0);
  }
  return 0;
}

void Compress(Compression kind, float threshold, const float* grad, float* residual,
              size_t elements, uint8_t* packed) {
  switch (kind) {
    case Compression::kNone:
      if (elements != 0) std::memcpy(packed, grad, elements * sizeof(float));
      return;
    case Compression::kOneBit:
      return PackEach(OneBit{threshold}, grad, residual, elements, packed);
    case Compression::kTwoBit:
      return PackEach(TwoBit{threshold}, grad, residual, elements, packed);
  }
}

void Decompress(Compression kind, float threshold, const uint8_t* packed, size_t elements,
                float* sum, Into into) {
  switch (kind) {
    case Compression::kNone:
      for (size_t i = 0; i < elements; ++i) {
        float value;
        std::memcpy(&value, packed + i * sizeof(float), sizeof(value));
        if (into == Into::kRoom) {
          Put<true>(sum + i, value);
        } else {
          Put<false>(sum + i, value);
        }
      }
      return;
    case Compression::kOneBit:
      return Unpack(OneBit{threshold}, packed, elements, sum, into);
    case Compression::kTwoBit:
      return Unpack(TwoBit{threshold}, packed, elements, sum, into);
  }
}

}  // namespace mercury
