// Threads that Python ends while it ends itself. It unwinds their stacks; where C++ may not be
// unwound, as in a wait of Gloo's, that ends the process by SIGABRT, whatever its exit code was.
//
// Thread-safety: once, as Python ends.
#pragma once

namespace mercury {

// From now on such a thread stands still instead, until the process has ended.
void ParkEndedThreads();

}  // namespace mercury
