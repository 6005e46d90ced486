#include "fabric/json.h"

#include <locale.h>  // newlocale is POSIX

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <set>

namespace mercury::fabric {
namespace {

constexpr int kDepthMost = 64;

// The length of the UTF-8 character at the start of `text`, and the character; 0: it is none.
size_t DecodeUtf8(std::string_view text, uint32_t* character) {
  const auto byte = [text](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  const size_t length = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if ((first >= 0x80 && first < 0xc2) || first > 0xf4 || text.size() < length) return 0;
  *character = length == 1 ? first : first & (0x7fU >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0U) != 0x80) return 0;
    *character = *character << 6 | (byte(i) & 0x3fU);
  }
  const bool overlong =
      (length == 3 && *character < 0x800) || (length == 4 && *character < 0x10000);
  const bool surrogate = *character >= 0xd800 && *character < 0xe000;
  return overlong || surrogate || *character > 0x10ffff ? 0 : length;
}

void EncodeUtf8(uint32_t character, std::string* text) {
  const auto add = [text](uint32_t byte) { *text += static_cast<char>(byte); };
  if (character < 0x80) return add(character);
  if (character < 0x800) {
    add(0xc0 | character >> 6);
  } else {
    if (character < 0x10000) {
      add(0xe0 | character >> 12);
    } else {
      add(0xf0 | character >> 18);
      add(0x80 | (character >> 12 & 0x3f));
    }
    add(0x80 | (character >> 6 & 0x3f));
  }
  add(0x80 | (character & 0x3f));
}

// How a field is named in an error: .name, or ["any name"].
std::string PathStep(const std::string& name) {
  const bool plain = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  });
  return plain ? "." + name : "[" + QuotedJson(name) + "]";
}

// As the C locale has it: a script that has set another must not change what a number means.
double ReadDecimal(const std::string& digits) {
  static const locale_t kPlain = newlocale(LC_NUMERIC_MASK, "C", nullptr);
  return strtod_l(digits.c_str(), nullptr, kPlain);
}

class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : text_(text) {}

  Status Read(Json* value) {
    if (!Value(value, 0)) return Wrong();
    Space();
    if (at_ != text_.size()) {
      problem_ = "something follows the value";
      return Wrong();
    }
    return Status::Ok();
  }

 private:
  Status Wrong() const {
    const std::string_view before = text_.substr(0, at_);
    const auto line = std::count(before.begin(), before.end(), '\n') + 1;
    const size_t start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
    std::string inside;
    for (const std::string& step : path_) inside += step;
    if (!inside.empty()) inside = inside.substr(inside[0] == '.' ? 1 : 0) + ": ";
    return Status::InvalidArgument(inside + "it is not JSON: line " + std::to_string(line) +
                                   ", column " + std::to_string(at_ - start + 1) + ": " + problem_);
  }
  bool No(const char* problem) {
    problem_ = problem;
    return false;
  }
  bool At(char c) const { return at_ < text_.size() && text_[at_] == c; }
  bool Take(char c) {
    if (!At(c)) return false;
    ++at_;
    return true;
  }
  void Space() {
    while (At(' ') || At('\n') || At('\r') || At('\t')) ++at_;
  }
  bool Word(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return No("a value is expected");
    at_ += word.size();
    return true;
  }

  bool Value(Json* value, int depth) {  // NOLINT(misc-no-recursion): bounded by kDepthMost
    Space();
    if (depth > kDepthMost) return No("it is nested too deep");
    if (At('{')) return Object(value, depth);
    if (At('[')) return Array(value, depth);
    if (At('"')) {
      value->type = Json::Type::kText;
      return Text(&value->text);
    }
    if (At('t') || At('f')) {
      value->type = Json::Type::kBool;
      value->truth = At('t');
      return Word(value->truth ? "true" : "false");
    }
    if (At('n')) return Word("null");
    return Number(value);
  }

  bool Array(Json* value, int depth) {  // NOLINT(misc-no-recursion)
    value->type = Json::Type::kArray;
    ++at_;
    Space();
    if (Take(']')) return true;
    do {
      path_.push_back("[" + std::to_string(value->items.size()) + "]");
      value->items.emplace_back();
      if (!Value(&value->items.back(), depth + 1)) return false;
      path_.pop_back();
      Space();
    } while (Take(','));
    return Take(']') || No("',' or ']' is expected");
  }

  bool Object(Json* value, int depth) {  // NOLINT(misc-no-recursion)
    value->type = Json::Type::kObject;
    ++at_;
    Space();
    if (Take('}')) return true;
    std::set<std::string> names;
    do {
      Space();
      if (!At('"')) return No("a field's name in quotes is expected");
      std::string name;
      if (!Text(&name)) return false;
      path_.push_back(PathStep(name));
      if (!names.insert(name).second) return No("this object has this field already");
      Space();
      if (!Take(':')) return No("':' is expected");
      value->fields.emplace_back(std::move(name), Json());
      if (!Value(&value->fields.back().second, depth + 1)) return false;
      path_.pop_back();
      Space();
    } while (Take(','));
    return Take('}') || No("',' or '}' is expected");
  }

  bool Digits() {
    const size_t before = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
    return at_ != before;
  }

  bool Number(Json* value) {
    const size_t start = at_;
    const bool minus = Take('-');
    if (!Take('0') && !Digits()) {
      return No(minus ? "digits are expected" : "a value is expected");
    }
    if (Take('.') && !Digits()) return No("digits are expected");
    if (Take('e') || Take('E')) {
      if (!Take('+')) Take('-');
      if (!Digits()) return No("digits are expected");
    }
    value->type = Json::Type::kNumber;
    value->number = ReadDecimal(std::string(text_.substr(start, at_ - start)));
    if (!std::isfinite(value->number)) return No("the number is too large");
    return true;
  }

  bool Hex(uint32_t* unit) {
    *unit = 0;
    for (int i = 0; i < 4; ++i) {
      const char c = at_ < text_.size() ? text_[at_] : ' ';
      const uint32_t digit = c >= '0' && c <= '9'   ? static_cast<uint32_t>(c - '0')
                             : c >= 'a' && c <= 'f' ? static_cast<uint32_t>(c - 'a' + 10)
                             : c >= 'A' && c <= 'F' ? static_cast<uint32_t>(c - 'A' + 10)
                                                    : 16;
      if (digit == 16) return No("four hexadecimal digits are expected");
      *unit = *unit * 16 + digit;
      ++at_;
    }
    return true;
  }

  bool Escape(std::string* text) {
    constexpr std::string_view kNames = "\"\\/bfnrt";
    constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    if (Take('u')) {
      uint32_t unit = 0;
      uint32_t second = 0;
      if (!Hex(&unit)) return false;
      if (unit >= 0xd800 && unit < 0xe000) {
        if (unit >= 0xdc00 || !Take('\\') || !Take('u') || !Hex(&second) || second < 0xdc00 ||
            second >= 0xe000) {
          return No("half a surrogate pair is no character");
        }
        unit = 0x10000 + ((unit - 0xd800) << 10) + (second - 0xdc00);
      }
      EncodeUtf8(unit, text);
      return true;
    }
    const size_t which = at_ < text_.size() ? kNames.find(text_[at_]) : std::string_view::npos;
    if (which == std::string_view::npos) return No("there is no such escape");
    ++at_;
    *text += kMeanings[which];
    return true;
  }

  bool Text(std::string* text) {
    ++at_;
    while (at_ < text_.size()) {
      if (Take('"')) return true;
      if (Take('\\')) {
        if (!Escape(text)) return false;
        continue;
      }
      uint32_t character = 0;
      const size_t length = DecodeUtf8(text_.substr(at_), &character);
      if (length == 0) return No("it is not UTF-8");
      if (character < 0x20) return No("a control character in a text must be escaped");
      text->append(text_.substr(at_, length));
      at_ += length;
    }
    return No("the text has no end");
  }

  const std::string_view text_;
  size_t at_ = 0;
  std::string problem_;
  std::vector<std::string> path_;  // to where it reads
};

}  // namespace

const Json* Json::Find(std::string_view name) const {
  for (const auto& [field, value] : fields) {
    if (field == name) return &value;
  }
  return nullptr;
}

Status ReadJson(std::string_view text, Json* value) {
  *value = Json();
  return JsonReader(text).Read(value);
}

std::string QuotedJson(std::string_view text) {
  std::string quoted = "\"";
  const auto unit = [&quoted](uint32_t value) {
    char digits[8];
    std::snprintf(digits, sizeof digits, "\\u%04x", static_cast<unsigned>(value & 0xffff));
    quoted += digits;
  };
  while (!text.empty()) {
    uint32_t character = 0;
    const size_t length = DecodeUtf8(text, &character);
    if (length == 0) {
      unit(0xfffd);
    } else if (character == '"' || character == '\\') {
      quoted += '\\';
      quoted += static_cast<char>(character);
    } else if (character >= 0x10000) {
      unit(0xd800 + ((character - 0x10000) >> 10));
      unit(0xdc00 + ((character - 0x10000) & 0x3ff));
    } else if (character < 0x20 || character > 0x7e) {
      unit(character);
    } else {
      quoted += static_cast<char>(character);
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return quoted + '"';
}

std::string NumberJson(double number) {
  char text[32];
  const std::to_chars_result end = std::to_chars(text, text + sizeof text, number);
  return {text, end.ptr};
}

}  // namespace mercury::fabric
