#include "control/shared_settings.h"

#include <string>

#include "harness.h"

using namespace mercury;  // NOLINT: a test

TEST(what_is_written_is_read) {
  const SharedSettings settings = {{"MERCURY_POLICY", "fifo", true}, {"MERCURY_LANES", "", false}};
  SharedSettings read;
  for (const char* padding : {"", " ", "       "}) {
    REQUIRE_OK(FromText(ToText(settings) + padding, &read));
    REQUIRE_EQ(read.size(), 2U);
    CHECK_EQ(read[0].name, "MERCURY_POLICY");
    CHECK_EQ(read[0].value, "fifo");
    CHECK_EQ(read[1].value, "");
    CHECK_TRUE(read[0].told && read[1].told);
    CHECK_EQ(ToText(read), ToText(settings));
  }
  CHECK_EQ(Told(settings).size(), 1U);
  CHECK_TRUE(Find(settings, "MERCURY_LANES") == &settings[1]);
  CHECK_TRUE(Find(settings, "MERCURY_LANE") == nullptr);
}

TEST(a_message_without_settings_has_none) {
  for (const char* text : {"", "        "}) {
    SharedSettings read = {{"A", "1", true}};
    CHECK_OK(FromText(text, &read));
    CHECK_TRUE(read.empty());
  }
}

TEST(what_could_not_have_been_written_is_refused) {
  std::string many;
  for (size_t i = 0; i <= kSharedSettingsMax; ++i) many += "A" + std::to_string(i) + "=1\n";
  for (const std::string& text :
       {std::string("A"), std::string("A=1"), std::string("A\n"), std::string("=1\n"),
        std::string("a=1\n"), std::string("A B=1\n"), std::string("A=\x01\n"),
        std::string("A=\xff\n"), std::string("A=1\0\n", 5), std::string("\n"),
        std::string("A=1\nB"), std::string("A=1\nA=2\n"), many,
        "A=" + std::string(kSharedSettingsBytesMax, 'x') + "\n"}) {
    SharedSettings read = {{"KEPT", "1", true}};
    CHECK_STATUS(Code::kCorrupt, FromText(text, &read));
    CHECK_EQ(read.size(), 1U);
  }
}

TEST(random_texts_do_no_harm) {
  mercury::testing::Random random;
  constexpr char kLetters[] = {'A', 'Z', '=', '\n', ' ', '7', '_', '\0', '\x80', 'a'};
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (uint64_t i = random() % 24; i > 0; --i) text += kLetters[random() % sizeof(kLetters)];
    SharedSettings read;
    if (!FromText(text, &read).ok()) continue;
    text.erase(text.find_last_not_of(' ') + 1);
    CHECK_EQ(ToText(read), text);
  }
}
