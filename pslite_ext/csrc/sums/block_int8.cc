// Plain loops over whole blocks, which the compiler vectorises for each instruction set. A block
// that is not full goes through a padded one.
#include "sums/block_int8.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "sums/instruction_sets.h"

namespace mercury {
namespace {

// At any address.
typedef float Unaligned __attribute__((aligned(1), may_alias));
const Unaligned* Floats(const char* at) { return reinterpret_cast<const Unaligned*>(at); }
Unaligned* Floats(char* at) { return reinterpret_cast<Unaligned*>(at); }
const int8_t* Bytes(const char* at) { return reinterpret_cast<const int8_t*>(at); }
int8_t* Bytes(char* at) { return reinterpret_cast<int8_t*>(at); }

constexpr uint16_t kScaleNan = 0x7fc0;
constexpr float kMost = 127.0F;

// Adding this leaves a number's whole part in the lowest bits, rounded to nearest even.
constexpr float kRounder = 0x1.8p23F;

// The scale of a block by the bits of its largest magnitude.
MERCURY_INLINE uint16_t ScaleOf(int32_t largest) {
  if (largest >= 0x7f800000) return kScaleNan;
  float magnitude;
  std::memcpy(&magnitude, &largest, sizeof(magnitude));
  const float scale = magnitude / kMost;
  uint32_t bits;
  std::memcpy(&bits, &scale, sizeof(bits));
  return static_cast<uint16_t>((bits + 0xffff) >> 16);
}

MERCURY_INLINE float ScaleValue(uint16_t scale) {
  const uint32_t bits = uint32_t{scale} << 16;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// A whole block; `q` are its bytes. Its scale.
MERCURY_INLINE uint16_t Quantise(const Unaligned* values, int8_t* q) {
  float block[kBlockElements];
  int32_t whole[kBlockElements];
  std::memcpy(block, values, sizeof(block));
  std::memcpy(whole, values, sizeof(whole));
  int32_t largest = 0;
  for (const int32_t bits : whole) largest = std::max(largest, bits & 0x7fffffff);
  const uint16_t scale = ScaleOf(largest);
  if (scale == 0 || scale == kScaleNan) {
    std::memset(q, 0, kBlockElements);
    return scale;
  }
  const float by = ScaleValue(scale);
  // As the scale has been rounded up, nothing rounds to more than 127.
  for (float& value : block) value = value / by + kRounder;
  std::memcpy(whole, block, sizeof(whole));
  for (uint64_t i = 0; i < kBlockElements; ++i) q[i] = static_cast<int8_t>(whole[i]);
  return scale;
}

MERCURY_INLINE void QuantiseAll(const char* values, uint64_t elements, char* blocks) {
  for (; elements >= kBlockElements; elements -= kBlockElements) {
    const uint16_t scale = Quantise(Floats(values), Bytes(blocks));
    std::memcpy(blocks + kBlockElements, &scale, sizeof(scale));
    values += kBlockElements * sizeof(float);
    blocks += kBlockElements + kBlockScaleBytes;
  }
  if (elements == 0) return;
  char padded[kBlockElements * sizeof(float)] = {};
  char q[kBlockElements];
  std::memcpy(padded, values, elements * sizeof(float));
  const uint16_t scale = Quantise(Floats(padded), Bytes(q));
  std::memcpy(blocks, q, elements);
  std::memcpy(blocks + elements, &scale, sizeof(scale));
}

template <Into kInto>
MERCURY_INLINE void AddBlock(const int8_t* q, uint16_t scale, Unaligned* sum) {
  const float by = ScaleValue(scale);
  for (uint64_t i = 0; i < kBlockElements; ++i) {
    const float value = static_cast<float>(q[i]) * by;
    sum[i] = kInto == Into::kSum ? sum[i] + value : value;
  }
}

template <Into kInto>
MERCURY_INLINE void AddAll(const char* blocks, uint64_t elements, char* sum) {
  uint16_t scale;
  for (; elements >= kBlockElements; elements -= kBlockElements) {
    std::memcpy(&scale, blocks + kBlockElements, sizeof(scale));
    AddBlock<kInto>(Bytes(blocks), scale, Floats(sum));
    blocks += kBlockElements + kBlockScaleBytes;
    sum += kBlockElements * sizeof(float);
  }
  if (elements == 0) return;
  char q[kBlockElements] = {};
  char padded[kBlockElements * sizeof(float)] = {};
  std::memcpy(&scale, blocks + elements, sizeof(scale));
  std::memcpy(q, blocks, elements);
  std::memcpy(padded, sum, elements * sizeof(float));
  AddBlock<kInto>(Bytes(q), scale, Floats(padded));
  std::memcpy(sum, padded, elements * sizeof(float));
}

using BlockKernel = void (*)(const char* from, uint64_t elements, char* to);

struct BlockKernels {
  const char* name;
  BlockKernel quantise, add, assign;
};

#define MERCURY_BLOCK_KERNEL(name, attribute, ...)                     \
  attribute void name(const char* from, uint64_t elements, char* to) { \
    __VA_ARGS__(from, elements, to);                                   \
  }
#define MERCURY_BLOCK_KERNELS(set, attribute)                         \
  MERCURY_BLOCK_KERNEL(set##BlocksQuantise, attribute, QuantiseAll)   \
  MERCURY_BLOCK_KERNEL(set##BlocksAdd, attribute, AddAll<Into::kSum>) \
  MERCURY_BLOCK_KERNEL(set##BlocksAssign, attribute, AddAll<Into::kRoom>)

MERCURY_BLOCK_KERNELS(Plain, )
constexpr BlockKernels kPlainBlocks = {"plain", PlainBlocksQuantise, PlainBlocksAdd,
                                       PlainBlocksAssign};

#if defined(__x86_64__)
MERCURY_BLOCK_KERNELS(Avx2, MERCURY_AVX2)
MERCURY_BLOCK_KERNELS(Avx512, MERCURY_AVX512)
constexpr std::array<BlockKernels, 3> kBlocksBySet = {
    {{"avx512", Avx512BlocksQuantise, Avx512BlocksAdd, Avx512BlocksAssign},
     {"avx2", Avx2BlocksQuantise, Avx2BlocksAdd, Avx2BlocksAssign},
     kPlainBlocks}};
#else
constexpr std::array<BlockKernels, 1> kBlocksBySet = {{kPlainBlocks}};
#endif

void RunBlocks(const BlockKernels& kernels, const char* blocks, uint64_t elements, char* sum,
               Into into) {
  (into == Into::kSum ? kernels.add : kernels.assign)(blocks, elements, sum);
}

}  // namespace

void QuantiseBlocks(const char* values, uint64_t elements, char* blocks) {
  BestKernels<kBlocksBySet>().quantise(values, elements, blocks);
}

void AddBlocks(const char* blocks, uint64_t elements, char* sum, Into into) {
  RunBlocks(BestKernels<kBlocksBySet>(), blocks, elements, sum, into);
}

bool QuantiseBlocksWith(std::string_view instruction_set, const char* values, uint64_t elements,
                        char* blocks) {
  const BlockKernels* kernels = KernelsFor(kBlocksBySet, instruction_set);
  if (kernels != nullptr) kernels->quantise(values, elements, blocks);
  return kernels != nullptr;
}

bool AddBlocksWith(std::string_view instruction_set, const char* blocks, uint64_t elements,
                   char* sum, Into into) {
  const BlockKernels* kernels = KernelsFor(kBlocksBySet, instruction_set);
  if (kernels != nullptr) RunBlocks(*kernels, blocks, elements, sum, into);
  return kernels != nullptr;
}

}  // namespace mercury
