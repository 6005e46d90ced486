#include "links/handshake.h"

#include <algorithm>
#include <cstring>

#include "base/little_endian.h"
#include "links/wire.h"

namespace mercury {
namespace {

constexpr char kMagic[] = "MRCY";
constexpr size_t kPrefixBytes = 6;  // magic and version

template <typename T>
T Number(const std::string& from, size_t at) {
  return Load<T>(reinterpret_cast<const uint8_t*>(from.data()) + at);
}

std::string Prefix() {
  std::string out(kMagic, 4);
  AppendNumber(&out, kWireVersion);
  return out;
}

Status CheckPrefix(const std::string& message) {
  if (message.compare(0, 4, kMagic, 4) != 0) {
    return Status::Corrupt("it does not speak this protocol");
  }
  if (Number<uint16_t>(message, 4) != kWireVersion) {
    return Status::Corrupt("it speaks version " + std::to_string(Number<uint16_t>(message, 4)) +
                           " of the wire format, this node version " +
                           std::to_string(kWireVersion) +
                           ": install the same version of mercury-ps on all nodes");
  }
  return Status::Ok();
}

std::string Packed(const Terms& t) {
  std::string out;
  AppendNumber<uint64_t>(&out, t.job);
  AppendNumber<uint32_t>(&out, t.worker);
  AppendNumber<uint32_t>(&out, t.server);
  AppendNumber<uint32_t>(&out, t.workers);
  AppendNumber<uint32_t>(&out, t.servers);
  AppendNumber<uint16_t>(&out, t.lane);
  AppendNumber<uint16_t>(&out, t.lanes);
  AppendNumber<uint64_t>(&out, t.packet_bytes);
  AppendNumber<uint64_t>(&out, t.unit_bytes);
  AppendNumber<uint8_t>(&out, t.policy);
  AppendNumber<uint8_t>(&out, t.checksum ? 1 : 0);
  AppendNumber<uint8_t>(&out, t.entry);
  AppendNumber<uint64_t>(&out, t.generation);
  return out;
}

Terms Unpacked(const std::string& from, size_t at) {
  Terms t;
  t.job = Number<uint64_t>(from, at);
  t.worker = Number<uint32_t>(from, at + 8);
  t.server = Number<uint32_t>(from, at + 12);
  t.workers = Number<uint32_t>(from, at + 16);
  t.servers = Number<uint32_t>(from, at + 20);
  t.lane = Number<uint16_t>(from, at + 24);
  t.lanes = Number<uint16_t>(from, at + 26);
  t.packet_bytes = Number<uint64_t>(from, at + 28);
  t.unit_bytes = Number<uint64_t>(from, at + 36);
  t.policy = Number<uint8_t>(from, at + 44);
  t.checksum = Number<uint8_t>(from, at + 45) != 0;
  t.entry = Number<uint8_t>(from, at + 46);
  t.generation = Number<uint64_t>(from, at + 47);
  return t;
}

void Append(std::string* out, const void* data, size_t bytes) {
  out->append(static_cast<const char*>(data), bytes);
}

// What the two sides disagree on, in words; empty if nothing.
std::string Disagreement(const Terms& mine, const Terms& theirs) {
  const auto numbers = [&](const std::string& what, uint64_t a, uint64_t b) {
    return "the worker has " + what + " " + std::to_string(a) + ", the server " + std::to_string(b);
  };
  if (theirs.job != mine.job) return "the worker belongs to another job";
  const bool meant = mine.any_server ? theirs.server < mine.servers : theirs.server == mine.server;
  if (!meant) {
    return numbers("this server as number", theirs.server, mine.server);
  }
  if (theirs.workers != mine.workers) {
    return numbers("places for workers (DMLC_NUM_WORKER, MERCURY_MAX_WORKERS)", theirs.workers,
                   mine.workers);
  }
  if (theirs.servers != mine.servers) {
    return numbers("DMLC_NUM_SERVER", theirs.servers, mine.servers);
  }
  if (theirs.lanes != mine.lanes) return numbers("MERCURY_LANES", theirs.lanes, mine.lanes);
  if (theirs.packet_bytes != mine.packet_bytes) {
    return numbers("MERCURY_PACKET_BYTES", theirs.packet_bytes, mine.packet_bytes);
  }
  if (theirs.policy != mine.policy) {
    return numbers("MERCURY_POLICY number", theirs.policy, mine.policy);
  }
  if (theirs.unit_bytes != mine.unit_bytes) {
    return numbers("MERCURY_PARTITION_BYTES", theirs.unit_bytes, mine.unit_bytes);
  }
  if (theirs.checksum != mine.checksum) {
    return numbers("MERCURY_CHECKSUM", theirs.checksum ? 1 : 0, mine.checksum ? 1 : 0);
  }
  if (theirs.worker >= mine.workers || theirs.lane >= mine.lanes) {
    return "the worker has a rank or lane that does not exist";
  }
  return "";
}

}  // namespace

ServerHandshake::ServerHandshake(const HmacKey& key, const Terms& mine, const Nonce& nonce)
    : key_(key), mine_(mine), nonce_(nonce) {}

std::string ServerHandshake::Challenge() const {
  std::string out = Prefix();
  AppendNumber<uint16_t>(&out, 0);
  Append(&out, nonce_.data(), nonce_.size());
  return out;
}

Status ServerHandshake::Feed(const char* data, size_t bytes, std::string* reply) {
  received_.append(data, std::min(bytes, wants()));
  if (received_.size() >= kPrefixBytes) {
    const Status status = CheckPrefix(received_);
    if (!status.ok()) return status;
  }
  if (received_.size() < kHelloBytes) return Status::Ok();
  constexpr size_t kNonceAt = kPrefixBytes + kTermsBytes;
  constexpr size_t kMacAt = kNonceAt + 32;
  Nonce theirs;
  std::memcpy(theirs.data(), received_.data() + kNonceAt, theirs.size());
  const Digest mac = Prove(key_, "hello", nonce_, theirs, received_.substr(0, kNonceAt));
  if (!EqualConstantTime(mac.data(), received_.data() + kMacAt, mac.size())) {
    return Status::Corrupt("it does not know the job token");
  }
  const Terms terms = Unpacked(received_, kPrefixBytes);
  const std::string text = Disagreement(mine_, terms).substr(0, kWelcomeTextBytesMax);
  const auto code = text.empty() ? Code::kOk : Code::kInvalidArgument;
  std::string welcome = Prefix();
  AppendNumber(&welcome, static_cast<uint16_t>(code));
  AppendNumber(&welcome, static_cast<uint32_t>(text.size()));
  const Digest signature = Prove(key_, "welcome", nonce_, theirs, welcome + text);
  Append(&welcome, signature.data(), signature.size());
  *reply = welcome + text;
  theirs_ = terms;
  done_ = text.empty();
  return text.empty() ? Status::Ok() : Status::InvalidArgument(text);
}

WorkerHandshake::WorkerHandshake(const HmacKey& key, const Terms& mine, const Nonce& nonce)
    : key_(key), mine_(mine), nonce_(nonce) {}

size_t WorkerHandshake::TextBytes() const { return Number<uint32_t>(received_, 8); }

size_t WorkerHandshake::wants() const {
  if (!challenged_) return kChallengeBytes - received_.size();
  if (received_.size() < kWelcomeBytes) return kWelcomeBytes - received_.size();
  return done_ ? 0 : kWelcomeBytes + TextBytes() - received_.size();
}

Status WorkerHandshake::Feed(const char* data, size_t bytes, std::string* reply) {
  received_.append(data, std::min(bytes, wants()));
  if (received_.size() >= kPrefixBytes) {
    const Status status = CheckPrefix(received_);
    if (!status.ok()) return status;
  }
  if (challenged_) {
    if (received_.size() < kWelcomeBytes) return Status::Ok();
    if (TextBytes() > kWelcomeTextBytesMax) return Status::Corrupt("its welcome is too long");
    return received_.size() < kWelcomeBytes + TextBytes() ? Status::Ok() : TakeWelcome();
  }
  if (received_.size() < kChallengeBytes) return Status::Ok();
  std::memcpy(server_nonce_.data(), received_.data() + 8, server_nonce_.size());
  std::string hello = Prefix() + Packed(mine_);
  const Digest mac = Prove(key_, "hello", server_nonce_, nonce_, hello);
  Append(&hello, nonce_.data(), nonce_.size());
  Append(&hello, mac.data(), mac.size());
  *reply = hello;
  received_.clear();
  challenged_ = true;
  return Status::Ok();
}

Status WorkerHandshake::TakeWelcome() {
  constexpr size_t kMacAt = kWelcomeBytes - 32;
  const std::string text = received_.substr(kWelcomeBytes);
  const Digest mac =
      Prove(key_, "welcome", server_nonce_, nonce_, received_.substr(0, kMacAt) + text);
  if (!EqualConstantTime(mac.data(), received_.data() + kMacAt, mac.size())) {
    return Status::Corrupt("it does not know the job token");
  }
  if (Number<uint16_t>(received_, 6) != 0) {
    return Status::InvalidArgument(text.empty() ? "it refused, without a reason" : text);
  }
  done_ = true;
  return Status::Ok();
}

}  // namespace mercury
