#include "control/job_identity.h"

#include <sys/random.h>

#include <cstring>
#include <string_view>

#include "base/little_endian.h"

namespace mercury {
namespace {

template <typename Bytes>
Bytes Random() {
  Bytes bytes{};
  for (size_t have = 0; have < bytes.size();) {
    const ssize_t got = getrandom(bytes.data() + have, bytes.size() - have, 0);
    if (got > 0) have += static_cast<size_t>(got);
  }
  return bytes;
}

HmacKey Derived(const std::string& token, const std::string& purpose) {
  const HmacKey root(token.empty() ? "no job token" : token);
  const Digest key = root.Sign(purpose.data(), purpose.size());
  return HmacKey(std::string_view(reinterpret_cast<const char*>(key.data()), key.size()));
}

std::string Text(const JobIdentity& job) {
  return {reinterpret_cast<const char*>(job.data()), job.size()};
}

}  // namespace

JobIdentity RandomIdentity() { return Random<JobIdentity>(); }
uint64_t JobNumber(const JobIdentity& job) { return Load<uint64_t>(job.data()); }
Nonce RandomNonce() { return Random<Nonce>(); }

HmacKey DoorKey(const std::string& token) { return Derived(token, "mercury door\n"); }

HmacKey EnvelopeKey(const std::string& token, const JobIdentity& job) {
  return Derived(token, "mercury control\n" + Text(job));
}

HmacKey DataKey(const std::string& token, const JobIdentity& job) {
  return Derived(token, "mercury data\n" + Text(job));
}

Digest Prove(const HmacKey& key, const char* purpose, const Nonce& host, const Nonce& guest,
             const std::string& said) {
  HmacKey::MacStream stream(key);
  stream.Update(purpose, std::strlen(purpose));
  stream.Update(host.data(), host.size());
  stream.Update(guest.data(), guest.size());
  stream.Update(said.data(), said.size());
  return stream.Finish();
}

}  // namespace mercury
