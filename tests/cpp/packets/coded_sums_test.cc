// Sums that go back coded: in parts, as values that are fetched, where workers differ, where there
// is no memory; and what a worker makes of them.
#include <cstring>
#include <string>
#include <vector>

#include "packets/lone_server.h"
#include "packets/lone_worker.h"

using namespace mercury;           // NOLINT: a test
using namespace mercury::testing;  // NOLINT: a test

namespace {

constexpr uint64_t kElements = 256;  // one slot
const char* const kCodecs[] = {"bf16", "fp16", "int8"};

std::string Floats(uint64_t count, float first, float step) {
  std::string bytes(4 * count, '\0');
  for (uint64_t i = 0; i < count; ++i) {
    const float value = first + step * static_cast<float>(i);
    std::memcpy(&bytes[4 * i], &value, sizeof(value));
  }
  return bytes;
}

std::string Encoded(const Codec& codec, const std::string& floats) {
  std::string coded(codec.bytes(floats.size() / 4), '\0');
  codec.encode(0, floats.data(), nullptr, floats.size() / 4, coded.data());
  return coded;
}

std::string Decoded(const Codec& codec, const std::string& coded, uint64_t count) {
  std::string floats(4 * count, '\0');
  codec.add(0, coded.data(), count, floats.data(), Into::kRoom);
  return floats;
}

// Of what workers have sent coded, as it goes back.
std::string SumOf(const Codec& codec, const std::vector<std::string>& coded, uint64_t count) {
  std::string sum(4 * count, '\0');
  for (const std::string& copy : coded) {
    codec.add(0, copy.data(), count, sum.data(), &copy == coded.data() ? Into::kRoom : Into::kSum);
  }
  return Encoded(codec, sum);
}

Status Declare(LoneServer* server, int worker, uint32_t number, const Codec& codec) {
  Declaration d;
  d.key = 7;
  d.elements = kElements;
  d.codec = codec.number;
  d.name = "t7";
  Header h;
  h.kind = PacketKind::kDeclare;
  h.tensor = number;
  return server->Send(worker, h, Encode(d));
}

const Codec& Plain() { return PlainCodec(DType::kFloat32); }

}  // namespace

TEST(what_all_copies_have_goes_back_coded_before_the_rest_comes) {
  for (const char* name : kCodecs) {
    const Codec& codec = *FindCompression(name);
    LoneServer server(Options(2));
    std::vector<std::string> copies;
    for (int w = 0; w < 2; ++w) {
      REQUIRE_OK(Declare(&server, w, 0, codec));
      copies.push_back(Encoded(codec, Floats(kElements, 1.0F + static_cast<float>(w), 0.37F)));
    }
    std::string back[2];
    for (const uint64_t at : {uint64_t{0}, uint64_t{128}}) {
      const uint64_t count = at == 0 ? 128 : kElements - at;
      for (int w = 0; w < 2; ++w) {
        const auto& copy = copies[static_cast<size_t>(w)];
        CHECK_OK(server.Data(w, 0, at, 1, copy.substr(codec.bytes(at), codec.bytes(count))));
      }
      for (int w = 0; w < 2; ++w) {
        for (const Got& got : server.Drain(w)) {
          CHECK_TRUE(got.header.kind == PacketKind::kCodedSum);
          CHECK_EQ(codec.bytes(got.header.offset), back[w].size());
          back[w] += got.payload;
        }
        CHECK_EQ(back[w].size(), codec.bytes(at + count));
      }
    }
    CHECK_TRUE(back[0] == SumOf(codec, copies, kElements));
    CHECK_TRUE(back[1] == back[0]);
  }
}

TEST(workers_that_send_it_in_different_ways_fail_the_tensor) {
  LoneServer server(Options(2));
  const Codec& bf16 = *FindCompression("bf16");
  const std::string values = Floats(kElements, 1, 1);
  REQUIRE_OK(Declare(&server, 0, 0, bf16));
  REQUIRE_OK(Declare(&server, 1, 0, Plain()));
  CHECK_OK(server.Data(0, 0, 0, 1, Encoded(bf16, values)));
  CHECK_OK(server.Data(1, 0, 0, 1, values));
  for (int w = 0; w < 2; ++w) {
    const Status told = server.ErrorTo(w);
    CHECK_TRUE(told.code() == Code::kInvalidArgument);
    const std::string text = told.text();
    CHECK_TRUE(text.find("worker 1 wants its sum as float32, another worker as bf16: all workers "
                         "must send it alike") != std::string::npos);
  }
}

TEST(a_value_is_fetched_as_the_number_says_or_plain) {
  for (const char* name : kCodecs) {
    const Codec& codec = *FindCompression(name);
    LoneServer server(Options(1));
    REQUIRE_OK(Declare(&server, 0, 0, Plain()));
    REQUIRE_OK(Declare(&server, 0, 1, codec));
    const std::string first = Floats(kElements, 5, 0.1F);
    Header h;
    h.kind = PacketKind::kFirst;
    CHECK_OK(server.Send(0, h, first));
    CHECK_EQ(server.Drain(0).size(), 1U);  // it is taken
    for (const uint32_t number : {0U, 1U}) {
      CHECK_OK(server.Send(0, PacketKind::kFetch, number));
      const auto got = server.Drain(0);
      REQUIRE_EQ(got.size(), 1U);
      CHECK_TRUE(got[0].header.kind == PacketKind::kSum && got[0].payload == first);
    }
    const std::string coded = Encoded(codec, first);
    const std::string sum = SumOf(codec, {coded}, kElements);
    CHECK_OK(server.Data(0, 1, 0, 1, coded));
    CHECK_TRUE(server.Drain(0)[0].payload == sum);
    CHECK_OK(server.Send(0, PacketKind::kFetch, 1));
    auto got = server.Drain(0);
    REQUIRE_EQ(got.size(), 1U);
    CHECK_TRUE(got[0].header.kind == PacketKind::kCodedSum && got[0].payload == sum);
    CHECK_OK(server.Send(0, PacketKind::kFetch, 0));
    got = server.Drain(0);
    REQUIRE_EQ(got.size(), 1U);
    CHECK_TRUE(got[0].header.kind == PacketKind::kSum);
    CHECK_TRUE(got[0].payload == Decoded(codec, sum, kElements));
    // Plain in the next round: the value is so, too.
    CHECK_OK(server.Data(0, 0, 0, 2, first));
    CHECK_TRUE(server.Drain(0)[0].payload == first);
    CHECK_OK(server.Send(0, PacketKind::kFetch, 1));
    CHECK_TRUE(server.Drain(0)[0].payload == first);
  }
}

TEST(no_allocation_that_fails_does_more_than_fail_its_tensor) {
  for (int fails_after = 0; fails_after < 8; ++fails_after) {
    LoneServer server(Options(2));
    const Codec& codec = *FindCompression("int8");
    const std::string copy = Encoded(codec, Floats(kElements, 1, 0.5F));
    for (int w = 0; w < 2; ++w) {
      REQUIRE_OK(Declare(&server, w, 0, codec));
      REQUIRE_OK(Declare(&server, w, 1, Plain()));
    }
    allocations_left = fails_after;
    for (int w = 0; w < 2; ++w) CHECK_OK(server.Data(w, 0, 0, 1, copy.substr(0, 132)));
    for (int w = 0; w < 2; ++w) {
      CHECK_OK(server.Data(w, 0, 128, 1, copy.substr(132)));
    }
    CHECK_OK(server.Send(0, PacketKind::kFetch, 1));
    allocations_left = -1;
    size_t errors = 0;
    for (const Got& got : server.Drain(0)) errors += got.header.kind == PacketKind::kError ? 1 : 0;
    CHECK_TRUE(errors <= 1);
  }
}

TEST(a_worker_takes_coded_sums_of_what_it_sent_coded_and_no_others) {
  LoneWorker worker(WorkerOptions());
  TensorTraits traits;
  traits.key = 7;
  traits.shape = {kElements};
  traits.name = "t7";
  const Codec& codec = *FindCompression("int8");
  const auto tensor = std::make_shared<Tensor>(traits);
  std::string src = Floats(kElements, 1, 0.25F), dst(4 * kElements, '?');
  std::vector<Status> outcomes;
  const auto submit = [&](const Codec* as) {
    auto op = std::make_shared<Operation>();
    op->tensor = tensor;
    op->src = src.data();
    op->dst = dst.data();
    op->codec = as;
    op->done = [&outcomes](const Status& status) { outcomes.push_back(status); };
    worker.streams.Submit(std::move(op), worker.now_us);
  };
  const auto coded_sum = [&](uint32_t number, uint8_t round, const std::string& payload) {
    Header h;
    h.kind = PacketKind::kCodedSum;
    h.tensor = number;
    h.round = round;
    return worker.Receive(h, payload);
  };
  submit(&codec);
  const auto sent = worker.Drain();
  REQUIRE_EQ(sent.size(), 2U);  // what it is, and the elements
  const std::string coded(sent[1].payload, sent[1].header.length);
  CHECK_TRUE(coded == Encoded(codec, src));
  CHECK_STATUS(Code::kCorrupt, coded_sum(0, 1, coded.substr(1)));
  CHECK_STATUS(Code::kCorrupt, coded_sum(0, 2, coded));
  CHECK_OK(coded_sum(0, 1, coded));
  REQUIRE_EQ(outcomes.size(), 1U);
  CHECK_OK(outcomes[0]);
  CHECK_TRUE(dst == Decoded(codec, coded, kElements));
  submit(nullptr);
  CHECK_EQ(worker.Drain().size(), 2U);  // another number
  CHECK_STATUS(Code::kCorrupt, coded_sum(1, 2, coded));
  CHECK_OK(worker.Sum(1, 0, 2, src));
  CHECK_EQ(outcomes.size(), 2U);
  CHECK_TRUE(dst == src);
}

TEST(parts_of_one_copy_are_coded_alike) {
  AggregatorOptions options = Options(2);
  options.deterministic = true;
  LoneServer server(options);
  REQUIRE_OK(server.Declare(0, 0, 7, 100, DType::kFloat32));
  Declaration coded;
  coded.key = 7;
  coded.elements = 100;
  coded.dtype = DType::kFloat32;
  coded.codec = FindCompression("bf16")->number;
  coded.name = "t7";
  Header h;
  h.kind = PacketKind::kDeclare;
  h.tensor = 1;
  REQUIRE_OK(server.Send(0, h, Encode(coded)));
  REQUIRE_OK(server.Data(0, 1, 0, 1, Of(128, 0)));
  CHECK_STATUS(Code::kCorrupt, server.Data(0, 0, 64, 1, Of(36 * 4, 0)));
}

TEST(who_sends_and_does_not_listen_is_refused) {
  LoneServer server(Options(2));
  Declaration declared;
  declared.key = 7;
  declared.elements = 4;
  declared.dtype = DType::kUint8;
  declared.codec = PlainCodec(DType::kUint8).number;
  declared.asynchronous = true;
  declared.name = "t7";
  Header h;
  h.kind = PacketKind::kDeclare;
  REQUIRE_OK(server.Send(0, h, Encode(declared)));
  h.kind = PacketKind::kPush;
  int pushed = 0;
  while (pushed < 10000 && server.Send(0, h, Of(4, 1)).ok()) ++pushed;
  CHECK_TRUE(pushed > 1000 && pushed < 2000);
  server.Drain(0);
  CHECK_OK(server.Send(0, h, Of(4, 1)));
}
