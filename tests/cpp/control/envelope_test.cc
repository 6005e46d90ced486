#include "control/envelope.h"

#include <random>
#include <string>
#include <vector>

#include "harness.h"
#include "hex.h"

using namespace mercury;  // NOLINT: a test

namespace {

std::vector<uint8_t> Frame(const HmacKey& key, const Envelope& e, const std::string& meta) {
  std::vector<uint8_t> frame(kEnvelopeBytes + meta.size());
  Seal(key, e, meta.data(), meta.size(), frame.data());
  std::copy(meta.begin(), meta.end(), frame.begin() + kEnvelopeBytes);
  return frame;
}

Envelope Sample() {
  Envelope e;
  e.sender = 9;
  e.receiver = 8;
  e.life = 0x0123456789abcdefULL;
  e.sequence = 42;
  e.data_frames = 2;
  e.data_bytes = 1ULL << 40;
  e.checked = true;
  e.data_sum = 0xe3069283;
  return e;
}

}  // namespace

TEST(round_trip) {
  const HmacKey key("token");
  for (size_t size : {0, 1, 7, 320, 5000}) {
    const auto frame = Frame(key, Sample(), std::string(size, 'm'));
    Envelope got;
    CHECK_STATUS(Code::kOk, Open(key, frame.data(), frame.size(), &got));
    CHECK_EQ(got.sender, 9);
    CHECK_EQ(got.receiver, 8);
    CHECK_EQ(got.life, 0x0123456789abcdefULL);
    CHECK_EQ(got.sequence, uint64_t{42});
    CHECK_EQ(got.data_frames, 2);
    CHECK_EQ(got.data_bytes, uint64_t{1} << 40);
    CHECK_EQ(got.kind, EnvelopeKind::kMessage);
    CHECK_TRUE(got.checked);
    CHECK_EQ(got.data_sum, 0xe3069283U);
  }
}

TEST(golden_bytes) {
  const auto frame = Frame(HmacKey("token"), Sample(), "meta");
  CHECK_EQ(mercury::testing::Hex(frame.data(), 48), std::string("4d505331"
                                                                "0600"
                                                                "0210"
                                                                "09000000"
                                                                "08000000"
                                                                "efcdab8967452301"
                                                                "2a00000000000000"
                                                                "04000000"
                                                                "839206e3"
                                                                "0000000000010000"));
}

TEST(any_changed_byte_is_noticed) {
  const HmacKey key("token");
  const auto frame = Frame(key, Sample(), "the meta of a message");
  for (size_t i = 0; i < frame.size(); ++i) {
    auto bad = frame;
    bad[i] ^= 1;
    Envelope got;
    CHECK_STATUS(Code::kCorrupt, Open(key, bad.data(), bad.size(), &got));
  }
  for (size_t size = 0; size < frame.size(); ++size) {
    Envelope got;
    CHECK_STATUS(Code::kCorrupt, Open(key, frame.data(), size, &got));
  }
  Envelope got;
  CHECK_STATUS(Code::kCorrupt, Open(HmacKey("another"), frame.data(), frame.size(), &got));
  CHECK_STATUS(Code::kCorrupt, Open(HmacKey(""), frame.data(), frame.size(), &got));
}

TEST(random_bytes_are_refused) {
  mercury::testing::Random random;
  const HmacKey key("token");
  for (int i = 0; i < 20000; ++i) {
    std::vector<uint8_t> junk(random() % 200);
    for (auto& byte : junk) byte = static_cast<uint8_t>(random());
    if (junk.size() > 8 && i % 2 == 0) {
      const uint8_t head[] = {'M', 'P', 'S', '1', 1, 0};
      std::copy(head, head + 6, junk.begin());
    }
    Envelope got;
    CHECK_STATUS(Code::kCorrupt, Open(key, junk.data(), junk.size(), &got));
  }
}

TEST(too_many_frames) {
  Envelope e = Sample();
  e.data_frames = kDataFramesMax + 1;
  const HmacKey key("token");
  const auto frame = Frame(key, e, "");
  Envelope got;
  CHECK_STATUS(Code::kCorrupt, Open(key, frame.data(), frame.size(), &got));
}

TEST(questions_and_acknowledgements_have_no_meta) {
  const HmacKey key("token");
  for (const auto kind : {EnvelopeKind::kQuestion, EnvelopeKind::kAcknowledgement}) {
    Envelope e;
    e.sequence = 7;
    e.kind = kind;
    Envelope got;
    auto frame = Frame(key, e, "");
    CHECK_OK(Open(key, frame.data(), frame.size(), &got));
    CHECK_EQ(got.kind, kind);
    CHECK_TRUE(!got.checked);
    frame = Frame(key, e, "more");
    CHECK_STATUS(Code::kCorrupt, Open(key, frame.data(), frame.size(), &got));
  }
  Envelope unknown;
  unknown.kind = static_cast<EnvelopeKind>(3);
  const auto frame = Frame(key, unknown, "");
  Envelope got;
  CHECK_STATUS(Code::kCorrupt, Open(key, frame.data(), frame.size(), &got));
}

TEST(sequence) {
  SequenceCheck check;
  CHECK_STATUS(Code::kOk, check.Accept(1, 1));
  CHECK_STATUS(Code::kOk, check.Accept(1, 2));
  CHECK_STATUS(Code::kOk, check.Accept(2, 1));
  CHECK_STATUS(Code::kCorrupt, check.Accept(1, 2));  // a replay
  CHECK_STATUS(Code::kCorrupt, check.Accept(1, 0));
  CHECK_STATUS(Code::kPeerLost, check.Accept(1, 4));  // 3 was lost
  CHECK_STATUS(Code::kOk, check.Accept(1, 5));
  CHECK_TRUE(!check.IsLate(1, 9) && !check.IsLate(3, 1));
  CHECK_TRUE(check.IsLate(3, 2));  // what came before was for somebody else
}

TEST(who_goes_on_for_another_counts_from_above) {
  SequenceCheck check;
  const uint64_t first = uint64_t{1} << kReturnShift, second = uint64_t{2} << kReturnShift;
  CHECK_OK(check.Accept(7, 1));
  CHECK_OK(check.Accept(7, 2));
  CHECK_OK(check.Accept(7, first + 1));  // nothing is lost
  CHECK_STATUS(Code::kCorrupt, check.Accept(7, 3));
  CHECK_OK(check.Accept(7, first + 2));
  CHECK_STATUS(Code::kPeerLost, check.Accept(7, second + 2));
  check.CountFrom(8, second);
  CHECK_TRUE(check.IsBefore(8, 5) && check.IsBefore(8, first + 1));
  CHECK_TRUE(!check.IsBefore(8, second + 1) && !check.IsBefore(9, 1));
  CHECK_OK(check.Accept(8, second + 1));
}
