#include "process/setting_texts.h"

#include <string>

#include "harness.h"

using namespace mercury;  // NOLINT: a test

TEST(numbers_are_bounded_and_named) {
  Settings settings;
  CHECK_EQ(settings.lanes, 1);
  CHECK_OK(SetSetting("MERCURY_LANES", "64", &settings));
  CHECK_EQ(settings.lanes, 64);
  for (const char* bad : {"", "0", "65", "-1", "1.5", " 1", "1 ", "0x1", "99999999999999999999"}) {
    const Status status = SetSetting("MERCURY_LANES", bad, &settings);
    CHECK_STATUS(Code::kInvalidArgument, status);
    CHECK_EQ(status.text(), "MERCURY_LANES is '" + std::string(bad) + "'; allowed: 1 to 64");
  }
  CHECK_EQ(settings.lanes, 64);
  CHECK_OK(SetSetting("DMLC_TASK_ID", "-1", &settings));
}

TEST(every_row_can_be_set) {
  Settings settings;
  for (const SettingRow& row : kSettingRows) {
    CHECK_TRUE((row.text == nullptr) != (row.number == nullptr));
    if (row.text != nullptr) {
      CHECK_OK(SetSetting(row.name, "some text", &settings));
      CHECK_EQ(settings.*row.text, "some text");
      continue;
    }
    CHECK_OK(SetSetting(row.name, std::to_string(row.most), &settings));
    CHECK_EQ(settings.*row.number, row.most);
  }
}

TEST(a_name_that_is_none_is_said) {
  Settings settings;
  const Status status = SetSetting("MERCURY_LANE", "1", &settings);
  CHECK_STATUS(Code::kInvalidArgument, status);
  CHECK_EQ(status.text(), "there is no setting 'MERCURY_LANE'");
}

TEST(what_is_shared_says_whether_it_was_told) {
  Settings settings;
  CHECK_OK(SetSetting("MERCURY_LANES", "3", &settings));
  const SharedSettings shared = SharedOf(settings, {"MERCURY_LANES", "MERCURY_CREDIT_BYTES"});
  const SharedSetting* lanes = Find(shared, "MERCURY_LANES");
  REQUIRE_TRUE(lanes != nullptr);
  CHECK_EQ(lanes->value, "3");
  CHECK_TRUE(lanes->told);
  const SharedSetting* policy = Find(shared, "MERCURY_POLICY");
  REQUIRE_TRUE(policy != nullptr);
  CHECK_EQ(policy->value, "priority");
  CHECK_FALSE(policy->told);
  CHECK_TRUE(Find(shared, "MERCURY_CREDIT_BYTES") == nullptr);  // each node's own
  // All of them together fit into a message.
  CHECK_TRUE(shared.size() <= kSharedSettingsMax);
  CHECK_TRUE(ToText(shared).size() <= kSharedSettingsBytesMax / 2);
}
