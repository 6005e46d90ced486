// JSON, as RFC 8259 has it, as a tree of values; and its numbers and texts the other way.
//
// Thread-safety: plain values and pure functions. Invariants: what is read is UTF-8 without lone
// surrogates, numbers are finite, no object names a field twice, nothing is nested deeper than 64
// levels. Errors say in which field, line and column.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace mercury::fabric {

struct Json {
  enum class Type { kNull, kBool, kNumber, kText, kArray, kObject };

  Type type = Type::kNull;
  bool truth = false;
  double number = 0;
  std::string text;
  std::vector<Json> items;
  std::vector<std::pair<std::string, Json>> fields;  // in the order of the text

  // Null if there is no such field.
  const Json* Find(std::string_view name) const;
};

Status ReadJson(std::string_view text, Json* value);

// As JSON has them: with quotes, ASCII only; the shortest that reads back the same.
std::string QuotedJson(std::string_view text);
std::string NumberJson(double number);

}  // namespace mercury::fabric
