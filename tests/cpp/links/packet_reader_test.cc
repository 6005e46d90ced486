#include "links/packet_reader.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "base/crc32c.h"
#include "harness.h"

using namespace mercury;  // NOLINT: a test

namespace {

struct Packet {
  Header header;
  std::string payload;
};

std::string Bytes(const Packet& packet, bool checksum) {
  const HeaderBytes head = Encode(packet.header);
  std::string bytes(reinterpret_cast<const char*>(head.data()), head.size());
  bytes += packet.payload;
  const uint32_t crc = PacketCrc(Crc32c(0, packet.payload.data(), packet.payload.size()), head);
  for (size_t i = 0; checksum && i < kChecksumBytes; ++i) {
    bytes.push_back(static_cast<char>(crc >> (8 * i)));
  }
  return bytes;
}

// Keeps what it is told; drops payloads of tensors with odd numbers.
class Sink : public PacketSink {
 public:
  Status OnHeader(const Header& header, char** target) override {
    CHECK_FALSE(open_);
    open_ = true;
    ++headers;
    if (fail_header == headers) return Status::Corrupt("as was asked for");
    CHECK_TRUE(*target == nullptr);
    payload_.assign(header.length, '?');
    if (header.tensor % 2 == 0) *target = payload_.data();
    return Status::Ok();
  }
  Status OnPacket(const Header& header) override {
    CHECK_TRUE(open_);
    open_ = false;
    packets.push_back({header, payload_});
    return fail_packet == packets.size() ? Status::Closed("as was asked for") : Status::Ok();
  }
  std::vector<Packet> packets;
  size_t headers = 0;
  size_t fail_header = 0, fail_packet = 0;

 private:
  bool open_ = false;
  std::string payload_;
};

// Hands the bytes over in pieces of at most `most`.
Status Feed(PacketReader* reader, const std::string& bytes, size_t most,
            mercury::testing::Random* random) {
  size_t at = 0;
  while (at != bytes.size()) {
    iovec pieces[2];
    const int count = reader->Targets(pieces);
    REQUIRE_TRUE(count >= 1 && count <= 2);
    size_t room = 0;
    for (int i = 0; i < count; ++i) room += pieces[i].iov_len;
    REQUIRE_TRUE(room != 0);
    const size_t n = std::min({room, bytes.size() - at, random->Below(most) + 1});
    size_t left = n;
    for (int i = 0; i < count; ++i) {
      const size_t part = std::min(left, pieces[i].iov_len);
      std::memcpy(pieces[i].iov_base, bytes.data() + at, part);
      at += part;
      left -= part;
    }
    Status status = reader->Advance(n);
    if (!status.ok()) return status;
  }
  return Status::Ok();
}

Packet RandomPacket(mercury::testing::Random* random, size_t most) {
  Packet packet;
  packet.header.kind = random->OneIn(2) ? PacketKind::kData : PacketKind::kSum;
  packet.header.tensor = static_cast<uint32_t>(random->Below(4));
  packet.header.offset = (*random)();
  packet.header.priority = static_cast<int32_t>((*random)());
  packet.header.round = static_cast<uint8_t>((*random)());
  packet.payload.resize(random->OneIn(4) ? 0 : random->Below(random->OneIn(3) ? most + 1 : 100));
  random->Fill(packet.payload.data(), packet.payload.size());
  packet.header.length = static_cast<uint32_t>(packet.payload.size());
  return packet;
}

constexpr size_t kMost = 200000;

}  // namespace

TEST(packets_come_out_as_they_went_in) {
  mercury::testing::Random random;
  for (int trial = 0; trial < 150; ++trial) {
    const bool checksum = random.OneIn(2);
    Sink sink;
    PacketReader reader(kMost, checksum, &sink);
    std::vector<Packet> sent;
    std::string bytes;
    for (int64_t n = random.Between(1, 12); n != 0; --n) {
      sent.push_back(RandomPacket(&random, kMost));
      bytes += Bytes(sent.back(), checksum);
    }
    CHECK_OK(Feed(&reader, bytes, random.OneIn(3) ? 3 : random.OneIn(2) ? 3000 : 1 << 20, &random));
    CHECK_FALSE(reader.in_packet());
    REQUIRE_EQ(sink.packets.size(), sent.size());
    for (size_t i = 0; i < sent.size(); ++i) {
      CHECK_TRUE(Encode(sink.packets[i].header) == Encode(sent[i].header));
      const std::string dropped(sent[i].payload.size(), '?');
      CHECK_TRUE(sink.packets[i].payload ==
                 (sent[i].header.tensor % 2 == 0 ? sent[i].payload : dropped));
    }
  }
}

TEST(a_packet_that_is_cut_off_shows) {
  mercury::testing::Random random;
  Packet packet;
  packet.payload = "some bytes";
  packet.header.length = 10;
  const std::string whole = Bytes(packet, true);
  for (size_t n = 0; n < whole.size(); ++n) {
    Sink sink;
    PacketReader reader(kMost, true, &sink);
    CHECK_OK(Feed(&reader, whole.substr(0, n), 5, &random));
    CHECK_EQ(reader.in_packet(), n != 0);
    CHECK_TRUE(sink.packets.empty());
  }
}

TEST(any_wrong_byte_is_found_with_check_sums) {
  mercury::testing::Random random;
  for (int trial = 0; trial < 300; ++trial) {
    Packet packet = RandomPacket(&random, 5000);
    std::string bytes = Bytes(packet, true);
    bytes[random.Below(bytes.size())] ^= static_cast<char>(1 << random.Below(8));
    bytes += std::string(kMost + 100, '\0');  // should it wait for more
    Sink sink;
    PacketReader reader(kMost, true, &sink);
    CHECK_STATUS(Code::kCorrupt, Feed(&reader, bytes, 3000, &random));
    CHECK_TRUE(sink.packets.empty());
  }
}

TEST(an_error_of_the_sink_or_of_the_header_ends_it) {
  mercury::testing::Random random;
  std::string bytes;
  for (int i = 0; i < 5; ++i) bytes += Bytes(RandomPacket(&random, 300), false);
  for (const bool by_header : {true, false}) {
    Sink sink;
    (by_header ? sink.fail_header : sink.fail_packet) = 3;
    PacketReader reader(kMost, false, &sink);
    CHECK_STATUS(by_header ? Code::kCorrupt : Code::kClosed, Feed(&reader, bytes, 64, &random));
    CHECK_EQ(sink.headers, 3U);
    CHECK_EQ(sink.packets.size(), by_header ? 2U : 3U);
  }
  Sink sink;
  PacketReader reader(299, false, &sink);
  Packet large;
  large.header.length = 300;
  large.payload.assign(300, 'x');
  CHECK_STATUS(Code::kCorrupt, Feed(&reader, Bytes(large, false), 1000, &random));
  CHECK_EQ(sink.headers, 0U);
}
