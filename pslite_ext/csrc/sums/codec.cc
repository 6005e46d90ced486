#include "sums/codec.h"

#include <cstring>
#include <iterator>

#include "sums/block_int8.h"
#include "sums/compress.h"
#include "sums/half_kernels.h"

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

template <DType kHalf>
void EncodeHalf(float /*parameter*/, const char* values, float* /*residual*/, uint64_t elements,
                char* coded) {
  Narrow(kHalf, values, elements, coded);
}

template <DType kHalf>
void AddHalf(float /*parameter*/, const char* coded, uint64_t elements, char* sum, Into into) {
  AddWidened(kHalf, coded, elements, sum, into);
}

void EncodeBlocks(float /*parameter*/, const char* values, float* /*residual*/, uint64_t elements,
                  char* coded) {
  QuantiseBlocks(values, elements, coded);
}

void AddInt8(float /*parameter*/, const char* coded, uint64_t elements, char* sum, Into into) {
  AddBlocks(coded, elements, sum, into);
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
constexpr Codec Plain(const char* name, uint64_t element_bytes) {
  Codec codec;
  codec.number = static_cast<uint8_t>(kType);
  codec.name = name;
  codec.dtype = codec.sum = kType;
  codec.together = kPacketAlignment / element_bytes;
  codec.bytes = PlainBytes<kType>;
  codec.add = AddPlain<kType>;
  return codec;
}

template <DType kHalf>
constexpr Codec PlainHalf(const char* name) {
  Codec codec = Plain<kHalf>(name, 2);
  codec.sum = DType::kFloat32;
  codec.encode = EncodeHalf<kHalf>;
  codec.add = AddHalf<kHalf>;
  return codec;
}

constexpr Codec Coded(uint8_t number, const char* name, uint64_t together) {
  Codec codec;
  codec.number = number;
  codec.name = name;
  codec.plain = false;
  codec.together = together;
  return codec;
}

template <DType kHalf>
constexpr Codec Halved(uint8_t number, const char* name) {
  Codec codec = Coded(number, name, kPacketAlignment / 2);
  codec.bytes = PlainBytes<kHalf>;
  codec.encode = EncodeHalf<kHalf>;
  codec.add = AddHalf<kHalf>;
  return codec;
}

constexpr Codec Blocks(uint8_t number, const char* name) {
  Codec codec = Coded(number, name, kBlockElements);
  codec.bytes = BlockBytes;
  codec.encode = EncodeBlocks;
  codec.add = AddInt8;
  return codec;
}

template <Compression kKind>
constexpr Codec Packed(uint8_t number, const char* name, bool has_parameter) {
  Codec codec = Coded(number, name, kPacketAlignment / sizeof(float));
  codec.back = false;
  codec.has_parameter = has_parameter;
  codec.has_residual = true;
  codec.bytes = PackedBytes<kKind>;
  codec.encode = Pack<kKind>;
  codec.add = AddPacked<kKind>;
  return codec;
}

// Numbers below 32 are those of types. A row more is all that a new one takes.
constexpr Codec kCodecs[] = {
    Plain<DType::kFloat32>("float32", 4),
    Plain<DType::kFloat64>("float64", 8),
    PlainHalf<DType::kFloat16>("float16"),
    PlainHalf<DType::kBfloat16>("bfloat16"),
    Plain<DType::kUint8>("uint8", 1),
    Plain<DType::kInt8>("int8", 1),
    Plain<DType::kInt32>("int32", 4),
    Plain<DType::kInt64>("int64", 8),
    Packed<Compression::kOneBit>(32, "1bit", false),
    Packed<Compression::kTwoBit>(33, "2bit", true),
    Halved<DType::kBfloat16>(34, "bf16"),
    Halved<DType::kFloat16>(35, "fp16"),
    Blocks(36, "int8"),
};

// Of those that are not plain.
std::string NamesAfter(std::string names, bool both_ways) {
  for (const Codec& codec : kCodecs) {
    if (codec.plain || (both_ways && !codec.back)) continue;
    names += (names.empty() ? "" : ", ") + std::string(codec.name);
  }
  return names;
}

}  // namespace

bool Codec::Elements(uint64_t coded_bytes, uint64_t most, uint64_t* elements) const {
  *elements = most;
  if (bytes(most) == coded_bytes) return true;
  *elements = coded_bytes / bytes(together) * together;
  return *elements < most && bytes(*elements) == coded_bytes;
}

const Codec* FindCodec(uint8_t number) {
  for (const Codec& codec : kCodecs) {
    if (codec.number == number) return &codec;
  }
  return nullptr;
}

const Codec* FindCompression(std::string_view name) {
  for (const Codec& codec : kCodecs) {
    if (!codec.plain && codec.name == name) return &codec;
  }
  return nullptr;
}

std::string CompressionNames() { return NamesAfter("", false); }

std::string WireNames() { return NamesAfter(Name(DType::kFloat32), true); }

const Codec& PlainCodec(DType dtype) {
  const Codec* codec = FindCodec(static_cast<uint8_t>(dtype));
  return codec != nullptr && codec->plain ? *codec : kCodecs[0];
}

}  // namespace mercury
