#include "control/door_handshake.h"

#include <algorithm>
#include <cstring>

#include "base/little_endian.h"
#include "control/envelope.h"

namespace mercury {
namespace {

constexpr char kDoorMagic[] = "MRCC";
constexpr size_t kPrefixBytes = 8;  // magic, version, and a number of 2 bytes
constexpr size_t kSaidBytes = kPrefixBytes + kIdentityBytes;
constexpr size_t kDigestBytes = sizeof(Digest);

uint16_t Number(const std::string& from, size_t at) {
  return Load<uint16_t>(reinterpret_cast<const uint8_t*>(from.data()) + at);
}

std::string Prefix(uint16_t number) {
  std::string out(kDoorMagic, 4);
  AppendNumber(&out, kControlVersion);
  AppendNumber(&out, number);
  return out;
}

template <typename Bytes>
void Append(std::string* out, const Bytes& bytes) {
  out->append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

// ZeroMQ's own protocol begins with 10 bytes, the first 0xff and the last 0x7f: stock MXNet speaks
// it at once. So much of it is waited for, so that it can be named.
bool MayBeZeroMq(const std::string& message) {
  return message[0] == '\xff' && (message.size() < 10 || message[9] == '\x7f');
}

// As soon as there is something to see: a stranger is not waited for.
Status CheckPrefix(const std::string& message) {
  if (!message.empty() && MayBeZeroMq(message)) {
    if (message.size() < 10) return Status::Ok();
    return Status::Corrupt(
        "it speaks plain ZeroMQ, as stock MXNet does: install the patched wheel there, and set "
        "DMLC_PS_VAN_TYPE on all nodes alike");
  }
  if (message.compare(0, std::min<size_t>(message.size(), 4), kDoorMagic,
                      std::min<size_t>(message.size(), 4)) != 0) {
    return Status::Corrupt("it does not speak this protocol");
  }
  if (message.size() >= 6 && Number(message, 4) != kControlVersion) {
    return Status::Corrupt("it speaks version " + std::to_string(Number(message, 4)) +
                           " of the control protocol, this node version " +
                           std::to_string(kControlVersion) +
                           ": install the same version of mercury-ps on all nodes");
  }
  return Status::Ok();
}

bool Proved(const Digest& expected, const std::string& message) {
  return EqualConstantTime(expected.data(), message.data() + message.size() - kDigestBytes,
                           kDigestBytes);
}

}  // namespace

HostHandshake::HostHandshake(const HmacKey& key, Post post, const JobIdentity& job,
                             const Nonce& nonce)
    : key_(key), nonce_(nonce), challenge_(Prefix(static_cast<uint16_t>(post))) {
  Append(&challenge_, job);
  Append(&challenge_, nonce_);
}

Status HostHandshake::Feed(const char* data, size_t bytes, std::string* reply) {
  received_.append(data, std::min(bytes, wants()));
  Status status = CheckPrefix(received_);
  if (!status.ok() || received_.size() < kDoorHelloBytes) return status;
  Nonce theirs;
  std::memcpy(theirs.data(), received_.data() + kPrefixBytes, theirs.size());
  const std::string said = challenge_.substr(0, kSaidBytes);
  const Digest hello =
      Prove(key_, "door hello", nonce_, theirs, said + received_.substr(0, kPrefixBytes));
  if (!Proved(hello, received_)) return Status::Corrupt("it does not know the job token");
  *reply = Prefix(0);
  Append(reply, Prove(key_, "door welcome", nonce_, theirs, said + *reply));
  return Status::Ok();
}

GuestHandshake::GuestHandshake(const HmacKey& key, Post post, const std::optional<JobIdentity>& job,
                               const Nonce& nonce)
    : key_(key), post_(post), job_(job), nonce_(nonce) {}

size_t GuestHandshake::wants() const {
  if (done_) return 0;
  return (said_hello_ ? kDoorWelcomeBytes : kDoorChallengeBytes) - received_.size();
}

Status GuestHandshake::Feed(const char* data, size_t bytes, std::string* reply) {
  received_.append(data, std::min(bytes, wants()));
  Status status = CheckPrefix(received_);
  if (!status.ok() || wants() != 0) return status;
  return said_hello_ ? TakeWelcome() : TakeChallenge(reply);
}

Status GuestHandshake::TakeChallenge(std::string* reply) {
  std::memcpy(theirs_.data(), received_.data() + kPrefixBytes, theirs_.size());
  std::memcpy(host_nonce_.data(), received_.data() + kSaidBytes, host_nonce_.size());
  if (Number(received_, 6) != static_cast<uint16_t>(post_)) {
    return Status::Corrupt(post_ == Post::kScheduler ? "it is not a scheduler"
                                                     : "it is a scheduler");
  }
  if (job_ && *job_ != theirs_) return Status::Corrupt("it belongs to another job");
  said_ = received_.substr(0, kSaidBytes);
  *reply = Prefix(0);
  const Digest hello = Prove(key_, "door hello", host_nonce_, nonce_, said_ + *reply);
  Append(reply, nonce_);
  Append(reply, hello);
  said_hello_ = true;
  received_.clear();
  return Status::Ok();
}

Status GuestHandshake::TakeWelcome() {
  const Digest welcome =
      Prove(key_, "door welcome", host_nonce_, nonce_, said_ + received_.substr(0, kPrefixBytes));
  if (!Proved(welcome, received_)) return Status::Corrupt("it does not know the job token");
  done_ = true;
  return Status::Ok();
}

}  // namespace mercury
