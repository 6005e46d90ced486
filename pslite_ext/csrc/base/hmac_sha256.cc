#include "base/hmac_sha256.h"

#include <algorithm>
#include <cstring>

namespace mercury {
namespace {

constexpr size_t kBlockBytes = 64;

constexpr std::array<uint32_t, 64> kRoundConstants = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t Rotated(uint32_t x, int bits) { return x >> bits | x << (32 - bits); }

// The standard's words and lengths are big-endian.
template <typename T>
T GetBig(const uint8_t* in) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) value = static_cast<T>(value << 8 | in[i]);
  return value;
}

template <typename T>
void PutBig(uint8_t* out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) {
    out[i] = static_cast<uint8_t>(value >> (8 * (sizeof(T) - 1 - i)));
  }
}

}  // namespace

Sha256::Sha256()
    : state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
             0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19},
      pending_{} {}

void Sha256::Block(const uint8_t* block) {
  std::array<uint32_t, 64> w;
  for (size_t i = 0; i < 16; ++i) w[i] = GetBig<uint32_t>(block + 4 * i);
  for (size_t i = 16; i < 64; ++i) {
    const uint32_t x = w[i - 15];
    const uint32_t y = w[i - 2];
    const uint32_t small0 = Rotated(x, 7) ^ Rotated(x, 18) ^ x >> 3;
    const uint32_t small1 = Rotated(y, 17) ^ Rotated(y, 19) ^ y >> 10;
    w[i] = w[i - 16] + small0 + w[i - 7] + small1;
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (size_t i = 0; i < 64; ++i) {
    const uint32_t big1 = Rotated(e, 6) ^ Rotated(e, 11) ^ Rotated(e, 25);
    const uint32_t big0 = Rotated(a, 2) ^ Rotated(a, 13) ^ Rotated(a, 22);
    const uint32_t t1 = h + big1 + ((e & f) ^ (~e & g)) + kRoundConstants[i] + w[i];
    const uint32_t t2 = big0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + t1;
    d = c;
    c = b;
    b = a;
    a = t1 + t2;
  }
  const std::array<uint32_t, 8> mixed = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < mixed.size(); ++i) state_[i] += mixed[i];
}

void Sha256::Update(const void* data, size_t bytes) {
  const auto* in = static_cast<const uint8_t*>(data);
  while (bytes != 0) {
    const size_t filled = bytes_ % kBlockBytes;
    const size_t taken = std::min(bytes, kBlockBytes - filled);
    if (taken == kBlockBytes) {
      Block(in);
    } else {
      std::memcpy(pending_.data() + filled, in, taken);
      if (filled + taken == kBlockBytes) Block(pending_.data());
    }
    bytes_ += taken;
    in += taken;
    bytes -= taken;
  }
}

Digest Sha256::Finish() {
  // A one bit, zeros, and the length in bits in the last 8 bytes of a block.
  const uint64_t bits = bytes_ * 8;
  const size_t filled = bytes_ % kBlockBytes;
  std::array<uint8_t, kBlockBytes + 8> padding{};
  padding[0] = 0x80;
  const size_t zeros_end = (filled < 56 ? 56 : 120) - filled;
  PutBig<uint64_t>(padding.data() + zeros_end, bits);
  Update(padding.data(), zeros_end + 8);
  Digest digest;
  for (size_t i = 0; i < state_.size(); ++i) PutBig<uint32_t>(digest.data() + 4 * i, state_[i]);
  return digest;
}

HmacKey::HmacKey(std::string_view key) {
  std::array<uint8_t, kBlockBytes> padded{};
  if (key.size() > kBlockBytes) {
    Sha256 hash;
    hash.Update(key.data(), key.size());
    const Digest digest = hash.Finish();
    std::copy(digest.begin(), digest.end(), padded.begin());
  } else {
    std::copy(key.begin(), key.end(), padded.begin());
  }
  for (uint8_t& byte : padded) byte ^= 0x36;
  inner_.Update(padded.data(), padded.size());
  for (uint8_t& byte : padded) byte ^= 0x36 ^ 0x5c;
  outer_.Update(padded.data(), padded.size());
}

Digest HmacKey::Sign(const void* data, size_t bytes) const {
  MacStream stream(*this);
  stream.Update(data, bytes);
  return stream.Finish();
}

Digest HmacKey::MacStream::Finish() {
  const Digest inner = inner_.Finish();
  outer_.Update(inner.data(), inner.size());
  return outer_.Finish();
}

bool EqualConstantTime(const void* a, const void* b, size_t bytes) {
  const auto* x = static_cast<const uint8_t*>(a);
  const auto* y = static_cast<const uint8_t*>(b);
  // volatile: the compiler may not stop early.
  volatile uint8_t different = 0;
  for (size_t i = 0; i < bytes; ++i) {
    different = static_cast<uint8_t>(different | (x[i] ^ y[i]));
  }
  return different == 0;
}

}  // namespace mercury
