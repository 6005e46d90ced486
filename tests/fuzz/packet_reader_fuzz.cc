// A stream of packets, read in one go and in pieces: both must see the same packets and come to the
// same end. The first byte says whether there are checksums (bit 0), whether the target puts the
// right ones in itself so that what lies behind them is reached (bit 1), and how pieces are cut.
#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/crc32c.h"
#include "fuzz.h"
#include "links/packet_reader.h"

using namespace mercury;

namespace {

constexpr size_t kPacketBytesMax = 3000;

class Sink : public PacketSink {
 public:
  Status OnHeader(const Header& header, char** target) override {
    FUZZ_REQUIRE(!open_);
    FUZZ_REQUIRE(header.length <= 4096);
    open_ = true;
    payload_.assign(header.length, '?');
    if (header.tensor % 4 == 3) return Status::Corrupt("no such tensor");
    if (header.tensor % 2 == 0) *target = payload_.data();
    return Status::Ok();
  }
  Status OnPacket(const Header& header) override {
    FUZZ_REQUIRE(open_);
    open_ = false;
    const HeaderBytes head = Encode(header);
    seen.append(reinterpret_cast<const char*>(head.data()), head.size());
    seen += payload_;
    return Status::Ok();
  }
  std::string seen;

 private:
  bool open_ = false;
  std::string payload_;
};

std::pair<std::string, Code> Read(const std::string& bytes, bool checksum, uint64_t seed) {
  std::mt19937_64 random(seed);
  Sink sink;
  PacketReader reader(kPacketBytesMax, checksum, &sink);
  size_t at = 0;
  while (at < bytes.size()) {
    iovec pieces[2];
    const int count = reader.Targets(pieces);
    FUZZ_REQUIRE(count >= 1 && count <= 2);
    const size_t most = seed == 0 ? bytes.size() : 1 + random() % (seed % 3 == 0 ? 4 : 100);
    size_t read = 0;
    for (int i = 0; i < count; ++i) {
      const size_t n = std::min({most - read, bytes.size() - at, pieces[i].iov_len});
      std::memcpy(pieces[i].iov_base, bytes.data() + at, n);
      at += n;
      read += n;
    }
    FUZZ_REQUIRE(read != 0);
    const Status status = reader.Advance(read);
    FUZZ_REQUIRE(status.ok() == status.text().empty());
    if (!status.ok()) return {sink.seen, status.code()};
  }
  return {sink.seen, Code::kOk};
}

// Puts a right checksum behind each packet.
std::string Summed(const std::string& bytes) {
  std::string out;
  for (size_t at = 0; at + kHeaderBytes <= bytes.size();) {
    Header header;
    const auto* raw = reinterpret_cast<const uint8_t*>(bytes.data() + at);
    if (!Decode(raw, kPacketBytesMax, &header).ok()) return out + bytes.substr(at);
    const std::string packet = bytes.substr(at, kHeaderBytes + header.length);
    at += packet.size();
    out += packet;
    const std::string payload = packet.substr(kHeaderBytes);
    const uint32_t crc = PacketCrc(Crc32c(0, payload.data(), payload.size()), Encode(header));
    for (size_t i = 0; i < kChecksumBytes; ++i) out.push_back(static_cast<char>(crc >> (8 * i)));
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const bool checksum = (data[0] & 1) != 0;
  std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (checksum && (data[0] & 2) != 0) bytes = Summed(bytes);
  const auto whole = Read(bytes, checksum, 0);
  for (uint64_t i = 1; i < 4; ++i) FUZZ_REQUIRE(Read(bytes, checksum, data[0] * i + i) == whole);
  return 0;
}
