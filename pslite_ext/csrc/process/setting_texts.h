// Settings as names and texts, as they come from Python and from the scheduler, and back.
//
// Thread-safety: pure functions. The struct and its rows are made from
// pslite_ext/settings_table.py.
#pragma once

#include <set>
#include <string>

#include "base/status.h"
#include "control/shared_settings.h"
#include "process/settings.h"

namespace mercury {

// kInvalidArgument names the setting, what it was to hold, and what it may.
Status SetSetting(const std::string& name, const std::string& text, Settings* settings);
// Those on which all nodes must agree; `told`: the names of what are not defaults.
SharedSettings SharedOf(const Settings& settings, const std::set<std::string>& told);

}  // namespace mercury
