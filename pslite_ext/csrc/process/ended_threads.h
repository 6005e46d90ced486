// Threads that Python ends while it ends itself. It unwinds their stacks, and where one of C++ may
// not be unwound, as a wait of Gloo's, that would end the process by SIGABRT whatever its exit code.
//
// Thread-safety: once, as Python ends.
#pragma once

namespace mercury {

// From now on such a thread stands still instead, until the process has ended.
void ParkEndedThreads();

}  // namespace mercury
