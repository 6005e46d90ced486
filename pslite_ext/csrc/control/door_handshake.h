// How a connection of the control plane begins, before ZeroMQ says or reads anything: who listens
// (the host) says of which job it is, and each side proves that it knows the job token.
//
//   host:  Challenge = "MRCC" version(2) post(2) identity(16) nonce(32)
//   guest: Hello     = "MRCC" version(2) 0(2) nonce(32) HMAC(32)
//   host:  Welcome   = "MRCC" version(2) 0(2) HMAC(32)
//
// The post is 1 for the scheduler, 0 for any other node. Each HMAC-SHA-256 is over a word for its
// purpose, both nonces, the Challenge's first 24 bytes and its own message's first 8. A guest that
// does not know the token is cut off without a word, and so is one that expected another job.
//
// Thread-safety: none. No I/O: bytes go in, bytes to send come out. Invariants: nothing is believed
// before its HMAC is right; of a stranger no more is kept than one message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/hmac_sha256.h"
#include "base/status.h"
#include "control/job_identity.h"

namespace mercury {

enum class Post : uint16_t { kNode = 0, kScheduler = 1 };

// At every door, that of the data plane, too: how long a connection may take until it is believed,
// and how many may be there at once (more, where a job has more nodes).
constexpr int kDoorTimeoutMs = 3000;
constexpr size_t kStrangersMax = 32;

constexpr size_t kDoorChallengeBytes = 56;
constexpr size_t kDoorHelloBytes = 72;
constexpr size_t kDoorWelcomeBytes = 40;

class HostHandshake {
 public:
  HostHandshake(const HmacKey& key, Post post, const JobIdentity& job, const Nonce& nonce);
  const std::string& Challenge() const { return challenge_; }
  // How many bytes to read next; no more may be given.
  size_t wants() const { return kDoorHelloBytes - received_.size(); }
  // What it wants to say is in `reply`. An error ends the connection.
  Status Feed(const char* data, size_t bytes, std::string* reply);

 private:
  const HmacKey& key_;
  const Nonce nonce_;
  std::string challenge_, received_;
};

class GuestHandshake {
 public:
  // `job`: the only one that will do; none: any.
  GuestHandshake(const HmacKey& key, Post post, const std::optional<JobIdentity>& job,
                 const Nonce& nonce);
  size_t wants() const;
  Status Feed(const char* data, size_t bytes, std::string* reply);
  bool said_hello() const { return said_hello_; }
  bool done() const { return done_; }
  // The host's, once done.
  const JobIdentity& job() const { return theirs_; }

 private:
  Status TakeChallenge(std::string* reply);
  Status TakeWelcome();

  const HmacKey& key_;
  const Post post_;
  const std::optional<JobIdentity> job_;
  const Nonce nonce_;
  JobIdentity theirs_{};
  Nonce host_nonce_{};
  std::string said_;  // the challenge's part that is signed
  std::string received_;
  bool said_hello_ = false, done_ = false;
};

}  // namespace mercury
