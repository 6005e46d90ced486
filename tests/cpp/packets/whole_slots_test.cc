// What goes on by whole slots: how much of it a worker has under way, however small its credit is.
#include <memory>
#include <utility>

#include "harness.h"
#include "packets/lone_worker.h"

using namespace mercury;           // NOLINT: a test
using namespace mercury::testing;  // NOLINT: a test

// Their servers answer no part of a slot: a window of less would never be answered.
TEST(two_slots_are_sent_of_what_is_answered_by_whole_slots) {
  enum class As { kSum, kFirstValue, kAsynchronous, kDeterministic };
  for (const As as : {As::kSum, As::kFirstValue, As::kAsynchronous, As::kDeterministic}) {
    WorkerStreamsOptions options = WorkerOptions();
    options.policy.credit.fixed_bytes = 100;
    options.deterministic = as == As::kDeterministic;
    LoneWorker worker(options);
    const auto t = worker.Tensor(1, 4 * 1024, as == As::kAsynchronous);
    auto op = worker.Operation_(t.get());
    if (as == As::kFirstValue) op->kind = Operation::Kind::kFirstValue;
    worker.streams.Submit(std::move(op), worker.now_us);
    const size_t packets = as == As::kSum ? 1 : 2;
    CHECK_EQ(worker.Drain().size(), 1 + packets);  // the first of all declares it
  }
}
