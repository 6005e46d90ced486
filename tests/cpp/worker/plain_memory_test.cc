#include "worker/plain_memory.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "harness.h"

using namespace mercury;

namespace {

// Keeps what it is given, but for claims, which all workers make alike.
struct Keeper : Transport {
  std::vector<std::shared_ptr<Operation>> taken;
  void Submit(std::shared_ptr<Operation> op) override {
    if (op->kind == Operation::Kind::kCommand) return op->Finish(claims);
    taken.push_back(std::move(op));
  }
  void Fail(const Status& /*status*/) override {}
  std::string Figures() override { return ""; }
  std::string Profile() override { return ""; }
  bool TakesChunks() const override { return takes_chunks; }
  void More(const std::shared_ptr<Operation>& op) override { told.push_back(op->ready); }
  Status claims;
  bool takes_chunks = false;
  std::vector<uint64_t> told;
};

struct Front {
  Keeper transport;
  Worker worker{&transport};
  std::shared_ptr<Tensor> tensor;
  float values[4] = {};
  std::unique_ptr<MemoryWork> work;

  Front() = default;
  void Open() {
    TensorTraits traits;
    traits.key = 1;
    traits.name = "w";
    traits.shape = {4};
    REQUIRE_OK(worker.OpenTensor(traits, 1, &tensor));
  }
  Memory all() { return {values, sizeof(values)}; }
  Status Ask(Operation::Kind kind, const Memory& src, const Memory& dst) {
    return SubmitMemory(&worker, tensor, kind, src, dst, 7, &work);
  }
};

TEST(a_sum_goes_at_once_with_the_memory_itself) {
  Front front;
  front.Open();
  REQUIRE_OK(front.Ask(Operation::Kind::kSum, front.all(), front.all()));
  REQUIRE_EQ(front.transport.taken.size(), 1U);
  const Operation& op = *front.transport.taken[0];
  CHECK_TRUE(op.src == reinterpret_cast<char*>(front.values) && op.src == op.dst);
  CHECK_EQ(op.priority, 7);
  Status status;
  CHECK_FALSE(front.work->ticket().Wait(0, &status));
}

TEST(memory_is_in_use_until_nobody_holds_the_operation) {
  Front front;
  front.Open();
  REQUIRE_OK(front.Ask(Operation::Kind::kSum, front.all(), front.all()));
  front.transport.taken[0]->Finish(Status::PeerLost("worker 1 died"));
  Status status;
  REQUIRE_TRUE(front.work->ticket().Wait(0, &status));
  CHECK_STATUS(Code::kPeerLost, status);
  CHECK_FALSE(front.work->released());
  front.transport.taken.clear();
  CHECK_TRUE(front.work->released());
}

TEST(a_first_value_only_reads_and_a_pull_only_writes) {
  Front front;
  front.Open();
  REQUIRE_OK(front.Ask(Operation::Kind::kFirstValue, front.all(), {}));
  REQUIRE_OK(front.Ask(Operation::Kind::kPull, {}, front.all()));
  REQUIRE_EQ(front.transport.taken.size(), 2U);
  CHECK_TRUE(front.transport.taken[0]->dst == nullptr && front.transport.taken[1]->src == nullptr);
  CHECK_STATUS(Code::kInvalidArgument,
               front.Ask(Operation::Kind::kFirstValue, front.all(), front.all()));
  CHECK_STATUS(Code::kInvalidArgument, front.Ask(Operation::Kind::kPull, {}, {}));
  CHECK_EQ(front.transport.taken.size(), 2U);
}

TEST(memory_of_another_size_is_refused_before_anything_begins) {
  Front front;
  front.Open();
  CHECK_STATUS(Code::kInvalidArgument, front.Ask(Operation::Kind::kSum, {front.values, 12},
                                                 {front.values, sizeof(front.values)}));
  CHECK_EQ(front.transport.taken.size(), 0U);
  CHECK_TRUE(front.work == nullptr);
}

TEST(what_is_refused_leaves_its_tensor_as_it_was) {
  Front front;
  front.Open();
  CHECK_STATUS(Code::kInvalidArgument,
               front.Ask(Operation::Kind::kSum, {front.values, 12}, {front.values, 12}));
  // The value is still the servers', and not a sum that never was.
  REQUIRE_OK(front.Ask(Operation::Kind::kPull, {}, front.all()));
  REQUIRE_EQ(front.transport.taken.size(), 1U);
  CHECK_TRUE(front.transport.taken[0]->kind == Operation::Kind::kPull);
}

TEST(a_tensor_that_workers_disagree_on_takes_its_first_value_alone) {
  Front front;
  front.transport.claims = Status::InvalidArgument("worker 1 has another");
  front.Open();
  CHECK_STATUS(Code::kInvalidArgument, front.Ask(Operation::Kind::kSum, front.all(), front.all()));
  CHECK_OK(front.Ask(Operation::Kind::kFirstValue, front.all(), {}));
}

TEST(a_sum_in_chunks_goes_before_it_is_ready_and_comes_back_chunk_by_chunk) {
  for (const bool takes : {true, false}) {
    Front front;
    front.transport.takes_chunks = takes;
    front.Open();
    const auto queue = std::make_shared<ArrivalQueue>();
    REQUIRE_OK(
        SubmitChunks(&front.worker, front.tensor, front.all(), 7, {12, queue, 5}, &front.work));
    CHECK_EQ(front.transport.taken.size(), takes ? 1U : 0U);
    front.work->Ready(8);
    front.work->Ready(16);
    REQUIRE_EQ(front.transport.taken.size(), 1U);
    if (takes) CHECK_EQ(front.transport.told, (std::vector<uint64_t>{2, Operation::kWhole}));
    std::shared_ptr<Operation> op = std::move(front.transport.taken[0]);
    CHECK_EQ(op->ready.load(), Operation::kWhole);
    ArrivalQueue::Item item;
    if (takes) {
      op->arrived(2, 1);
      CHECK_FALSE(queue->Pop(0, &item));
      op->arrived(0, 2);
      REQUIRE_TRUE(queue->Pop(0, &item));
      CHECK_EQ(item.chunk, 0U);
    }
    op->Finish(Status::Ok());
    // Another lane may bring the last of it a moment after the end.
    if (takes) op->arrived(3, 1);
    for (const uint64_t chunk : takes ? std::vector<uint64_t>{1, ArrivalQueue::kOver}
                                      : std::vector<uint64_t>{0, 1, ArrivalQueue::kOver}) {
      REQUIRE_TRUE(queue->Pop(0, &item));
      CHECK_EQ(item.sum, 5U);
      CHECK_EQ(item.chunk, chunk);
    }
    CHECK_FALSE(queue->Pop(0, &item));
    front.work->Ready(16);  // nobody is left to hear it
    op.reset();
    CHECK_TRUE(front.work->released());
  }
}

TEST(a_sum_in_chunks_that_fails_is_over) {
  Front front;
  front.transport.takes_chunks = true;
  front.Open();
  const auto queue = std::make_shared<ArrivalQueue>();
  REQUIRE_OK(SubmitChunks(&front.worker, front.tensor, front.all(), 7, {4, queue, 9}, &front.work));
  front.transport.taken[0]->Finish(Status::PeerLost("worker 1 died"));
  ArrivalQueue::Item item;
  REQUIRE_TRUE(queue->Pop(0, &item));
  CHECK_EQ(item.chunk, ArrivalQueue::kOver);
  Status status;
  REQUIRE_TRUE(front.work->ticket().Wait(0, &status));
  CHECK_STATUS(Code::kPeerLost, status);
}

}  // namespace
