// What a server has room for when tensors are declared.
#include <string>

#include "packets/lone_server.h"

using namespace mercury;           // NOLINT: a test
using namespace mercury::testing;  // NOLINT: a test

TEST(a_tensor_beyond_the_cap_fails_when_it_is_declared) {
  AggregatorOptions options = Options(1);
  options.bytes_max = 1 << 20;
  LoneServer server(options);
  REQUIRE_OK(server.Declare(0, 0, 1, kTensorBytesMax));
  CHECK_STATUS(Code::kExhausted, server.ErrorTo(0));
  CHECK_OK(server.Data(0, 0, 0, 1, Of(64, 1)));
  CHECK_OK(server.Send(0, PacketKind::kFetch, 0));
  CHECK_OK(server.Send(0, PacketKind::kAsk, 0));
  CHECK_EQ(server.Drain(0).size(), 1U);  // the answer
}

TEST(tensors_that_together_are_beyond_the_cap_fail_when_they_are_declared) {
  AggregatorOptions options = Options(1);
  options.bytes_max = 1 << 20;
  LoneServer server(options);
  uint32_t declared = 0;
  const auto declare = [&](uint64_t bytes) {
    REQUIRE_OK(server.Declare(0, declared, declared, bytes));
    ++declared;
    return server.ErrorTo(0);
  };
  constexpr uint64_t kHalf = 512 << 10;
  for (int i = 0; i < 2; ++i) CHECK_OK(declare(kHalf));
  for (int i = 0; i < 2; ++i) CHECK_STATUS(Code::kExhausted, declare(kHalf));
  // What is released, or has failed, leaves room for another.
  server.aggregator.Release(0);
  CHECK_OK(declare(kHalf));
  CHECK_STATUS(Code::kExhausted, declare(1));
  REQUIRE_OK(server.Declare(0, declared++, 1, 9));  // another shape of the second
  CHECK_STATUS(Code::kInvalidArgument, server.ErrorTo(0));
  CHECK_OK(declare(kHalf));
  CHECK_STATUS(Code::kExhausted, declare(1));
}
