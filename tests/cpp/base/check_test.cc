#include "base/check.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <string>

#include "harness.h"
#include "policy/urgency_queue.h"

using namespace mercury;
namespace {

// What a child that does this says, and the signal that ends it; 0: none.
std::string Said(const std::function<void()>& what, int* signal) {
  int ends[2];
  REQUIRE_TRUE(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    what();
    _exit(0);
  }
  close(ends[1]);
  std::string said;
  char piece[256];
  for (ssize_t got; (got = read(ends[0], piece, sizeof(piece))) > 0;) {
    said.append(piece, static_cast<size_t>(got));
  }
  close(ends[0]);
  int status = 0;
  CHECK_EQ(waitpid(child, &status, 0), child);
  *signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return said;
}

#ifdef MERCURY_CHECKED

TEST(what_does_not_hold_ends_the_process_and_is_named) {
  int signal = 0;
  const int one = 1;
  const std::string said = Said([&] { MERCURY_CHECK(one == 2); }, &signal);
  CHECK_EQ(signal, SIGABRT);
  CHECK_TRUE(said.find("check_test.cc:") != std::string::npos);
  CHECK_TRUE(said.find("MERCURY_CHECK(one == 2) does not hold") != std::string::npos);
}

TEST(a_unit_that_is_used_wrongly_says_so) {
  int signal = 0;
  const std::string said = Said([] { UrgencyQueue<int>().Pop(); }, &signal);
  CHECK_EQ(signal, SIGABRT);
  CHECK_TRUE(said.find("urgency_queue.h:") != std::string::npos);
}

#else

TEST(a_release_does_not_look) {
  int signal = 0, looks = 0;
  const std::string said = Said(
      [&] {
        MERCURY_CHECK(++looks == 0);
        _exit(looks);
      },
      &signal);
  CHECK_EQ(signal, 0);
  CHECK_EQ(said, "");
}

#endif

TEST(what_holds_says_nothing) {
  int signal = 0;
  const int one = 1;
  CHECK_EQ(Said([&] { MERCURY_CHECK(one == 1); }, &signal), "");
  CHECK_EQ(signal, 0);
}

}  // namespace
