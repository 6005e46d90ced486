// What a stranger says to a node that listens, or to one that has connected to him (first byte, bit
// 0); then the same from somebody who knows the token, so that what lies behind the proof is
// reached. Bit 1: in pieces. Bit 2: the guest knows its job.
#include <algorithm>
#include <cstring>
#include <string>

#include "control/door_handshake.h"
#include "fuzz.h"

using namespace mercury;

namespace {

constexpr size_t kPrefixBytes = 8, kProofBytes = 32;  // as the layout in door_handshake.h says
const JobIdentity kJob{7};

template <typename Side>
Status Feed(Side* side, const std::string& bytes, size_t most, std::string* reply) {
  for (size_t at = 0; at < bytes.size() && side->wants() != 0;) {
    FUZZ_REQUIRE(side->wants() <= kDoorHelloBytes);
    const size_t n = std::min({most, side->wants(), bytes.size() - at});
    Status status = side->Feed(bytes.data() + at, n, reply);
    FUZZ_REQUIRE(status.ok() == status.text().empty());
    FUZZ_REQUIRE(status.ok() || status.code() == Code::kCorrupt);
    if (!status.ok()) return status;
    at += n;
  }
  return Status::Ok();
}

void Sign(const HmacKey& key, const char* purpose, const Nonce& host, const Nonce& guest,
          const std::string& said, std::string* bytes, size_t end) {
  const Digest proof = Prove(key, purpose, host, guest, said);
  std::memcpy(bytes->data() + end - kProofBytes, proof.data(), kProofBytes);
}

void ToHost(const HmacKey& key, std::string bytes, size_t most, bool sign) {
  const Nonce nonce{5};
  HostHandshake host(key, Post::kScheduler, kJob, nonce);
  if (sign && bytes.size() >= kDoorHelloBytes) {
    Nonce guest;
    std::memcpy(guest.data(), &bytes[kPrefixBytes], guest.size());
    Sign(key, "door hello", nonce, guest,
         host.Challenge().substr(0, kPrefixBytes + kIdentityBytes) + bytes.substr(0, kPrefixBytes),
         &bytes, kDoorHelloBytes);
  }
  std::string reply;
  const Status status = Feed(&host, bytes, most, &reply);
  const bool passed = status.ok() && host.wants() == 0;
  FUZZ_REQUIRE(!passed || sign);
  // Who does not know the token hears nothing.
  FUZZ_REQUIRE(reply.size() == (passed ? kDoorWelcomeBytes : 0));
}

void ToGuest(const HmacKey& key, std::string bytes, size_t most, bool sign, bool knows) {
  const Nonce nonce{6};
  GuestHandshake guest(key, Post::kScheduler,
                       knows ? std::optional<JobIdentity>(kJob) : std::nullopt, nonce);
  constexpr size_t kSaidBytes = kPrefixBytes + kIdentityBytes;
  constexpr size_t kAll = kDoorChallengeBytes + kDoorWelcomeBytes;
  if (sign && bytes.size() >= kAll) {
    Nonce host;
    std::memcpy(host.data(), &bytes[kSaidBytes], host.size());
    Sign(key, "door welcome", host, nonce,
         bytes.substr(0, kSaidBytes) + bytes.substr(kDoorChallengeBytes, kPrefixBytes), &bytes,
         kAll);
  }
  std::string reply;
  const Status status = Feed(&guest, bytes, most, &reply);
  FUZZ_REQUIRE(reply.size() == (guest.said_hello() ? kDoorHelloBytes : 0));
  if (guest.done()) FUZZ_REQUIRE(sign && status.ok() && guest.wants() == 0);
  if (guest.done() && knows) FUZZ_REQUIRE(guest.job() == kJob);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const HmacKey key("the token of a job");
  if (size == 0) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t most = (data[0] & 2) != 0 ? 1 + (data[0] >> 3) : 1 << 20;
  for (const bool sign : {false, true}) {
    if ((data[0] & 1) != 0) {
      ToGuest(key, bytes, most, sign, (data[0] & 4) != 0);
    } else {
      ToHost(key, bytes, most, sign);
    }
  }
  return 0;
}
