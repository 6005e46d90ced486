// What tells one job from another, and the keys that follow from it and from the job token: what
// was recorded of another job, or of this one before its scheduler began again, is signed with
// other keys.
//
// Thread-safety: pure functions. Invariant: no two purposes share a key. Without a token the keys
// follow from the identity alone, which is public: strangers who do not speak the protocol are
// still refused.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/hmac_sha256.h"

namespace mercury {

constexpr size_t kIdentityBytes = 16;
// Drawn by the scheduler when it starts.
using JobIdentity = std::array<uint8_t, kIdentityBytes>;
using Nonce = std::array<uint8_t, 32>;

JobIdentity RandomIdentity();
// What of it names a job where nobody has to prove anything.
uint64_t JobNumber(const JobIdentity& job);
Nonce RandomNonce();

// Where nobody knows the job yet: the handshake of the control plane.
HmacKey DoorKey(const std::string& token);
HmacKey EnvelopeKey(const std::string& token, const JobIdentity& job);
HmacKey DataKey(const std::string& token, const JobIdentity& job);

// In a handshake: over a word for its purpose, both nonces, and all that its message says.
Digest Prove(const HmacKey& key, const char* purpose, const Nonce& host, const Nonce& guest,
             const std::string& said);

}  // namespace mercury
