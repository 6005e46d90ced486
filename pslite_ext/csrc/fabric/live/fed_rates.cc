#include "fabric/live/fed_rates.h"

#include "fabric/json.h"

namespace mercury::fabric {
namespace {

Status ReadRate(const Json& line, const char* field, double* rate) {
  const std::string name = field;
  const Json* value = line.Find(field);
  if (value == nullptr) return Status::InvalidArgument(name + ": it is missing");
  if (value->type != Json::Type::kNumber || value->number < 0) {
    return Status::InvalidArgument(name + ": it must be a number of bit/s, 0 or more");
  }
  *rate = value->number;
  return Status::Ok();
}

}  // namespace

FedRates::FedRates(const std::vector<std::string>& hosts) {
  for (size_t host = 0; host < hosts.size(); ++host) hosts_.emplace(hosts[host], host);
}

Status FedRates::Feed(std::string_view line, double now_s) {
  if (line.size() > kFeedLineBytesMax) {
    return Status::InvalidArgument("a line has more than " + std::to_string(kFeedLineBytesMax) +
                                   " bytes");
  }
  Json value;
  Status status = ReadJson(line, &value);
  if (!status.ok()) return status;
  const Json* host = value.Find("host");
  if (host == nullptr || host->type != Json::Type::kText) {
    return Status::InvalidArgument("host: it must be the name of a host");
  }
  const auto known = hosts_.find(host->text);
  if (known == hosts_.end()) {
    return Status::InvalidArgument("host: there is no host " + QuotedJson(host->text) +
                                   " in this job");
  }
  Told told;
  told.at_s = now_s;
  status = ReadRate(value, "in", &told.rates.in_bit_per_s);
  if (status.ok()) status = ReadRate(value, "out", &told.rates.out_bit_per_s);
  if (status.ok()) told_[known->second] = told;
  return status;
}

std::optional<HostRates> FedRates::Of(size_t host, double now_s) const {
  const auto told = told_.find(host);
  if (told == told_.end() || now_s > told->second.at_s + kFeedHolds_s) return std::nullopt;
  return told->second.rates;
}

}  // namespace mercury::fabric
