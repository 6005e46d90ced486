// How a data link begins: each side proves that it knows the job token, and both agree on terms.
//
//   server: Challenge = "MRCY" version(2) 0(2) nonce(32)
//   worker: Hello     = "MRCY" version(2) terms(55) nonce(32) HMAC(32)
//   server: Welcome   = "MRCY" version(2) code(2) text bytes(4) HMAC(32) text
//
// Each HMAC-SHA-256 is over a word for its purpose, both nonces and all that its message says. A
// worker without the token is cut off without a word; one that knows it but wants other terms is
// told which.
//
// The key is the job's own (control/job_identity.h): nothing recorded of another job is believed.
//
// Thread-safety: none. No I/O: bytes go in, bytes to send come out. Invariants: nothing is believed
// before its HMAC is right; done() only if both sides agree on every term.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/hmac_sha256.h"
#include "base/status.h"
#include "control/job_identity.h"

namespace mercury {

struct Terms {
  uint64_t job = 0;
  uint32_t worker = 0;
  uint32_t server = 0;
  uint32_t workers = 1;
  uint32_t servers = 1;
  uint16_t lane = 0;
  uint16_t lanes = 1;
  uint64_t packet_bytes = 0;
  uint64_t unit_bytes = 0;
  uint8_t policy = 0;  // by number: what it does is no matter here
  bool checksum = false;
  uint8_t entry = 0;        // how many have had the worker's place before, modulo 256
  uint64_t generation = 0;  // of the roster, the last that the worker has heard of
  bool any_server = false;  // not said: a server's own, which may take others' places
};

constexpr size_t kTermsBytes = 55;
constexpr size_t kChallengeBytes = 40;
constexpr size_t kHelloBytes = 4 + 2 + kTermsBytes + 32 + 32;
constexpr size_t kWelcomeBytes = 44;
constexpr size_t kWelcomeTextBytesMax = 512;

class ServerHandshake {
 public:
  // `mine.worker` and `mine.lane` are not known yet.
  ServerHandshake(const HmacKey& key, const Terms& mine, const Nonce& nonce);
  std::string Challenge() const;
  // How many bytes to read next; no more may be given.
  size_t wants() const { return kHelloBytes - received_.size(); }
  // When it wants to say something, that is in `reply`: the link ends after it if the status is an
  // error.
  Status Feed(const char* data, size_t bytes, std::string* reply);
  bool done() const { return done_; }
  // The worker's.
  const Terms& theirs() const { return theirs_; }

 private:
  const HmacKey& key_;
  const Terms mine_;
  const Nonce nonce_;
  std::string received_;
  bool done_ = false;
  Terms theirs_;
};

class WorkerHandshake {
 public:
  WorkerHandshake(const HmacKey& key, const Terms& mine, const Nonce& nonce);
  size_t wants() const;
  Status Feed(const char* data, size_t bytes, std::string* reply);
  bool done() const { return done_; }

 private:
  size_t TextBytes() const;
  Status TakeWelcome();

  const HmacKey& key_;
  const Terms mine_;
  const Nonce nonce_;
  Nonce server_nonce_{};
  std::string received_;
  bool challenged_ = false, done_ = false;
};

}  // namespace mercury
