// Settings on which all nodes of a job must agree: what a node was told of them, and what the
// scheduler has everybody use. As text they are the body of a registration and of its answer.
//
//   one line for each:  NAME=value\n      NAME: A to Z, digits, _    value: printable ASCII
//
// Thread-safety: pure functions. Invariant: FromText reads what ToText wrote, and refuses any text
// that it could not have written.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/status.h"

namespace mercury {

constexpr size_t kSharedSettingsMax = 64;
constexpr size_t kSharedSettingsBytesMax = 4096;

struct SharedSetting {
  std::string name;
  std::string value;
  bool told = false;  // otherwise it is the default
};
using SharedSettings = std::vector<SharedSetting>;

// Null: it is not among them.
const SharedSetting* Find(const SharedSettings& settings, const std::string& name);
SharedSettings Told(const SharedSettings& settings);

std::string ToText(const SharedSettings& settings);
// Blanks at the end, which fill a message up, do not count. All that it reads were told.
Status FromText(const std::string& text, SharedSettings* settings);

}  // namespace mercury
