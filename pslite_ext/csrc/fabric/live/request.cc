#include "fabric/live/request.h"

#include <cmath>
#include <string>

#include "fabric/live/node_numbers.h"

namespace mercury::fabric {

Status Check(const Request& request, size_t workers) {
  const auto [worker, number] = request.id;
  const std::string who =
      "update " + std::to_string(number) + " of worker " + std::to_string(worker);
  if (worker < 0 || static_cast<size_t>(worker) >= workers) {
    return Status::InvalidArgument(who + ": there is no such worker");
  }
  if (number < 1 || request.version < 0) {
    return Status::InvalidArgument(who + ": updates are numbered from 1, versions from 0");
  }
  if (request.bytes < 1 || request.bytes > kUpdateBytesMax) {
    return Status::InvalidArgument(who + " has " + std::to_string(request.bytes) + " bytes");
  }
  if (!std::isfinite(request.norm) || request.norm < 0) {
    return Status::InvalidArgument(who + ": its norm is no number, or below 0");
  }
  if (request.reign < 0 || request.reign > kReplicasMost) {
    return Status::InvalidArgument(who + ": so many replicas cannot have become the server");
  }
  return Status::Ok();
}

}  // namespace mercury::fabric
