#include "process/setting_texts.h"

#include <charconv>

namespace mercury {
namespace {

Status NotAllowed(const SettingRow& row, const std::string& text) {
  return Status::InvalidArgument(std::string(row.name) + " is '" + text + "'; allowed: " +
                                 std::to_string(row.least) + " to " + std::to_string(row.most));
}

}  // namespace

Status SetSetting(const std::string& name, const std::string& text, Settings* settings) {
  for (const SettingRow& row : kSettingRows) {
    if (name != row.name) continue;
    if (row.text != nullptr) {
      settings->*row.text = text;
      return Status::Ok();
    }
    int64_t number = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc() || stop != end || number < row.least || number > row.most) {
      return NotAllowed(row, text);
    }
    settings->*row.number = number;
    return Status::Ok();
  }
  return Status::InvalidArgument("there is no setting '" + name + "'");
}

SharedSettings SharedOf(const Settings& settings, const std::set<std::string>& told) {
  SharedSettings shared;
  for (const SettingRow& row : kSettingRows) {
    if (!row.shared) continue;
    const std::string text =
        row.text != nullptr ? settings.*row.text : std::to_string(settings.*row.number);
    shared.push_back({row.name, text, told.count(row.name) != 0});
  }
  return shared;
}

}  // namespace mercury
