// A server's sums of 16-bit floats, and of what comes coded, are rounded once.
#include <cstring>
#include <string>
#include <vector>

#include "harness.h"
#include "messages/server_store.h"

using namespace mercury;  // NOLINT: a test

namespace {

// What two or more workers have pushed, one copy each, and pull then.
std::string Sum(bool deterministic, DType dtype, const Codec* codec,
                const std::vector<std::string>& payloads, size_t bytes) {
  ServerStore store(static_cast<int>(payloads.size()), 0, deterministic);
  std::vector<StoreReply> replies;
  StoreRequest r;
  r.dtype = dtype;
  r.bytes = bytes;
  for (const std::string& payload : payloads) {
    r.operation = StoreOperation::kPush;
    r.codec = codec;
    r.payload = Buffer::Allocate(payload.size());
    std::memcpy(r.payload.data, payload.data(), payload.size());
    store.Handle(r, &replies);
    ++r.ticket;
    ++r.worker;
  }
  CHECK_EQ(replies.size(), payloads.size());
  r.worker = 0;
  r.operation = StoreOperation::kPull;
  r.codec = nullptr;
  r.payload = {};
  store.Handle(r, &replies);
  REQUIRE_EQ(replies.size(), payloads.size() + 1);
  CHECK_EQ(store.bytes(), bytes);
  return std::string(replies.back().value.data, replies.back().value.bytes);
}

template <typename T>
std::string Bytes(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

}  // namespace

// Of three copies, two are lost if each addition is rounded: 256, 0.75 and 0.75 as bfloat16.
TEST(sums_of_16_bit_floats_are_rounded_once) {
  const std::vector<std::string> copies = {Bytes<uint16_t>({0x4380}), Bytes<uint16_t>({0x3f40}),
                                           Bytes<uint16_t>({0x3f40})};
  for (const bool deterministic : {false, true}) {
    const std::string sum = Sum(deterministic, DType::kBfloat16, nullptr, copies, 2);
    CHECK_TRUE(sum == Bytes<uint16_t>({0x4381}));  // 258, the nearest to 257.5
  }
}

TEST(sums_of_what_comes_coded_are_as_packets_have_them) {
  constexpr uint64_t kElements = 100;
  for (const char* name : {"bf16", "fp16", "int8"}) {
    const Codec& codec = *FindCompression(name);
    std::vector<std::string> payloads;
    std::string expected(4 * kElements, '\0');
    for (int worker = 0; worker < 3; ++worker) {
      std::vector<float> values;
      for (uint64_t i = 0; i < kElements; ++i) {
        values.push_back(static_cast<float>(i) * 0.37F + static_cast<float>(worker));
      }
      std::string payload(4 + codec.bytes(kElements), '\0');  // a parameter comes first
      codec.encode(0, Bytes(values).data(), nullptr, kElements, &payload[4]);
      codec.add(0, &payload[4], kElements, expected.data(), Into::kSum);
      payloads.push_back(payload);
    }
    std::string coded(codec.bytes(kElements), '\0');
    codec.encode(0, expected.data(), nullptr, kElements, coded.data());
    codec.add(0, coded.data(), kElements, expected.data(), Into::kRoom);
    for (const bool deterministic : {false, true}) {
      CHECK_TRUE(Sum(deterministic, DType::kFloat32, &codec, payloads, 4 * kElements) == expected);
    }
  }
}
