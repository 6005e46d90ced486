#include "transport/transport.h"

#include <set>

#include "harness.h"

using namespace mercury;  // NOLINT: a test

TEST(operations_are_numbered_as_they_are_dispatched) {
  DispatchNumbers numbers;
  Operation sum, push, pull, first, rows;
  push.kind = Operation::Kind::kPush;
  pull.kind = Operation::Kind::kPull;
  first.kind = Operation::Kind::kFirstValue;
  rows.kind = Operation::Kind::kRows;
  CHECK_EQ(numbers.Take(first), 0);
  CHECK_EQ(numbers.Take(sum), 1);  // and its pull is 2
  CHECK_EQ(numbers.Take(push), 3);
  CHECK_EQ(numbers.Take(pull), 4);
  CHECK_EQ(numbers.Take(rows), 5);
  CHECK_EQ(numbers.next(), 7U);
}

// A job of weeks: two numbers for each sum.
TEST(numbers_begin_again_before_they_do_not_fit) {
  Operation sum, push;
  push.kind = Operation::Kind::kPush;
  for (const uint64_t end :
       {DispatchNumbers::kNumbers, uint64_t{1} << 31, uint64_t{1} << 32, uint64_t{1} << 40}) {
    for (const uint64_t before : {9, 10}) {
      DispatchNumbers numbers;
      numbers.GoOnFrom(end - before);
      std::set<int32_t> seen;
      for (int i = 0; i < 20; ++i) {
        const int32_t number = numbers.Take(i % 3 == 0 ? push : sum);
        CHECK_TRUE(number >= 1 && number <= static_cast<int32_t>(DispatchNumbers::kNumbers));
        CHECK_TRUE(seen.insert(number).second);
        if (i % 3 != 0) CHECK_TRUE(seen.insert(number + 1).second);
      }
      // Who comes goes on with the same.
      DispatchNumbers others;
      others.GoOnFrom(numbers.next());
      CHECK_EQ(others.Take(sum), numbers.Take(sum));
    }
  }
}
