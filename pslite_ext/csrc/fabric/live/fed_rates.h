// Rates from outside: an operator's telemetry, line by line, from a file or a socket.
//
// A line is a JSON object: {"host": "h1", "in": 2.5e9, "out": 1e9}, in bit/s. It is valid until the
// host's next line, but for at most `kFeedHolds_s`, so that a dead feed is not believed forever.
//
// Thread-safety: none, one owner; `now_s` is passed in. Invariant: a line that is refused changes
// nothing.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "fabric/live/monitor.h"

namespace mercury::fabric {

constexpr double kFeedHolds_s = 10;
constexpr size_t kFeedLineBytesMax = 4096;

class FedRates : public RateSource {
 public:
  explicit FedRates(const std::vector<std::string>& hosts);

  Status Feed(std::string_view line, double now_s);
  std::optional<HostRates> Of(size_t host, double now_s) const override;

 private:
  struct Told {
    HostRates rates;
    double at_s = 0;
  };
  std::map<std::string, size_t, std::less<>> hosts_;
  std::map<size_t, Told> told_;
};

}  // namespace mercury::fabric
