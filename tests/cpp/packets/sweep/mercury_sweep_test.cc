// What fails, fails well: the n-th send, the n-th receive, the n-th allocation on a lane's thread,
// for n = 1, 2, 3, ... Each time every operation is called back exactly once, with its sum or with
// a typed error, and everything stops.
#include <sys/socket.h>

#include <cerrno>
#include <thread>

#include "links/tcp.h"
#include "packets/plane.h"
#include "packets/sweep/failing_allocations.h"

using namespace mercury;

namespace {

using testing::allocations;
using testing::fail_from;
using testing::fail_until;
using testing::Plane;
using testing::PlaneOptions;
using testing::Random;
using testing::tests_thread;

const std::vector<size_t> kSizes = {3, 1000, 5000};

std::atomic<int64_t> sends{0}, receives{0};
std::atomic<int64_t> fail_send{0}, fail_receive{0};  // which one; 0: none
std::atomic<int> error{0};
std::atomic<uint64_t> crumbs{0};  // not 0: calls move little, or nothing

// A part of what was asked for; false: pretend that nothing can be moved now.
bool Crumble(const msghdr* whole, msghdr* message, iovec* piece) {
  *message = *whole;
  if (crumbs == 0) return true;
  const uint64_t draw = (crumbs = crumbs * 6364136223846793005 + 1442695040888963407) >> 33;
  if (draw % 7 == 0) {
    errno = EINTR;
    return false;
  }
  if (draw % 7 == 1) {
    errno = EAGAIN;
    return false;
  }
  *piece = whole->msg_iov[0];
  piece->iov_len = std::min<size_t>(piece->iov_len, 1 + draw % 97);
  message->msg_iov = piece;
  message->msg_iovlen = 1;
  return true;
}

ssize_t Send(int fd, const msghdr* message, int flags) {
  if (++sends == fail_send) {
    errno = error;
    return -1;
  }
  msghdr part;
  iovec piece;
  return Crumble(message, &part, &piece) ? sendmsg(fd, &part, flags) : -1;
}

ssize_t Receive(int fd, msghdr* message, int flags) {
  if (++receives == fail_receive) {
    errno = error;
    return -1;
  }
  msghdr part;
  iovec piece;
  return Crumble(message, &part, &piece) ? recvmsg(fd, &part, flags) : -1;
}

struct CallsReplaced {
  CallsReplaced() : before(Calls()) {
    Calls().send = Send;
    Calls().receive = Receive;
  }
  ~CallsReplaced() {
    Calls() = before;
    fail_send = fail_receive = 0;
    crumbs = 0;
  }
  TcpCalls before;
};

// A short job with errors on the way. What the operations come to is checked by the plane.
// True: nothing has failed.
bool ShortJob(const MercuryOptions& options, Code* code, const std::string& listen = "127.0.0.1") {
  Plane plane(options, listen);
  plane.StartWorkers();
  bool good = plane.WaitReady();
  for (int round = 0; round < 2 && good; ++round) good = plane.Round(kSizes);
  plane.Stop();
  const auto events = plane.events();
  *code = events.empty() ? plane.failed() : events[0].status.code();
  return good;
}

void SweepCalls(std::atomic<int64_t>* count, std::atomic<int64_t>* which, int number, Code first) {
  const CallsReplaced replaced;
  error = number;
  MercuryOptions options = PlaneOptions(2, 1);
  options.checksum = number == ENOMEM;
  int failures = 0;
  for (int64_t n = 1; n < 200; n += 1 + n / 12) {
    *count = 0;
    *which = n;
    Code code = Code::kOk;
    if (!ShortJob(options, &code, "0.0.0.0")) {
      ++failures;
      // The other end may be the first to say that the connection is gone.
      CHECK_TRUE(code == first || code == Code::kPeerLost);
    }
  }
  CHECK_TRUE(failures >= 5);
}

TEST(the_nth_send_fails) {
  SweepCalls(&sends, &fail_send, ECONNRESET, Code::kPeerLost);
  SweepCalls(&sends, &fail_send, ENOMEM, Code::kExhausted);
}

TEST(the_nth_receive_fails) {
  SweepCalls(&receives, &fail_receive, ECONNRESET, Code::kPeerLost);
  SweepCalls(&receives, &fail_receive, ENOMEM, Code::kExhausted);
}

TEST(calls_that_move_little) {
  const CallsReplaced replaced;
  Random random;
  crumbs = random() | 1;
  for (const bool checksum : {false, true}) {
    MercuryOptions options = PlaneOptions(2, 2);
    options.checksum = checksum;
    Code code = Code::kOk;
    CHECK_TRUE(ShortJob(options, &code, "0.0.0.0"));
    CHECK_TRUE(code == Code::kOk);
  }
}

void SweepAllocations(const MercuryOptions& options, int64_t burst) {
  tests_thread = std::this_thread::get_id();
  int failures = 0;
  for (int64_t n = 1; n < 3000; n += 1 + n / 40) {
    allocations = 0;
    fail_from = n;
    fail_until = n + burst;
    Code code = Code::kOk;
    if (!ShortJob(options, &code)) {
      ++failures;
      CHECK_TRUE(code == Code::kExhausted || code == Code::kPeerLost);
    }
    if (allocations < n) break;
  }
  fail_until = 0;
  CHECK_TRUE(failures >= 5);
}

TEST(the_nth_allocation_fails) { SweepAllocations(PlaneOptions(2, 1), 1); }

TEST(some_allocations_fail_from_the_nth_on) {
  MercuryOptions options = PlaneOptions(2, 1);
  options.lanes = 2;
  options.deterministic = true;
  SweepAllocations(options, 4);
}

}  // namespace
