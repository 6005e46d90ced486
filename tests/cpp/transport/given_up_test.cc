#include "transport/given_up.h"

#include <memory>
#include <vector>

#include "harness.h"

using namespace mercury;  // NOLINT: a test

TEST(what_is_given_up_is_over_when_it_is_dropped_or_the_job_fails) {
  std::vector<Code> outcomes;
  const auto made = [&outcomes] {
    auto op = std::make_shared<Operation>();
    op->done = [&outcomes](const Status& status) { outcomes.push_back(status.code()); };
    return op;
  };
  GivenUp given_up;
  auto dropped = made(), held = made();
  given_up.Add(dropped, Status::Exhausted("no memory"));
  given_up.Add(held, Status::Exhausted("no memory"));
  CHECK_TRUE(outcomes.empty());
  dropped.reset();
  CHECK_TRUE(outcomes == std::vector<Code>{Code::kExhausted});
  given_up.Finish(Status::PeerLost("gone"));
  held.reset();
  CHECK_TRUE((outcomes == std::vector<Code>{Code::kExhausted, Code::kPeerLost}));
}
