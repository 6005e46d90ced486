#include "base/log.h"

#include <unistd.h>

#include <mutex>

namespace mercury {
namespace {

struct LogName {
  std::mutex mutex;
  std::string text = "node";
};
LogName& Name() {
  static LogName* name = new LogName;  // outlives the threads that log while the process ends
  return *name;
}

}  // namespace

void SetLogName(const std::string& name) {
  std::lock_guard<std::mutex> lock(Name().mutex);
  Name().text = name;
}

void Log(LogLevel level, const std::string& text) {
  std::string line = "[mercury ";
  {
    std::lock_guard<std::mutex> lock(Name().mutex);
    line += Name().text;
  }
  line += level == LogLevel::kError     ? "] error: "
          : level == LogLevel::kWarning ? "] warning: "
                                        : "] ";
  line += text;
  line += '\n';
  // A log that cannot be written has nobody left to tell.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace mercury
