#include "process/ended_threads.h"

#include <unistd.h>

#include <cstdlib>
#include <exception>

namespace mercury {
namespace {

std::terminate_handler g_earlier = nullptr;

[[noreturn]] void StandStill() {
  for (;;) pause();
}

}  // namespace

void ParkEndedThreads() {
  g_earlier = std::set_terminate([] {
    // An unwinding that no exception is behind is a thread's end.
    if (std::current_exception() == nullptr && gettid() != getpid()) StandStill();
    g_earlier();
    std::abort();
  });
}

}  // namespace mercury
