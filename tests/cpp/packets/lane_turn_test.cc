#include "packets/lane_turn.h"

#include "harness.h"

using namespace mercury;
namespace {

// True: it had its turn.
bool HasTurn(std::mutex* mutex, bool* torn) {
  try {
    const LaneTurn turn(mutex, torn);
    CHECK_TRUE(!mutex->try_lock());
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

TEST(turns_follow_each_other) {
  std::mutex mutex;
  bool torn = false;
  CHECK_TRUE(HasTurn(&mutex, &torn));
  CHECK_TRUE(HasTurn(&mutex, &torn));
}

TEST(after_an_exception_nobody_has_a_turn) {
  std::mutex mutex;
  bool torn = false;
  try {
    const LaneTurn turn(&mutex, &torn);
    throw std::bad_alloc();
  } catch (const std::bad_alloc&) {
    CHECK_TRUE(!HasTurn(&mutex, &torn));
    CHECK_TRUE(!HasTurn(&mutex, &torn));
  }
  CHECK_TRUE(mutex.try_lock());
  mutex.unlock();
}

// While another exception is handled, one that is caught inside is none of the turn's.
TEST(an_exception_that_was_there_before_is_none_of_a_turn_s) {
  std::mutex mutex;
  bool torn = false;
  struct AtTheEnd {
    std::mutex* mutex;
    bool* torn;
    ~AtTheEnd() { CHECK_TRUE(HasTurn(mutex, torn)); }
  };
  try {
    const AtTheEnd end{&mutex, &torn};
    throw std::bad_alloc();
  } catch (const std::bad_alloc&) {
    CHECK_TRUE(HasTurn(&mutex, &torn));
  }
}

}  // namespace
