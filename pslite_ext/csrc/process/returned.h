// How functions of the C API return: a Status becomes a number and the calling thread's last
// failure.
//
// Thread-safety: the last failure and the last text are the calling thread's own. Invariant:
// nothing is thrown through the C API.
#pragma once

#include <exception>
#include <new>
#include <string>

#include "base/status.h"

namespace mercury {

inline Status& LastFailure() {
  thread_local Status status;
  return status;
}

inline int Return(const Status& status) {
  if (!status.ok()) LastFailure() = status;
  return static_cast<int>(status.code());
}

template <typename F>
int Guarded(F&& body) {
  try {
    return Return(body());
  } catch (const std::bad_alloc&) {
    return Return(Status::Exhausted("out of memory"));
  } catch (const std::exception& error) {
    return Return(Status::Internal(error.what()));
  }
}

// A text for Python: `otherwise` if there is no memory for it.
template <typename F>
const char* Text(F&& text, const char* otherwise) {
  thread_local std::string kept;
  try {
    kept = text();
    return kept.c_str();
  } catch (const std::exception&) {
    return otherwise;
  }
}

}  // namespace mercury
