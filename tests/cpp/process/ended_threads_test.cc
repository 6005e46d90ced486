#include "process/ended_threads.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <thread>

#include "harness.h"

using namespace mercury;  // NOLINT: a test

namespace {

constexpr int kCode = 7;

// How a process ends that has this on a thread while it ends; 0 if it has not ended by that.
template <typename F>
int EndsBy(F&& on_thread, unsigned within_us) {
  const pid_t child = fork();
  if (child == 0) {
    ParkEndedThreads();
    std::thread([&] { on_thread(); }).detach();
    usleep(within_us);
    _exit(kCode);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) return WTERMSIG(status);
  return WEXITSTATUS(status) == kCode ? 0 : -1;
}

void EndThread() noexcept { pthread_exit(nullptr); }
void Throw() { throw 1; }

}  // namespace

TEST(a_thread_that_is_ended_where_it_may_not_be_aborts_nothing) {
  CHECK_EQ(EndsBy(EndThread, 300000), 0);
}

TEST(an_exception_that_nobody_catches_aborts_as_ever) {
  CHECK_EQ(EndsBy(Throw, 60000000), SIGABRT);
}
