// One line on stderr for a person to read, with this node's name in front.
//
// Thread-safety: any thread; a line is written with one call.
#pragma once

#include <string>

namespace mercury {

enum class LogLevel { kNote, kWarning, kError };

// The name that lines carry from now on, such as "worker 1".
void SetLogName(const std::string& name);
void Log(LogLevel level, const std::string& text);

}  // namespace mercury
