// What the script of a server, or of its replica, does in place of the job's rule.
//
// Thread-safety: they are called on the lane's thread, which waits for them: nothing is received or
// sent meanwhile. An error ends the job. Ownership: the memory is the caller's, and valid for the
// call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "base/status.h"

namespace mercury::fabric {

struct ServerCalls {
  // Makes the next version of `model`, of `change`, which is the sum of so many updates.
  std::function<Status(float* model, const float* change, size_t elements, int64_t updates)> update;
  // Writes to `shown` what whoever asks for this version gets; once for each that is asked for.
  std::function<Status(const float* model, float* shown, size_t elements)> request;

  bool any() const { return update != nullptr || request != nullptr; }
};

}  // namespace mercury::fabric
