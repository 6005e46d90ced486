#include "messages/classic_value.h"

#include <string>

#include "harness.h"

using namespace mercury;  // NOLINT: a test

namespace {

ps::SArray<char> Bytes(const std::string& text) {
  ps::SArray<char> bytes(text.size());
  std::copy(text.begin(), text.end(), bytes.data());
  return bytes;
}

}  // namespace

TEST(a_value_goes_where_its_piece_belongs) {
  std::string memory = "........";
  Operation op;
  op.kind = Operation::Kind::kPull;
  op.dst = memory.data();
  CHECK_OK(TakeValue(Bytes("abc"), {0, 2, 3}, 0, &op));
  CHECK_EQ(memory, "..abc...");
  CHECK_OK(TakeValue(Bytes(""), {0, 8, 0}, 1, &op));
}

TEST(a_value_of_another_size_is_refused) {
  std::string memory = "....";
  Operation op;
  op.kind = Operation::Kind::kPull;
  op.dst = memory.data();
  const Status status = TakeValue(Bytes("abcde"), {0, 0, 4}, 0, &op);
  CHECK_STATUS(Code::kCorrupt, status);
  CHECK_EQ(status.text(), "5 bytes instead of 4");
  CHECK_EQ(memory, "....");
}
