#include "control/descriptors.h"

#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>

namespace mercury {

bool DescriptorLeft() {
  const int fd = eventfd(0, EFD_CLOEXEC);
  if (fd < 0) return errno != EMFILE && errno != ENFILE;
  close(fd);
  return true;
}

std::string NoDescriptorLeft(const std::string& who) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return who + " has no file descriptor left to reach others: it may have " +
         std::to_string(limit.rlim_cur) + " (ulimit -n); give it more";
}

}  // namespace mercury
