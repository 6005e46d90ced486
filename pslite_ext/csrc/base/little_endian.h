// Numbers as they lie in messages: little-endian, whatever the processor and wherever they start.
//
// Thread-safety: pure functions. Invariant: Load<T>(at) == value after Store<T>(at, value).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace mercury {

template <typename T>
void Store(uint8_t* at, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) {
    at[i] = static_cast<uint8_t>(static_cast<uint64_t>(value) >> (8 * i));
  }
}

template <typename T>
T Load(const uint8_t* at) {
  uint64_t value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) value |= uint64_t{at[i]} << (8 * i);
  return static_cast<T>(value);
}

template <typename T>
void AppendNumber(std::string* out, T value) {
  uint8_t bytes[sizeof(T)];
  Store<T>(bytes, value);
  out->append(reinterpret_cast<const char*>(bytes), sizeof(T));
}

}  // namespace mercury
