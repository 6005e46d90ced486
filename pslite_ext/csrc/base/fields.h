// Fields of letters as bytes: integers and doubles in eight bytes, little-endian, enumerations and
// booleans in one, lists as a length in four bytes and their items, texts likewise.
//
// Both directions walk the same fields: the writer appends them, the reader fills them in and says
// whether they can be what they should.
// Thread-safety: none; a writer or reader is its user's. Invariant: a reader makes no more room
// than the bytes that it was given.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/little_endian.h"

namespace mercury {

class FieldWriter {
 public:
  static constexpr bool kReads = false;
  explicit FieldWriter(std::string* out) : out_(*out) {}

  bool Byte(uint8_t value, uint8_t /*last*/) {
    out_ += static_cast<char>(value);
    return true;
  }
  bool Integer(int64_t value) {
    AppendNumber(&out_, value);
    return true;
  }
  bool Real(double value) {
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    AppendNumber(&out_, bits);
    return true;
  }
  bool Text(const std::string& text) {
    AppendNumber(&out_, static_cast<uint32_t>(text.size()));
    out_ += text;
    return true;
  }
  template <typename T>
  bool Length(const std::vector<T>& list) {
    AppendNumber(&out_, static_cast<uint32_t>(list.size()));
    return true;
  }
  bool Must(bool /*what a reader asks*/) { return true; }

 private:
  std::string& out_;
};

class FieldReader {
 public:
  static constexpr bool kReads = true;
  FieldReader(std::string_view bytes, size_t text_bytes_max, size_t list_max)
      : bytes_(bytes), text_bytes_max_(text_bytes_max), list_max_(list_max) {}

  bool Byte(uint8_t& value, uint8_t last) { return Take(&value) && value <= last; }
  bool Integer(int64_t& value) { return Take(&value); }
  bool Integer(uint64_t& value) { return Take(&value); }
  bool Integer(int& value) {
    int64_t wide = 0;
    if (!Take(&wide) || wide != static_cast<int>(wide)) return false;
    value = static_cast<int>(wide);
    return true;
  }
  bool Real(double& value) {
    uint64_t bits = 0;
    if (!Take(&bits)) return false;
    std::memcpy(&value, &bits, sizeof value);
    return std::isfinite(value);
  }
  bool Text(std::string& text) {
    uint32_t size = 0;
    if (!Take(&size) || size > text_bytes_max_ || size > bytes_.size()) return false;
    text.assign(bytes_.substr(0, size));
    bytes_.remove_prefix(size);
    return true;
  }
  template <typename T>
  bool Length(std::vector<T>& list) {
    uint32_t size = 0;
    // An item has eight bytes at least: no more room is made than the letter is long.
    if (!Take(&size) || size > list_max_ || size > bytes_.size() / 8) return false;
    list.assign(size, T());
    return true;
  }
  bool Must(bool holds) { return holds; }
  bool at_end() const { return bytes_.empty(); }

 private:
  template <typename T>
  bool Take(T* value) {
    if (bytes_.size() < sizeof(T)) return false;
    *value = Load<T>(reinterpret_cast<const uint8_t*>(bytes_.data()));
    bytes_.remove_prefix(sizeof(T));
    return true;
  }

  std::string_view bytes_;
  const size_t text_bytes_max_, list_max_;
};

// What is walked: to a reader, something to fill in.
template <typename A, typename T>
using Its = std::conditional_t<A::kReads, T, const T>;

template <typename T>
constexpr bool kIsList = false;
template <typename T>
constexpr bool kIsList<std::vector<T>> = true;

// A writer or reader `A` of structs: `W`, which is derived from this, has a `Walk` for each.
template <typename A, typename W>
class FieldWalk : public A {
 public:
  using A::A;
  FieldWalk() = delete;

  // One after another.
  template <typename... Fields>
  bool All(Fields&... fields) {
    return (One(fields) && ...);
  }
  // `field` has the values 0 to `last`.
  template <typename E>
  bool Choice(E& field, int last) {
    auto value = static_cast<uint8_t>(field);
    if (!A::Byte(value, static_cast<uint8_t>(last))) return false;
    if constexpr (A::kReads) field = static_cast<E>(value);
    return true;
  }

 private:
  bool One(Its<A, bool>& field) { return Choice(field, 1); }
  bool One(Its<A, int>& field) { return A::Integer(field); }
  bool One(Its<A, int64_t>& field) { return A::Integer(field); }
  bool One(Its<A, uint64_t>& field) { return A::Integer(field); }
  bool One(Its<A, double>& field) { return A::Real(field); }
  bool One(Its<A, std::string>& field) { return A::Text(field); }
  template <typename F>
  bool One(F& field) {
    if constexpr (kIsList<std::remove_const_t<F>>) {
      const auto walk = [this](auto& item) { return this->One(item); };
      return A::Length(field) && std::all_of(field.begin(), field.end(), walk);
    } else {
      return static_cast<W*>(this)->Walk(field);
    }
  }
};

}  // namespace mercury
