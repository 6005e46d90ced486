#include "control/job_identity.h"

#include <cstdio>
#include <set>
#include <string>

#include "harness.h"
#include "hex.h"

using namespace mercury;  // NOLINT: a test

namespace {

JobIdentity Counting() {
  JobIdentity job;
  for (size_t i = 0; i < job.size(); ++i) job[i] = static_cast<uint8_t>(i);
  return job;
}

// The first 8 bytes of what `key` makes of "abc".
std::string Begins(const HmacKey& key) {
  const Digest digest = key.Sign("abc", 3);
  return mercury::testing::Hex(digest.data(), 8);
}

}  // namespace

// Worked out with Python's hmac. Whoever changes a key makes a new version of the protocol.
TEST(golden_keys) {
  CHECK_EQ(Begins(DoorKey("token")), "27ad91044a5929c2");
  CHECK_EQ(Begins(DoorKey("")), "e6b29ea727e9d09a");
  CHECK_EQ(Begins(EnvelopeKey("token", Counting())), "a7401763cd6ec67b");
  CHECK_EQ(Begins(DataKey("token", Counting())), "351fd9b1b3dcabb0");
}

TEST(each_token_job_and_purpose_has_a_key_of_its_own) {
  JobIdentity other = Counting();
  other[15] ^= 1;
  std::set<std::string> keys;
  for (const char* token : {"", "token", "tokem"}) {
    keys.insert(Begins(DoorKey(token)));
    for (const JobIdentity& job : {Counting(), other}) {
      keys.insert(Begins(EnvelopeKey(token, job)));
      keys.insert(Begins(DataKey(token, job)));
    }
  }
  CHECK_EQ(keys.size(), size_t{3 * 5});
}

TEST(what_is_drawn_is_never_drawn_again) {
  std::set<JobIdentity> jobs;
  std::set<Nonce> nonces;
  for (int i = 0; i < 100; ++i) {
    jobs.insert(RandomIdentity());
    nonces.insert(RandomNonce());
  }
  CHECK_EQ(jobs.size(), size_t{100});
  CHECK_EQ(nonces.size(), size_t{100});
  CHECK_EQ(JobNumber(Counting()), uint64_t{0x0706050403020100});
}

TEST(a_proof_is_of_everything_that_goes_into_it) {
  const HmacKey key("key");
  const Nonce a{1}, b{2};
  const std::set<Digest> proofs = {
      Prove(key, "hello", a, b, "said"),
      Prove(key, "welcome", a, b, "said"),
      Prove(key, "hello", b, a, "said"),
      Prove(key, "hello", a, b, "sai"),
      Prove(HmacKey("other"), "hello", a, b, "said"),
  };
  CHECK_EQ(proofs.size(), size_t{5});
}
