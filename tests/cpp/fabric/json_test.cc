#include "fabric/json.h"

#include <clocale>
#include <cmath>
#include <cstdlib>

#include "harness.h"

using namespace mercury::fabric;
using namespace mercury::testing;

namespace {

bool Reads(const std::string& text) {
  Json value;
  return mercury::fabric::ReadJson(text, &value).ok();
}

}  // namespace

TEST(values_are_read) {
  Json value;
  REQUIRE_OK(
      ReadJson(R"( {"a": [1, -2.5e1, true, false, null], "b": "x\n\u00e9\ud83d\ude00"} )", &value));
  const Json* a = value.Find("a");
  REQUIRE_TRUE(a != nullptr && a->items.size() == 5);
  CHECK_EQ(a->items[0].number, 1);
  CHECK_EQ(a->items[1].number, -25);
  CHECK_TRUE(a->items[2].truth);
  CHECK_FALSE(a->items[3].truth);
  CHECK_EQ(a->items[4].type, Json::Type::kNull);
  REQUIRE_TRUE(value.Find("b") != nullptr);
  CHECK_EQ(value.Find("b")->text, "x\n\xc3\xa9\xf0\x9f\x98\x80");
  CHECK_TRUE(value.Find("c") == nullptr);
}

TEST(what_is_no_json_is_refused) {
  for (const char* text : {"",
                           "{",
                           "[1,]",
                           "{\"a\" 1}",
                           "{\"a\": 1,}",
                           "nul",
                           "NaN",
                           "Infinity",
                           "-",
                           "01",
                           "1.",
                           ".5",
                           "1e",
                           "+1",
                           "1e999",
                           "'a'",
                           "\"a",
                           "\"\\x\"",
                           "\"\\ud800\"",
                           "\"\\udc00\"",
                           "\"\\u12g4\"",
                           "\"\n\"",
                           "\"\xff\"",
                           "\"\xc0\x80\"",
                           "\"\xed\xa0\x80\"",
                           "1 2",
                           "{\"a\": 1, \"a\": 2}",
                           "\xef\xbb\xbf{}"}) {
    CHECK_FALSE(Reads(text));
  }
  CHECK_TRUE(Reads(std::string(60, '[') + std::string(60, ']')));
  CHECK_FALSE(Reads(std::string(100'000, '[')));
}

TEST(errors_say_where) {
  Json value;
  const mercury::Status status = ReadJson("{\n  \"a\": x}", &value);
  CHECK_STATUS(mercury::Code::kInvalidArgument, status);
  CHECK_EQ(status.text(), "a: it is not JSON: line 2, column 8: a value is expected");
  CHECK_EQ(ReadJson("{\"x\": [1, {\"a b\": NaN}]}", &value).text(),
           "x[1][\"a b\"]: it is not JSON: line 1, column 19: a value is expected");
  CHECK_EQ(ReadJson("{\"x\": 1, \"x\": 2}", &value).text(),
           "x: it is not JSON: line 1, column 13: this object has this field already");
  CHECK_EQ(ReadJson("[1] x", &value).text(),
           "it is not JSON: line 1, column 5: something follows the value");
}

TEST(whatever_comes_is_read_or_refused) {
  Random random;
  const std::string seed = R"({"a": [1, -2.5e1, true, null], "b": "x\n\u00e9\ud83d\ude00"})";
  for (int round = 0; round < 20'000; ++round) {
    std::string text = seed.substr(0, 1 + random.Below(seed.size()));
    for (uint64_t i = random.Below(4); i > 0; --i) {
      text[random.Below(text.size())] = static_cast<char>(random());
    }
    Reads(text);
  }
}

TEST(texts_and_numbers_read_back_the_same) {
  Random random;
  for (int round = 0; round < 2000; ++round) {
    const double number =
        std::ldexp(random.Unit() - 0.5, static_cast<int>(random.Between(-60, 60)));
    CHECK_EQ(std::strtod(NumberJson(number).c_str(), nullptr), number);
  }
  CHECK_EQ(NumberJson(1), "1");
  for (const std::string text : {"a\"b\\c\n\x01", "\xc3\xa9\xf0\x9f\x98\x80", ""}) {
    Json value;
    REQUIRE_OK(ReadJson(QuotedJson(text), &value));
    CHECK_EQ(value.text, text);
  }
  CHECK_EQ(QuotedJson("\xc3\xa9"), "\"\\u00e9\"");
}

TEST(a_decimal_comma_of_the_script_s_locale_changes_nothing) {
  // The first of these that this machine has; with none of them there is nothing to get wrong.
  for (const char* name :
       {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "nl_NL.UTF-8", "pl_PL.UTF-8"}) {
    if (std::setlocale(LC_NUMERIC, name) != nullptr) break;
  }
  Json value;
  REQUIRE_OK(ReadJson("[1.5, 1e-3, 1e-999]", &value));
  CHECK_EQ(value.items[0].number, 1.5);
  CHECK_EQ(value.items[1].number, 0.001);
  CHECK_EQ(value.items[2].number, 0);
  CHECK_EQ(NumberJson(2.5), "2.5");
  std::setlocale(LC_NUMERIC, "C");
}
