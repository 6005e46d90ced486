#include "transport/gate.h"

#include <string>
#include <thread>
#include <vector>

#include "harness.h"

using namespace mercury;

namespace {

struct Door {
  Door()
      : gate({Subject::kTensor, 7, "w"},
             [this](std::shared_ptr<Operation> op) { passed.push_back(op); }) {}
  // An operation, and what became of it: -1 while it waits or has passed.
  std::shared_ptr<Operation> Send(int* code, Operation::Kind kind = Operation::Kind::kSum) {
    auto op = std::make_shared<Operation>();
    op->kind = kind;
    op->done = [code](const Status& status) { *code = static_cast<int>(status.code()); };
    gate.Take(op);
    return op;
  }
  std::vector<std::shared_ptr<Operation>> passed;
  Gate gate;
};

}  // namespace

TEST(what_waits_passes_in_order_once_it_opens) {
  Door door;
  int first = -1, second = -1, third = -1;
  const auto a = door.Send(&first), b = door.Send(&second);
  CHECK_EQ(door.passed.size(), 0U);
  CHECK_FALSE(door.gate.open());
  door.gate.Decide(Status::Ok());
  const auto c = door.Send(&third);
  REQUIRE_EQ(door.passed.size(), 3U);
  CHECK_TRUE(door.passed[0] == a && door.passed[1] == b && door.passed[2] == c);
  CHECK_TRUE(door.gate.open());
  CHECK_TRUE(first == -1 && second == -1 && third == -1);
}

TEST(a_refusal_fails_all_and_sticks) {
  Door door;
  int before = -1, after = -1;
  door.Send(&before);
  door.gate.Decide(Status::InvalidArgument("no"));
  door.gate.Decide(Status::Ok());
  door.Send(&after);
  CHECK_EQ(before, static_cast<int>(Code::kInvalidArgument));
  CHECK_EQ(after, static_cast<int>(Code::kInvalidArgument));
  CHECK_EQ(door.passed.size(), 0U);
  CHECK_EQ(door.gate.refusal().text(), std::string("no"));
}

TEST(a_sum_in_another_manner_closes_it_until_that_is_decided_too) {
  Door door;
  uint64_t number = 0;
  const Manner whole;
  Manner rows;
  rows.rows = true;
  CHECK_TRUE(door.gate.ClosesFor(whole, &number));
  CHECK_EQ(number, 1U);
  int first = -1, second = -1, third = -1;
  door.Send(&first);
  door.gate.Decide(Status::Ok());  // the type
  CHECK_EQ(door.passed.size(), 0U);
  door.gate.Decide(Status::Ok());  // the manner
  CHECK_EQ(door.passed.size(), 1U);
  CHECK_FALSE(door.gate.ClosesFor(whole, &number));
  CHECK_TRUE(door.gate.open());
  CHECK_TRUE(door.gate.ClosesFor(rows, &number));
  CHECK_EQ(number, 2U);
  CHECK_FALSE(door.gate.open());
  door.Send(&second);
  CHECK_EQ(door.passed.size(), 1U);
  door.gate.Decide(Status::Ok());
  CHECK_EQ(door.passed.size(), 2U);
  CHECK_TRUE(door.gate.ClosesFor(whole, &number));  // back again is another, too
  door.Send(&third);
  door.gate.Decide(Status::InvalidArgument("no"));
  CHECK_EQ(third, static_cast<int>(Code::kInvalidArgument));
  CHECK_FALSE(door.gate.ClosesFor(rows, &number));  // refused: nothing is asked any more
}

TEST(a_manner_is_the_kind_of_the_arrays_and_their_compression) {
  Operation op;
  op.parameter = 0.25F;
  CHECK_EQ(Text(Manner::Of(op)), std::string("whole arrays"));
  const Manner plain = Manner::Of(op);
  op.parameter = 0.5F;  // of nothing
  CHECK_TRUE(Manner::Of(op) == plain);
  op.codec = FindCompression("1bit");
  CHECK_EQ(Text(Manner::Of(op)), std::string("whole arrays, 1bit compressed"));
  op.codec = FindCompression("2bit");
  CHECK_EQ(Text(Manner::Of(op)),
           std::string("whole arrays, 2bit compressed with a threshold of 0.5"));
  const Manner half = Manner::Of(op);
  op.parameter = 0.25F;
  CHECK_FALSE(Manner::Of(op) == half);
  op.use = "SGD";
  CHECK_EQ(Text(Manner::Of(op)),
           std::string("whole arrays for SGD, 2bit compressed with a threshold of 0.25"));
  op.kind = Operation::Kind::kRows;
  CHECK_EQ(Text(Manner::Of(op)), std::string("row_sparse arrays for SGD"));
  const Manner used = Manner::Of(op);
  op.use.clear();
  CHECK_EQ(Text(Manner::Of(op)), std::string("row_sparse arrays"));
  CHECK_FALSE(Manner::Of(op) == used);
}

TEST(rows_that_wait_are_kept) {
  Door door;
  int code = -1;
  auto op = std::make_shared<Operation>();
  op->kind = Operation::Kind::kRows;
  op->done = [&](const Status& status) { code = static_cast<int>(status.code()); };
  {
    std::vector<int64_t> numbers{3, 9};
    std::string values = "abcdefgh";
    op->rows = {numbers.data(), 2, values.data(), 4};
    door.gate.Take(op);
    numbers.assign(2, 0);
    values.assign(8, 'x');
  }
  door.gate.Decide(Status::Ok());
  REQUIRE_EQ(door.passed.size(), 1U);
  CHECK_EQ(op->rows.numbers[1], 9);
  CHECK_EQ(std::string(op->rows.values, 8), std::string("abcdefgh"));
  op->Finish(Status::Ok());
  CHECK_EQ(code, 0);
}

TEST(each_passes_once_whoever_decides_when) {
  for (int repeat = 0; repeat < 200; ++repeat) {
    std::atomic<int> passed{0};
    Gate gate({Subject::kTensor, 7, "w"},
              [&](const std::shared_ptr<Operation>& /*op*/) { ++passed; });
    std::thread decides([&] { gate.Decide(Status::Ok()); });
    for (int i = 0; i < 3; ++i) gate.Take(std::make_shared<Operation>());
    decides.join();
    CHECK_EQ(passed.load(), 3);
  }
}
