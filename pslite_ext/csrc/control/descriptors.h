// Whether this process can still open a connection.
//
// Thread-safety: all functions from any thread. Ownership: none; what is opened to see is closed.
#pragma once

#include <string>

namespace mercury {

bool DescriptorLeft();
// "the scheduler has no file descriptor left ...", with how many it may have.
std::string NoDescriptorLeft(const std::string& who);

}  // namespace mercury
