// What a stranger says to a server, or to a worker that has dialled him (first byte, bit 0); then
// the same from somebody who knows the token, so that what lies behind the signature is reached.
// Bit 1: in pieces.
#include <algorithm>
#include <cstring>
#include <string>

#include "fuzz.h"
#include "links/handshake.h"
#include "links/wire.h"

using namespace mercury;

namespace {

Terms OurTerms() {
  Terms t;
  t.job = 7;
  t.worker = 1;
  t.workers = 2;
  t.servers = 2;
  t.lanes = 2;
  t.packet_bytes = 65536;
  return t;
}

template <typename Side>
Status Feed(Side* side, const std::string& bytes, size_t most, std::string* reply) {
  for (size_t at = 0; at < bytes.size() && side->wants() != 0;) {
    FUZZ_REQUIRE(side->wants() <= kHelloBytes + kWelcomeTextBytesMax);
    const size_t n = std::min({most, side->wants(), bytes.size() - at});
    Status status = side->Feed(bytes.data() + at, n, reply);
    FUZZ_REQUIRE(status.ok() == status.text().empty());
    FUZZ_REQUIRE(reply->size() <= kWelcomeBytes + kWelcomeTextBytesMax);
    if (!status.ok()) return status;
    at += n;
  }
  return Status::Ok();
}

void Put(const HmacKey& key, const char* purpose, const Nonce& server, const void* worker,
         const std::string& said, std::string* to, size_t at) {
  HmacKey::MacStream stream(key);
  stream.Update(purpose, std::strlen(purpose));
  stream.Update(server.data(), server.size());
  stream.Update(worker, 32);
  stream.Update(said.data(), said.size());
  const Digest mac = stream.Finish();
  std::memcpy(to->data() + at, mac.data(), mac.size());
}

void ToServer(const HmacKey& key, std::string bytes, size_t most, bool sign) {
  const Nonce nonce{5};
  ServerHandshake server(key, OurTerms(), nonce);
  if (sign && bytes.size() >= kHelloBytes) {
    Put(key, "hello", nonce, &bytes[6 + kTermsBytes], bytes.substr(0, 6 + kTermsBytes), &bytes,
        kHelloBytes - 32);
  }
  std::string reply;
  const Status status = Feed(&server, bytes, most, &reply);
  if (server.done()) {
    FUZZ_REQUIRE(sign && status.ok());
    FUZZ_REQUIRE(server.theirs().worker < 2 && server.theirs().lane < 2);
    FUZZ_REQUIRE(reply.size() == kWelcomeBytes);
  }
  // Who does not know the token hears nothing.
  if (!sign) FUZZ_REQUIRE(reply.empty());
  if (status.code() == Code::kInvalidArgument) FUZZ_REQUIRE(reply.size() > kWelcomeBytes);
}

void ToWorker(const HmacKey& key, std::string bytes, size_t most, bool sign) {
  const Nonce nonce{6};
  WorkerHandshake worker(key, OurTerms(), nonce);
  constexpr size_t kMacAt = kChallengeBytes + kWelcomeBytes - 32;
  if (sign && bytes.size() >= kChallengeBytes + kWelcomeBytes) {
    Nonce servers;
    std::memcpy(servers.data(), &bytes[8], servers.size());
    uint32_t text = 0;
    for (size_t i = 0; i < 4; ++i) {
      text |= uint32_t{static_cast<uint8_t>(bytes[kChallengeBytes + 8 + i])} << (8 * i);
    }
    const std::string said = bytes.substr(kChallengeBytes, kWelcomeBytes - 32) +
                             bytes.substr(kChallengeBytes + kWelcomeBytes, text);
    Put(key, "welcome", servers, nonce.data(), said, &bytes, kMacAt);
  }
  std::string reply;
  const Status status = Feed(&worker, bytes, most, &reply);
  FUZZ_REQUIRE(reply.empty() || reply.size() == kHelloBytes);
  if (worker.done()) FUZZ_REQUIRE(sign && status.ok());
  if (!sign) FUZZ_REQUIRE(status.ok() || status.code() == Code::kCorrupt);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const HmacKey key("the token of a job");
  if (size == 0) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t most = (data[0] & 2) != 0 ? 1 + (data[0] >> 2) : 1 << 20;
  for (const bool sign : {false, true}) {
    (data[0] & 1) != 0 ? ToWorker(key, bytes, most, sign) : ToServer(key, bytes, most, sign);
  }
  return 0;
}
