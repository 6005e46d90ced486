#include "control/shared_settings.h"

#include <algorithm>
#include <iterator>

namespace mercury {
namespace {

bool IsName(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

bool IsValue(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

}  // namespace

const SharedSetting* Find(const SharedSettings& settings, const std::string& name) {
  const auto it = std::find_if(settings.begin(), settings.end(),
                               [&](const SharedSetting& s) { return s.name == name; });
  return it == settings.end() ? nullptr : &*it;
}

SharedSettings Told(const SharedSettings& settings) {
  SharedSettings told;
  std::copy_if(settings.begin(), settings.end(), std::back_inserter(told),
               [](const SharedSetting& s) { return s.told; });
  return told;
}

std::string ToText(const SharedSettings& settings) {
  std::string text;
  for (const SharedSetting& s : settings) text += s.name + "=" + s.value + "\n";
  return text;
}

Status FromText(const std::string& text, SharedSettings* settings) {
  SharedSettings read;
  const size_t end = text.find_last_not_of(' ') + 1;
  if (end > kSharedSettingsBytesMax) {
    return Status::Corrupt("settings of " + std::to_string(end) + " bytes");
  }
  for (size_t at = 0; at < end;) {
    const size_t line_end = text.find('\n', at);
    const size_t equals = text.find('=', at);
    if (line_end >= end || equals >= line_end) return Status::Corrupt("settings cut short");
    SharedSetting s{text.substr(at, equals - at), text.substr(equals + 1, line_end - equals - 1),
                    true};
    if (!IsName(s.name) || !IsValue(s.value)) return Status::Corrupt("a setting that is no text");
    if (Find(read, s.name) != nullptr) return Status::Corrupt("a setting that is there twice");
    if (read.size() == kSharedSettingsMax) return Status::Corrupt("too many settings");
    read.push_back(std::move(s));
    at = line_end + 1;
  }
  *settings = std::move(read);
  return Status::Ok();
}

}  // namespace mercury
