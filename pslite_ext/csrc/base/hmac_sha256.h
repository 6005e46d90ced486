// HMAC-SHA-256 (FIPS 180-4, RFC 2104): proves that a peer knows the job token.
//
// Thread-safety: pure functions. Ownership: none; `HmacKey` keeps the two padded hash states, so
// that authenticating a message costs no more than hashing it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mercury {

using Digest = std::array<uint8_t, 32>;

class Sha256 {
 public:
  Sha256();
  void Update(const void* data, size_t bytes);
  Digest Finish();  // the object is spent afterwards

 private:
  void Block(const uint8_t* block);
  std::array<uint32_t, 8> state_;
  std::array<uint8_t, 64> pending_;
  uint64_t bytes_ = 0;
};

class HmacKey {
 public:
  explicit HmacKey(std::string_view key);
  Digest Sign(const void* data, size_t bytes) const;
  // Several pieces signed as if they were one.
  class MacStream {
   public:
    explicit MacStream(const HmacKey& key) : inner_(key.inner_), outer_(key.outer_) {}
    void Update(const void* data, size_t bytes) { inner_.Update(data, bytes); }
    Digest Finish();

   private:
    Sha256 inner_, outer_;
  };

 private:
  Sha256 inner_, outer_;
};

// Takes the same time wherever the two differ.
bool EqualConstantTime(const void* a, const void* b, size_t bytes);

}  // namespace mercury
