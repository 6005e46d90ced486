// When a worker's operation is over, before a van that keeps what it is given. (What travels, and
// what comes back, is tests/integration's.)
#include "messages/classic_worker.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/node_name.h"
#include "control/meta_bounds.h"
#include "harness.h"
#include "ps/internal/customer.h"
#include "ps/internal/env.h"
#include "ps/internal/postoffice.h"

using namespace mercury;  // NOLINT: a test

namespace {

constexpr auto kPatience = std::chrono::seconds(60);
constexpr size_t kBytes = 4000;

// A network that never takes anything.
class StuckVan : public ps::Van {
 public:
  void Start(int /*customer_id*/, bool /*standalone*/) override {}
  void Stop() override {}
  void Connect(const ps::Node& /*node*/) override {}
  int Bind(const ps::Node& /*node*/, int /*max_retry*/) override { return 0; }
  int RecvMsg(ps::Message* /*message*/) override { return -1; }
  int SendMsg(ps::Message& message) override {
    sent.push_back(message);
    return 0;
  }
  std::string GetType() const override { return "stuck"; }

  std::vector<ps::Message> sent;
};

// The process's one van; a worker of a job with two servers.
StuckVan& Van() {
  static StuckVan* van = [] {
    auto* made = new StuckVan;
    ps::Environment::Init({{"DMLC_ENABLE_RDMA", "stuck"},
                           {"DMLC_ENABLE_UCX", "0"},
                           {"DMLC_NUM_WORKER", "1"},
                           {"DMLC_NUM_SERVER", "2"},
                           {"DMLC_ROLE", "worker"},
                           {"PS_VERBOSE", "0"}});
    ps::Van::Register("stuck", [made]() -> ps::Van* { return made; });
    ps::Postoffice::Get()->Start(0, nullptr, false);
    return made;
  }();
  return *van;
}

class Asked {
 public:
  explicit Asked(Operation::Kind kind) : op(std::make_shared<Operation>()) {
    TensorTraits traits;
    traits.key = 7;
    traits.name = "w";
    traits.dtype = DType::kUint8;
    traits.shape = {kBytes};
    op->kind = kind;
    if (kind == Operation::Kind::kCommand) {
      op->command.claim = Claim{7, Claim::Kind::kTensor, "text"};
    } else {
      op->tensor = std::make_shared<Tensor>(traits);
      op->src = op->dst = memory.data();
    }
    op->done = [this](const Status& status) {
      outcome = status;
      ++outcomes;
    };
  }
  bool Wait() const {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (outcomes == 0 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    return outcomes == 1;
  }

  std::string memory = std::string(kBytes, 'a');
  std::shared_ptr<Operation> op;
  Status outcome;
  std::atomic<int> outcomes{0};
};

struct Job {
  Job() {
    Van().sent.clear();
    options.shares = ServerShares(2);
    options.split_bytes = 1000;
    worker = std::make_unique<ClassicWorker>(options);
  }
  ~Job() { Van().sent.clear(); }
  // A server's answer to what it was sent first.
  void Answer(int server, Code code, const std::string& text, size_t from = 0) {
    for (size_t i = from; i < Van().sent.size(); ++i) {
      ps::Message answer;
      answer.meta = Van().sent[i].meta;
      if (answer.meta.recver != NodeId(Role::kServer, server)) continue;
      answer.meta.request = false;
      answer.meta.sender = answer.meta.recver;
      answer.meta.data_type.clear();
      answer.meta.option = code == Code::kOk ? 0 : 1;
      const std::string body = code == Code::kOk ? text : Encode(Status(code, text));
      ps::SArray<char> payload;
      payload.CopyFrom(body.data(), body.size());
      answer.AddData(ps::SArray<ps::Key>(1, 0));
      answer.AddData(payload);
      return ps::Postoffice::Get()->GetCustomer(answer.meta.app_id, 0, 0)->Accept(answer);
    }
    REQUIRE_TRUE(false);
  }
  // Until what came before has been taken in: answers are, one by one.
  void Settle() {
    Asked command(Operation::Kind::kCommand);
    const size_t before = Van().sent.size();
    worker->Submit(std::move(command.op));
    ps::Message answer;
    answer.meta = Van().sent.at(before).meta;
    answer.meta.request = false;
    answer.meta.sender = answer.meta.recver;
    JobLetter asked;
    REQUIRE_OK(Decode(answer.meta.body, &asked));
    answer.meta.body = Encode(AnswerLetter{std::get<ClaimLetter>(asked).ticket, "", {}});
    ps::Postoffice::Get()->GetCustomer(answer.meta.app_id, 0, 0)->Accept(answer);
    REQUIRE_TRUE(command.Wait());
    CHECK_OK(command.outcome);
    Van().sent.resize(before);
  }
  ClassicOptions options;
  std::unique_ptr<ClassicWorker> worker;
};

}  // namespace

TEST(what_has_failed_is_over_when_nothing_of_it_is_to_be_sent) {
  Asked sum(Operation::Kind::kSum);
  Job job;
  job.worker->Submit(std::move(sum.op));
  REQUIRE_EQ(Van().sent.size(), 4U);  // a push and a pull for each server
  job.Answer(0, Code::kExhausted, "no memory");
  job.Settle();
  CHECK_EQ(sum.outcomes, 0);  // its memory is still queued for server 1
  std::vector<ps::Message> last;
  for (const ps::Message& message : Van().sent) {
    if (message.meta.push && message.meta.recver == NodeId(Role::kServer, 1)) {
      last.push_back(message);
    }
  }
  CHECK_EQ(last.size(), 1U);
  Van().sent.clear();
  CHECK_EQ(sum.outcomes, 0);
  last.clear();
  REQUIRE_EQ(sum.outcomes, 1);
  CHECK_STATUS(Code::kExhausted, sum.outcome);
  CHECK_EQ(sum.outcome.text(), "tensor 'w' on server 0: no memory");
}

TEST(a_sum_can_come_back_while_the_tensor_still_leaves) {
  Asked sum(Operation::Kind::kSum);
  Job job;
  job.worker.reset();
  job.options.piece_bytes_max = kBytes / 4;
  job.worker = std::make_unique<ClassicWorker>(job.options);
  job.worker->Submit(std::move(sum.op));
  REQUIRE_EQ(Van().sent.size(), 8U);
  for (size_t i = 0; i < 8; i += 2) {  // a piece's pull does not wait for the next piece's push
    CHECK_TRUE(Van().sent[i].meta.push);
    CHECK_FALSE(Van().sent[i + 1].meta.push);
    CHECK_EQ(Van().sent[i].meta.addr, Van().sent[i + 1].meta.addr);
  }
  job.worker->Fail(Status::Closed("over"));
}

TEST(when_the_job_fails_all_is_over_at_once) {
  Asked failed(Operation::Kind::kSum), under_way(Operation::Kind::kPush);
  Job job;
  job.worker->Submit(std::move(failed.op));
  job.worker->Submit(std::move(under_way.op));
  job.Answer(0, Code::kExhausted, "no memory");
  job.Settle();
  CHECK_EQ(failed.outcomes, 0);
  job.worker->Fail(Status::PeerLost("lost server 1"));
  for (const Asked* asked : {&failed, &under_way}) {
    CHECK_EQ(asked->outcomes, 1);
    CHECK_STATUS(Code::kPeerLost, asked->outcome);
  }
  Van().sent.clear();
  CHECK_EQ(failed.outcomes, 1);
}

TEST(what_lends_nothing_fails_at_once) {
  Asked command(Operation::Kind::kCommand);
  Job job;
  job.worker->Submit(std::move(command.op));
  ps::Message answer;
  answer.meta = Van().sent.at(0).meta;
  answer.meta.request = false;
  answer.meta.sender = answer.meta.recver;
  JobLetter asked;
  REQUIRE_OK(Decode(answer.meta.body, &asked));
  answer.meta.body = Encode(
      AnswerLetter{std::get<ClaimLetter>(asked).ticket, Encode(Status::InvalidArgument("no")), {}});
  ps::Postoffice::Get()->GetCustomer(answer.meta.app_id, 0, 0)->Accept(answer);
  REQUIRE_TRUE(command.Wait());
  CHECK_STATUS(Code::kInvalidArgument, command.outcome);
}
