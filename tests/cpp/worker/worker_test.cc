// What a worker does with an operation before a transport has it.
#include "worker/worker.h"

#include <cstring>
#include <string>
#include <vector>

#include "harness.h"
#include "worker/ticket.h"

using namespace mercury;

namespace {

class Recorder : public Transport {
 public:
  void Submit(std::shared_ptr<Operation> op) override {
    const bool claim = op->kind == Operation::Kind::kCommand && op->command.claim.has_value();
    (claim ? claims : taken).push_back(op);
    if (claim && agreed && op->done) op->Finish(Status::Ok());
  }
  void Fail(const Status& /*status*/) override {}
  std::string Rounds() override { return "1 0 7\n"; }
  Status TakeRounds(const std::string& text) override {
    rounds = text;
    return Status::Ok();
  }
  std::string Figures() override { return ""; }
  std::string Profile() override { return ""; }

  bool agreed = false;  // on all that is claimed, at once
  std::string rounds;
  std::vector<std::shared_ptr<Operation>> taken, claims;
};

struct Front {
  // What all agree on, unless a test decides.
  explicit Front(bool agreed = true) : worker(&transport) {
    transport.agreed = agreed;
    TensorTraits traits;
    traits.key = 1;
    traits.name = "w";
    traits.shape = {4};
    REQUIRE_OK(worker.OpenTensor(traits, 1, &tensor));
  }
  void Ask(Operation::Kind kind) { worker.Submit(worker.NewOperation(kind, tensor, 3)); }
  Recorder transport;
  Worker worker;
  std::shared_ptr<Tensor> tensor;
};

}  // namespace

TEST(an_operation_is_compressed_as_its_tensor_was_when_it_was_made) {
  Front front;
  REQUIRE_OK(front.worker.SetCompression(front.tensor.get(), "2bit", 0.25F));
  const auto op = front.worker.NewOperation(Operation::Kind::kSum, front.tensor, 0);
  REQUIRE_OK(front.worker.SetCompression(front.tensor.get(), "none", 0.5F));
  CHECK_TRUE(op->codec == FindCompression("2bit"));
  CHECK_EQ(op->parameter, 0.25F);
  CHECK_TRUE(front.worker.SetCompression(front.tensor.get(), "3bit", 0.5F).code() ==
             Code::kInvalidArgument);
}

TEST(an_operation_that_its_transport_drops_tells_who_waits) {
  Front front;
  auto op = front.worker.NewOperation(Operation::Kind::kCommand, nullptr, 0);
  const Ticket ticket(op.get());
  front.worker.Submit(std::move(op));
  Status status;
  CHECK_FALSE(ticket.Wait(0, &status));
  front.transport.taken.clear();
  REQUIRE_TRUE(ticket.Wait(1000, &status));
  CHECK_TRUE(status.code() == Code::kExhausted);
}

TEST(a_ticket_hears_once_and_may_be_dropped) {
  Front front;
  auto op = front.worker.NewOperation(Operation::Kind::kRows, front.tensor, 0);
  op->rows.row_bytes = 8;
  Status status;
  {
    const Ticket ticket(op.get());
    CHECK_FALSE(ticket.Wait(0, &status));
    const int64_t set[] = {1, 5, 42};  // a count, a row's number, its value
    op->answers = {Buffer::Allocate(sizeof(set)), Buffer()};
    std::memcpy(op->answers[0].data, set, sizeof(set));
    op->Finish(Status::Ok());
    REQUIRE_TRUE(ticket.Wait(1000, &status));
    CHECK_OK(status);
    REQUIRE_EQ(ticket.num_rows(), 1U);
    int64_t row = 0, value = 0;
    ticket.CopyRows(&row, reinterpret_cast<char*>(&value));
    CHECK_EQ(row, 5);
    CHECK_EQ(value, 42);
  }
  auto other = front.worker.NewOperation(Operation::Kind::kCommand, nullptr, 0);
  {
    const Ticket dropped(other.get());
  }
  other->Finish(Status::Ok());
  CHECK_TRUE(other->over());
}

TEST(a_tensor_waits_until_all_workers_have_it_but_for_its_first_value) {
  Front front(false);
  REQUIRE_EQ(front.transport.claims.size(), 1U);
  const Operation::Command& command = front.transport.claims[0]->command;
  REQUIRE_TRUE(command.claim.has_value());
  CHECK_EQ(command.claim->subject, 1U);
  CHECK_EQ(command.about.label, std::string("tensor 'w'"));
  CHECK_EQ(command.claim->text, std::string("float32 of shape (4,)"));
  front.Ask(Operation::Kind::kFirstValue);
  front.Ask(Operation::Kind::kSum);
  CHECK_EQ(front.transport.taken.size(), 1U);
  front.transport.claims[0]->Finish(Status::Ok());
  CHECK_EQ(front.transport.taken.size(), 1U);
  REQUIRE_EQ(front.transport.claims.size(), 2U);
  front.transport.claims[1]->Finish(Status::Ok());
  CHECK_EQ(front.transport.taken.size(), 2U);
}

TEST(sums_wait_until_all_workers_make_them_in_the_same_manner) {
  Front front;
  std::vector<Claim> said;
  const auto sum = [&](Operation::Kind kind) {
    front.Ask(kind);
    said.clear();
    for (const auto& op : front.transport.claims) {
      REQUIRE_TRUE(op->command.claim.has_value());
      said.push_back(*op->command.claim);
    }
    return said.size();
  };
  CHECK_EQ(sum(Operation::Kind::kPull), 1U);  // the tensor itself
  CHECK_EQ(sum(Operation::Kind::kSum), 2U);
  CHECK_TRUE(said.back().of == Claim::Kind::kSums);
  CHECK_EQ(said.back().text, std::string("whole arrays"));
  CHECK_EQ(front.transport.claims.back()->command.about.label, std::string("tensor 'w'"));
  CHECK_EQ(sum(Operation::Kind::kSum), 2U);  // as before
  REQUIRE_OK(front.worker.SetCompression(front.tensor.get(), "2bit", 0.25F));
  CHECK_EQ(sum(Operation::Kind::kPush), 3U);
  CHECK_EQ(sum(Operation::Kind::kRows), 4U);
  CHECK_EQ(said.back().text, std::string("row_sparse arrays"));
  REQUIRE_OK(front.worker.SetCompression(front.tensor.get(), "none", 0.5F));
  CHECK_EQ(sum(Operation::Kind::kSum), 5U);
  front.tensor->use = "an optimizer";
  CHECK_EQ(sum(Operation::Kind::kSum), 6U);
  CHECK_EQ(said.back().text, std::string("whole arrays for an optimizer"));
  for (size_t i = 0; i < said.size(); ++i) {
    for (size_t j = 0; j < i; ++j) CHECK_TRUE(said[i].subject != said[j].subject);
  }
  front.transport.agreed = false;
  REQUIRE_OK(front.worker.SetCompression(front.tensor.get(), "2bit", 0.5F));
  auto op = front.worker.NewOperation(Operation::Kind::kSum, front.tensor, 0);
  Status over;
  op->done = [&over](const Status& status) { over = status; };
  front.worker.Submit(std::move(op));
  const size_t taken = front.transport.taken.size();
  front.transport.claims.back()->Finish(Status::InvalidArgument("workers disagree"));
  CHECK_STATUS(Code::kInvalidArgument, over);
  CHECK_EQ(front.transport.taken.size(), taken);
  CHECK_TRUE(front.tensor->gate->refusal().code() == Code::kInvalidArgument);
}

TEST(what_waits_for_nobody_is_summed_in_any_manner) {
  Recorder messages;
  messages.agreed = true;
  Worker worker(&messages);
  TensorTraits traits;
  traits.key = 1;
  traits.shape = {4};
  traits.asynchronous = true;
  std::shared_ptr<Tensor> tensor;
  REQUIRE_OK(worker.OpenTensor(traits, 1, &tensor));
  worker.Submit(worker.NewOperation(Operation::Kind::kPush, tensor, 0));
  CHECK_EQ(messages.claims.size(), 1U);
  CHECK_EQ(messages.taken.size(), 1U);
}

TEST(rows_wait_with_their_parameter_and_a_tensor_is_claimed_once) {
  Front front(false);
  TensorTraits rows = front.tensor->traits;
  rows.key = 2;
  std::shared_ptr<Tensor> further, again;
  REQUIRE_OK(front.worker.OpenTensor(rows, 1, &further));
  REQUIRE_OK(front.worker.OpenTensor(front.tensor->traits, 1, &again));
  CHECK_TRUE(further->gate == front.tensor->gate);
  CHECK_EQ(front.transport.claims.size(), 1U);
  front.transport.claims[0]->Finish(Status::InvalidArgument("workers disagree"));
  CHECK_TRUE(further->gate->refusal().code() == Code::kInvalidArgument);
}

TEST(a_model_is_claimed_with_its_keys) {
  Front front;
  std::shared_ptr<Operation> op;
  REQUIRE_OK(front.worker.NewModelClaim(7, "0\tweight\n", &op));
  front.worker.Submit(std::move(op));
  const Claim claim = front.transport.claims.at(1)->command.claim.value();
  CHECK_TRUE(claim.subject == 7 && claim.of == Claim::Kind::kModel);
  CHECK_EQ(claim.text, std::string("0\tweight\n"));
  front.worker.Submit(front.worker.NewStepsClaim(8, "lr = 1"));
  const auto& said = front.transport.claims.at(2)->command;
  CHECK_TRUE(said.claim->subject == 8 && said.claim->of == Claim::Kind::kSteps);
  CHECK_EQ(said.claim->text, std::string("lr = 1"));
  CHECK_EQ(said.about.label, std::string("the workers' optimizers differ"));
}

TEST(a_model_that_cannot_be_claimed_is_refused) {
  Front front;
  const std::string longest(kClaimTextBytesMax, 'x');
  std::shared_ptr<Operation> op;
  REQUIRE_OK(front.worker.NewModelClaim(7, longest, &op));
  CHECK_TRUE(op->command.claim->text == longest);
  CHECK_STATUS(Code::kInvalidArgument, front.worker.NewModelClaim(7, longest + 'x', &op));
}

TEST(who_hears_of_a_disagreement_by_another_worker_s_end_is_told_what_it_is) {
  const Status ended = Status::PeerLost("why").By({Blame::kEnded, NodeId(Role::kWorker, 1)});
  Front front(false);
  const Subject its = front.tensor->gate->about(), another{Subject::kTensor, its.key + 1, ""};
  for (const auto& [status, code] :
       {std::pair{ended.Of(Code::kInvalidArgument).About(its), Code::kInvalidArgument},
        std::pair{ended.Of(Code::kInvalidArgument).About(another), Code::kPeerLost},
        std::pair{ended.Of(Code::kClosed).About(its), Code::kPeerLost}}) {
    Front hears(false);
    hears.transport.claims[0]->Finish(status);
    CHECK_TRUE(hears.tensor->gate->refusal().code() == code);
    CHECK_EQ(hears.tensor->gate->refusal().text(), status.text());
  }
}

TEST(rows_that_a_tensor_has_not_are_refused) {
  Front front;  // of four elements: two rows of two
  const auto check = [&](const std::vector<int64_t>& numbers, uint32_t row_bytes = 8) {
    return Worker::CheckRows(*front.tensor, {numbers.data(), numbers.size(), nullptr, row_bytes});
  };
  CHECK_OK(check({}));
  CHECK_OK(check({0, 1}));
  for (const int64_t row : {int64_t{-1}, int64_t{2}, int64_t{1} << 62}) {
    const Status status = check({row});
    CHECK_STATUS(Code::kInvalidArgument, status);
    CHECK_EQ(status.text(), "tensor 'w' has 2 rows, so no row " + std::to_string(row));
  }
  CHECK_STATUS(Code::kInvalidArgument, check({1, 0}));
  CHECK_STATUS(Code::kInvalidArgument, check({1, 1}));
  CHECK_STATUS(Code::kInvalidArgument, check({0}, 0));
  CHECK_STATUS(Code::kInvalidArgument, check({0}, 12));
}

TEST(where_sums_are_to_be_the_same_in_every_run_none_is_asynchronous) {
  Recorder messages;
  for (const bool deterministic : {false, true}) {
    Worker worker(&messages, deterministic);
    std::shared_ptr<Tensor> tensor;
    TensorTraits traits;
    traits.key = 1;
    traits.name = "w";
    REQUIRE_OK(worker.OpenTensor(traits, 1, &tensor));
    traits.key = 2;
    traits.asynchronous = true;
    const Status status = worker.OpenTensor(traits, 2, &tensor);
    CHECK_STATUS(deterministic ? Code::kInvalidArgument : Code::kOk, status);
    CHECK_EQ(status.text().find("MERCURY_DETERMINISTIC=1") != std::string::npos, deterministic);
  }
}

TEST(who_comes_while_the_job_runs_takes_over_what_the_others_have_agreed_on) {
  Front other;
  REQUIRE_OK(other.worker.SetCompression(other.tensor.get(), "2bit", 0.25F));
  other.tensor->use = "an optimizer";
  const auto ask = [](Worker* of, Operation::Kind kind, const std::shared_ptr<Tensor>& its) {
    auto op = of->NewOperation(kind, its, 0);
    op->done = [](const Status& /*status*/) {};
    of->Submit(op);
  };
  ask(&other.worker, Operation::Kind::kSum, other.tensor);
  CHECK_EQ(other.transport.claims.size(), 2U);  // the tensor, and how it is summed
  const std::string standing = other.worker.Standing();

  Recorder transport;
  Worker worker(&transport, false, true);
  TensorTraits traits = other.tensor->traits;
  std::shared_ptr<Tensor> tensor;
  REQUIRE_OK(worker.OpenTensor(traits, traits.key, &tensor));
  Status status;
  auto op = worker.NewOperation(Operation::Kind::kSum, tensor, 0);
  op->done = [&](const Status& said) { status = said; };
  worker.Submit(op);
  CHECK_STATUS(Code::kClosed, status);  // it has not been let in
  ask(&worker, Operation::Kind::kPull, tensor);
  CHECK_EQ(transport.taken.size(), 1U);
  REQUIRE_OK(worker.Enter(standing));
  CHECK_EQ(transport.rounds, "1 0 7\n");
  tensor->use = "an optimizer";
  REQUIRE_OK(worker.SetCompression(tensor.get(), "2bit", 0.25F));
  ask(&worker, Operation::Kind::kSum, tensor);
  CHECK_EQ(transport.taken.size(), 2U);
  CHECK_TRUE(transport.claims.empty());
  // What is new to all is agreed on as ever, and so is another manner, by the number that all have.
  REQUIRE_OK(worker.SetCompression(tensor.get(), "none", 0));
  ask(&worker, Operation::Kind::kSum, tensor);
  REQUIRE_OK(other.worker.SetCompression(other.tensor.get(), "none", 0));
  ask(&other.worker, Operation::Kind::kSum, other.tensor);
  REQUIRE_EQ(transport.claims.size(), 1U);
  CHECK_EQ(transport.claims[0]->command.claim->subject,
           other.transport.claims.back()->command.claim->subject);
  traits.key = 2;
  std::shared_ptr<Tensor> fresh;
  REQUIRE_OK(worker.OpenTensor(traits, traits.key, &fresh));
  CHECK_EQ(transport.claims.size(), 2U);
  for (const char* const wrong : {"", "1 2\nrounds\n", "x\nrounds\n", "1 1 0 0 0.5\n"}) {
    CHECK_STATUS(Code::kCorrupt, worker.Enter(wrong));
  }
}
