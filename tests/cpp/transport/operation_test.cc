// When an operation is over: once, and not while its memory may still be read.
#include "transport/operation.h"

#include <memory>
#include <utility>
#include <vector>

#include "harness.h"

using namespace mercury;  // NOLINT: a test

namespace {

std::shared_ptr<Operation> Made(std::vector<Status>* outcomes) {
  auto op = std::make_shared<Operation>();
  op->done = [outcomes](const Status& status) { outcomes->push_back(status); };
  return op;
}

}  // namespace

TEST(a_failure_is_told_when_the_last_holder_lets_go) {
  std::vector<Status> outcomes;
  auto op = Made(&outcomes);
  std::shared_ptr<void> packet = op;
  op->FailWhenDropped(Status::Exhausted("no memory"));
  op->FailWhenDropped(Status::Internal("another lane's"));
  op.reset();
  CHECK_TRUE(outcomes.empty());
  packet.reset();
  REQUIRE_EQ(outcomes.size(), 1U);
  CHECK_STATUS(Code::kExhausted, outcomes[0]);
}

TEST(the_end_of_the_job_does_not_wait_for_holders) {
  std::vector<Status> outcomes;
  auto op = Made(&outcomes);
  op->FailWhenDropped(Status::Exhausted("no memory"));
  op->Finish(Status::PeerLost("lost server 1"));
  REQUIRE_EQ(outcomes.size(), 1U);
  CHECK_STATUS(Code::kPeerLost, outcomes[0]);
  op.reset();
  CHECK_EQ(outcomes.size(), 1U);
}

TEST(the_memory_is_there_until_the_failure_has_been_told) {
  auto memory = std::make_shared<int>(1);
  const std::weak_ptr<int> watched = memory;
  bool there = false;
  auto op = std::make_shared<Operation>();
  op->keep = std::move(memory);
  op->done = [&](const Status& /*status*/) { there = !watched.expired(); };
  op->FailWhenDropped(Status::Exhausted("no memory"));
  op.reset();
  CHECK_TRUE(there);
  CHECK_TRUE(watched.expired());
}

TEST(who_drops_what_was_submitted_fails_it) {
  std::vector<Status> outcomes;
  Made(&outcomes).reset();
  CHECK_TRUE(outcomes.empty());  // nobody waits for what was never submitted
  auto op = Made(&outcomes);
  op->fail_if_dropped = true;
  op.reset();
  REQUIRE_EQ(outcomes.size(), 1U);
  CHECK_STATUS(Code::kExhausted, outcomes[0]);
}
