#include "sums/codec.h"

#include <cstring>
#include <iterator>

#include "sums/compress.h"

namespace mercury {
namespace {

template <DType kType>
uint64_t PlainBytes(uint64_t elements) {
  return elements * ElementBytes(kType);
}

template <DType kType>
void AddPlain(float /*parameter*/, const char* coded, uint64_t elements, char* sum, Into into) {
  const uint64_t bytes = PlainBytes<kType>(elements);
  if (into == Into::kSum) return Add(kType, sum, coded, bytes);
  if (bytes != 0) std::memcpy(sum, coded, bytes);
}

template <Compression kKind>
uint64_t PackedBytes(uint64_t elements) {
  return CompressedBytes(kKind, elements);
}

template <Compression kKind>
void Pack(float threshold, const char* values, float* residual, uint64_t elements, char* coded) {
  Compress(kKind, threshold, reinterpret_cast<const float*>(values), residual, elements,
           reinterpret_cast<uint8_t*>(coded));
}

template <Compression kKind>
void AddPacked(float threshold, const char* coded, uint64_t elements, char* sum, Into into) {
  Decompress(kKind, threshold, reinterpret_cast<const uint8_t*>(coded), elements,
             reinterpret_cast<float*>(sum), into);
}

template <DType kType>
constexpr Codec Plain(const char* name) {
  return {static_cast<uint8_t>(kType), name,    kType,          true, false,
          PlainBytes<kType>,           nullptr, AddPlain<kType>};
}

template <Compression kKind>
constexpr Codec Packed(uint8_t number, const char* name, bool has_parameter) {
  return {
      number,          name, DType::kFloat32, false, has_parameter, PackedBytes<kKind>, Pack<kKind>,
      AddPacked<kKind>};
}

// Numbers below 32 are those of types. A row more is all that a new one takes.
constexpr Codec kCodecs[] = {
    Plain<DType::kFloat32>("float32"),
    Plain<DType::kFloat64>("float64"),
    Plain<DType::kFloat16>("float16"),
    Plain<DType::kBfloat16>("bfloat16"),
    Plain<DType::kUint8>("uint8"),
    Plain<DType::kInt8>("int8"),
    Plain<DType::kInt32>("int32"),
    Plain<DType::kInt64>("int64"),
    Packed<Compression::kOneBit>(32, "1bit", false),
    Packed<Compression::kTwoBit>(33, "2bit", true),
};

}  // namespace

bool Codec::Elements(uint64_t coded_bytes, uint64_t most, uint64_t* elements) const {
  *elements = most;
  if (bytes(most) == coded_bytes) return true;
  *elements = coded_bytes / bytes(together()) * together();
  return *elements < most && bytes(*elements) == coded_bytes;
}

const Codec* FindCodec(uint8_t number) {
  for (const Codec& codec : kCodecs) {
    if (codec.number == number) return &codec;
  }
  return nullptr;
}

const Codec* FindCodec(std::string_view name) {
  for (const Codec& codec : kCodecs) {
    if (codec.name == name) return &codec;
  }
  return nullptr;
}

std::string CompressionNames() {
  std::string names;
  for (const Codec& codec : kCodecs) {
    if (!codec.plain) names += (names.empty() ? "" : ", ") + std::string(codec.name);
  }
  return names;
}

const Codec& PlainCodec(DType dtype) {
  const Codec* codec = FindCodec(static_cast<uint8_t>(dtype));
  return codec != nullptr ? *codec : kCodecs[0];
}

}  // namespace mercury
