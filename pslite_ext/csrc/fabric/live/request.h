// A worker's request to push an update, and whether it makes sense.
//
// Thread-safety: a plain value and a pure function.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.h"
#include "fabric/live/update_id.h"

namespace mercury::fabric {

constexpr int64_t kUpdateBytesMax = int64_t{1} << 44;

// A worker's numbers rise.
struct Request {
  UpdateId id;
  int64_t version = 0;
  int64_t bytes = 0;
  double norm = 0;
  double pushed_s = 0;  // when the script asked, by the scheduler's clock as far as it is known
  bool reduce = false;  // a part of an all-reduce
  int64_t reign = 0;    // the version is of the server that so many replicas have become by then
};

// What is wrong with it, in a job of so many workers.
Status Check(const Request& request, size_t workers);

}  // namespace mercury::fabric
