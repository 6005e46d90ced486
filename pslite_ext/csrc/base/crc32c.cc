#include "base/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

// Bits are reversed throughout: the lowest bit of a word is the highest power of x. A "state" is
// what Crc32c's functions get and give, inverted.

namespace mercury {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;  // Castagnoli's, bits reversed

constexpr uint32_t TimesX(uint32_t a) { return (a >> 1) ^ ((a & 1) != 0 ? kPolynomial : 0); }

// Eight bytes at a time, each looked up for where it stands: kTables[k][b] is the state that byte b
// leads to when k more bytes, all 0, have followed.
using Tables = std::array<std::array<uint32_t, 256>, 8>;

constexpr Tables MakeTables() {
  Tables tables{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = TimesX(crc);
    tables[0][i] = crc;
  }
  for (size_t k = 1; k < tables.size(); ++k) {
    for (size_t i = 0; i < 256; ++i) {
      tables[k][i] = (tables[k - 1][i] >> 8) ^ tables[0][tables[k - 1][i] & 0xff];
    }
  }
  return tables;
}
constexpr Tables kTables = MakeTables();

uint32_t ByTables(uint32_t crc, const void* data, size_t bytes) {
  const auto* at = static_cast<const uint8_t*>(data);
  uint32_t state = ~crc;
  for (; bytes >= 8; bytes -= 8, at += 8) {
    for (size_t i = 0; i < 4; ++i) state ^= uint32_t{at[i]} << (8 * i);
    uint32_t next = 0;
    for (size_t i = 0; i < 4; ++i) next ^= kTables[7 - i][state >> (8 * i) & 0xff];
    for (size_t i = 4; i < 8; ++i) next ^= kTables[7 - i][at[i]];
    state = next;
  }
  for (; bytes != 0; --bytes) state = (state >> 8) ^ kTables[0][(state ^ *at++) & 0xff];
  return ~state;
}

#if defined(__x86_64__)

// A state when `Bytes` bytes, all 0, have followed: a linear map, so four look-ups.
using Shift = std::array<std::array<uint32_t, 256>, 4>;

template <size_t Bytes>
constexpr Shift MakeShift() {
  std::array<uint32_t, 32> of_bit{};
  for (size_t bit = 0; bit < 32; ++bit) {
    uint32_t state = uint32_t{1} << bit;
    for (size_t i = 0; i < Bytes; ++i) state = (state >> 8) ^ kTables[0][state & 0xff];
    of_bit[bit] = state;
  }
  Shift shift{};
  for (size_t k = 0; k < 4; ++k) {
    for (size_t i = 0; i < 256; ++i) {
      for (size_t bit = 0; bit < 8; ++bit) {
        if ((i >> bit & 1) != 0) shift[k][i] ^= of_bit[8 * k + bit];
      }
    }
  }
  return shift;
}
constexpr size_t kLongStream = 2048, kShortStream = 128;
constexpr Shift kLongShift = MakeShift<kLongStream>();
constexpr Shift kShortShift = MakeShift<kShortStream>();

uint64_t Shifted(const Shift& shift, uint64_t state) {
  return shift[0][state & 0xff] ^ shift[1][state >> 8 & 0xff] ^ shift[2][state >> 16 & 0xff] ^
         shift[3][state >> 24 & 0xff];
}

uint64_t Word(const uint8_t* at) {
  uint64_t word;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

// The instruction takes one word a cycle, but answers after three: three streams keep it busy.
template <size_t Stream>
__attribute__((target("sse4.2"))) uint64_t ThreeStreams(uint64_t state, const Shift& shift,
                                                        const uint8_t** data, size_t* bytes) {
  for (; *bytes >= 3 * Stream; *bytes -= 3 * Stream, *data += 3 * Stream) {
    const uint8_t* at = *data;
    uint64_t second = 0, third = 0;
    for (size_t i = 0; i < Stream; i += 8) {
      state = _mm_crc32_u64(state, Word(at + i));
      second = _mm_crc32_u64(second, Word(at + Stream + i));
      third = _mm_crc32_u64(third, Word(at + 2 * Stream + i));
    }
    state = Shifted(shift, Shifted(shift, state) ^ second) ^ third;
  }
  return state;
}

__attribute__((target("sse4.2"))) uint32_t ByInstruction(uint32_t crc, const void* data,
                                                         size_t bytes) {
  const auto* at = static_cast<const uint8_t*>(data);
  uint64_t state = ~crc;
  state = ThreeStreams<kLongStream>(state, kLongShift, &at, &bytes);
  state = ThreeStreams<kShortStream>(state, kShortShift, &at, &bytes);
  for (; bytes >= 8; bytes -= 8, at += 8) state = _mm_crc32_u64(state, Word(at));
  auto narrow = static_cast<uint32_t>(state);
  for (; bytes != 0; --bytes) narrow = _mm_crc32_u8(narrow, *at++);
  return ~narrow;
}

// x to the n, modulo the polynomial.
constexpr long long PowerOfX(size_t n) {
  uint32_t power = 0x80000000;
  for (; n != 0; --n) power = TimesX(power);
  return power;
}

// 128 bits that `bits` bits follow are as good as (their first half times x^(bits + 64)) plus
// (their second half times x^bits), which fits into 128 bits again. In reversed bits a product
// comes out one power of x too high, and these 32-bit factors stand 32 powers higher.
#define MERCURY_WIDE __attribute__((target("avx512f,vpclmulqdq,pclmul,sse4.2")))

template <size_t Bits>
MERCURY_WIDE inline __m512i Folded(__m512i a, __m512i next) {
  constexpr long long kFirst = PowerOfX(Bits + 31), kSecond = PowerOfX(Bits - 33);
  const __m512i by = _mm512_set4_epi64(kSecond, kFirst, kSecond, kFirst);
  return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(a, by, 0x00),
                                   _mm512_clmulepi64_epi128(a, by, 0x11), next, 0x96);
}

MERCURY_WIDE inline __m128i Folded(__m128i a, __m128i next) {
  constexpr long long kFirst = PowerOfX(128 + 31), kSecond = PowerOfX(128 - 33);
  const __m128i by = _mm_set_epi64x(kSecond, kFirst);
  return _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(a, by, 0x00), next),
                       _mm_clmulepi64_si128(a, by, 0x11));
}

constexpr size_t kVector = 64, kStride = 4 * kVector;

// Four vectors, each folded over the three that follow it; then into one; then into 128 bits, the
// sum of which the instruction makes.
MERCURY_WIDE uint32_t ByWideProducts(uint32_t crc, const void* data, size_t bytes) {
  if (bytes < 2 * kStride) return ByInstruction(crc, data, bytes);
  const auto* at = static_cast<const uint8_t*>(data);
  __m512i a = _mm512_loadu_si512(at), b = _mm512_loadu_si512(at + kVector);
  __m512i c = _mm512_loadu_si512(at + 2 * kVector), d = _mm512_loadu_si512(at + 3 * kVector);
  // What came before counts as if it had been added to the first four bytes.
  const uint32_t before = ~crc;
  a = _mm512_xor_si512(a, _mm512_set_epi64(0, 0, 0, 0, 0, 0, 0, before));
  for (at += kStride, bytes -= kStride; bytes >= kStride; at += kStride, bytes -= kStride) {
    a = Folded<8 * kStride>(a, _mm512_loadu_si512(at));
    b = Folded<8 * kStride>(b, _mm512_loadu_si512(at + kVector));
    c = Folded<8 * kStride>(c, _mm512_loadu_si512(at + 2 * kVector));
    d = Folded<8 * kStride>(d, _mm512_loadu_si512(at + 3 * kVector));
  }
  a = Folded<8 * kVector>(Folded<8 * kVector>(Folded<8 * kVector>(a, b), c), d);
  for (; bytes >= kVector; at += kVector, bytes -= kVector) {
    a = Folded<8 * kVector>(a, _mm512_loadu_si512(at));
  }
  alignas(kVector) __m128i parts[4];
  _mm512_store_si512(parts, a);
  const __m128i last = Folded(Folded(Folded(parts[0], parts[1]), parts[2]), parts[3]);
  uint64_t state = _mm_crc32_u64(0, static_cast<uint64_t>(_mm_cvtsi128_si64(last)));
  state = _mm_crc32_u64(state, static_cast<uint64_t>(_mm_extract_epi64(last, 1)));
  return ByInstruction(~static_cast<uint32_t>(state), at, bytes);
}

#endif

std::vector<Crc32cWay> FindWays() {
  std::vector<Crc32cWay> ways{{"tables", ByTables}};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2") == 0) return ways;
  ways.push_back({"crc32 instruction", ByInstruction});
  if (__builtin_cpu_supports("pclmul") != 0 && __builtin_cpu_supports("avx512f") != 0 &&
      __builtin_cpu_supports("vpclmulqdq") != 0) {
    ways.push_back({"wide products", ByWideProducts});
  }
#endif
  return ways;
}

}  // namespace

const std::vector<Crc32cWay>& Crc32cWays() {
  static const std::vector<Crc32cWay> ways = FindWays();
  return ways;
}

uint32_t Crc32c(uint32_t crc, const void* data, size_t bytes) {
  static const auto fastest = Crc32cWays().back().sum;
  return fastest(crc, data, bytes);
}

}  // namespace mercury
