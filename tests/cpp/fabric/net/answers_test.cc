#include "fabric/net/answers.h"

#include <vector>

#include "harness.h"

using namespace mercury::fabric;
using mercury::Code;
using mercury::Status;

namespace {

const Answers::Send kUnsent = [](const Request& /*request*/) { CHECK_TRUE(false); };

}  // namespace

TEST(the_phases_are_those_of_the_table) {
  Answers answers(true);
  Status status;
  CHECK_FALSE(answers.WaitBegun(0, &status));
  answers.Begin();
  CHECK_TRUE(answers.WaitBegun(0, &status));
  CHECK_FALSE(answers.WaitEnded(0, &status));
  answers.End();
  answers.Fail(Status::PeerLost("too late"));
  CHECK_TRUE(answers.WaitEnded(0, &status));
  CHECK_OK(status);
  CHECK_OK(answers.failure());
}

TEST(every_wait_ends_with_the_first_failure) {
  Answers answers(true);
  int64_t number = 0, version = 0;
  answers.Begin();
  CHECK_OK(answers.Push(1, [](const Request& /*request*/) {}, &number));
  Status status;
  std::shared_ptr<const Vector> got;
  CHECK_FALSE(answers.WaitSettled(0, &status));
  CHECK_FALSE(answers.WaitModel(0, &status, &got, &version));
  answers.Fail(Status::PeerLost("the first"));
  answers.Fail(Status::PeerLost("the second"));
  for (auto wait : {&Answers::WaitBegun, &Answers::WaitEnded, &Answers::WaitSettled}) {
    CHECK_TRUE((answers.*wait)(0, &status));
    CHECK_EQ(status.text(), "the first");
  }
  CHECK_TRUE(answers.WaitModel(0, &status, &got, &version));
  CHECK_EQ(status.text(), "the first");
  CHECK_TRUE(got == nullptr);
  CHECK_STATUS(Code::kPeerLost, answers.Push(1, kUnsent, &number));
}

TEST(updates_are_numbered_and_computed_from_what_was_got_last) {
  Answers answers(true);
  double weight = 0;
  CHECK_STATUS(Code::kClosed, answers.Weight(&weight));
  answers.Enter(0.5, {});
  answers.Begin();
  CHECK_OK(answers.Weight(&weight));
  CHECK_EQ(weight, 0.5);
  std::vector<Request> sent;
  const auto send = [&](const Request& request) { sent.push_back(request); };
  int64_t number = 0;
  CHECK_OK(answers.Push(3, send, &number));
  CHECK_EQ(number, 1);
  CHECK_OK(answers.AskModel([](int64_t least) { CHECK_EQ(least, 0); }));
  answers.Got({7, 2}, std::make_shared<const Vector>(2, 1));
  Status status;
  std::shared_ptr<const Vector> got;
  int64_t version = 0;
  CHECK_TRUE(answers.WaitModel(0, &status, &got, &version));
  CHECK_EQ(version, 7);
  CHECK_TRUE(*got == Vector(2, 1));
  CHECK_OK(answers.Push(4, send, &number));
  REQUIRE_EQ(sent.size(), 2);
  CHECK_EQ(sent[0].version, 0);
  CHECK_EQ(sent[1].version, 7);
  CHECK_EQ(sent[0].reign, 0);
  CHECK_EQ(sent[1].reign, 2);
  CHECK_EQ(sent[1].norm, 4);
  CHECK_EQ(sent[1].id.number, 2);
  answers.Settled(1, Fate::kCommitted);
  CHECK_FALSE(answers.WaitSettled(0, &status));
  answers.Settled(2, Fate::kTooOld);
  CHECK_TRUE(answers.WaitSettled(0, &status));
  CHECK_TRUE(answers.FateOf(2) == Fate::kTooOld);
  CHECK_FALSE(answers.FateOf(3).has_value());
}

TEST(one_model_or_sum_is_asked_for_at_a_time_and_a_sum_is_no_model) {
  Answers answers(true);
  answers.Begin();
  int asked = 0;
  const auto ask = [&](int64_t /*least*/) { ++asked; };
  CHECK_OK(answers.AskModel(ask));
  CHECK_OK(answers.AskModel(ask));
  CHECK_EQ(asked, 1);
  CHECK_STATUS(Code::kInvalidArgument, answers.Reduce(kUnsent));
  Status status;
  std::shared_ptr<const Vector> got;
  int64_t version = 0, number = 0;
  answers.Got({3, 0}, std::make_shared<const Vector>(1, 0));
  CHECK_TRUE(answers.WaitModel(0, &status, &got, &version));
  CHECK_OK(answers.Reduce([](const Request& request) { CHECK_TRUE(request.reduce); }));
  answers.Got({9, 1}, std::make_shared<const Vector>(1, 0));
  CHECK_TRUE(answers.WaitModel(0, &status, &got, &version));
  CHECK_OK(answers.Push(1, [](const Request& request) { CHECK_EQ(request.version, 3); }, &number));
}

TEST(no_update_is_computed_from_what_is_discarded) {
  Answers answers(true);
  answers.Begin();
  Status status;
  std::shared_ptr<const Vector> got;
  int64_t version = 0, number = 0;
  const auto ask = [&] { CHECK_OK(answers.AskModel([](int64_t /*least*/) {})); };
  const auto come = [&](int64_t its) { answers.Got({its, 0}, std::make_shared<const Vector>()); };
  const auto push_from = [&](int64_t its) {
    const auto send = [its](const Request& request) { CHECK_EQ(request.version, its); };
    CHECK_OK(answers.Push(1, send, &number));
  };
  ask();
  come(3);
  CHECK_TRUE(answers.WaitModel(0, &status, &got, &version));
  ask();
  CHECK_FALSE(answers.Discard(0, &status));
  come(8);
  CHECK_TRUE(answers.Discard(0, &status));
  CHECK_OK(status);
  push_from(3);
  ask();
  come(9);
  CHECK_TRUE(answers.WaitModel(0, &status, &got, &version));
  push_from(9);
}

TEST(where_staleness_is_bounded_a_model_has_so_many_updates_of_each) {
  Answers answers(true);
  Staleness staleness;
  staleness.updates = 2;
  answers.Enter(1, staleness);
  answers.Begin();
  int64_t number = 0;
  for (int i = 0; i < 5; ++i) {
    CHECK_OK(answers.Push(1, [](const Request& /*request*/) {}, &number));
  }
  int64_t least = -1;
  CHECK_OK(answers.AskModel([&](int64_t updates) { least = updates; }));
  CHECK_EQ(least, 3);
}

TEST(who_is_no_worker_pushes_nothing) {
  Answers answers(false);
  answers.Begin();
  int64_t number = 0;
  CHECK_STATUS(Code::kClosed, answers.Push(1, kUnsent, &number));
  CHECK_STATUS(Code::kClosed, answers.Reduce(kUnsent));
}
