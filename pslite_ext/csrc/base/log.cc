#include "base/log.h"

#include <unistd.h>

#include <atomic>
#include <mutex>

namespace mercury {
namespace {

std::atomic<bool> g_verbose{false};

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

void SetLogVerbose(bool verbose) { g_verbose = verbose; }

void Log(LogLevel level, const std::string& text) {
  if (level == LogLevel::kInfo && !g_verbose) return;
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
