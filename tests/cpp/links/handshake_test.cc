#include "links/handshake.h"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "harness.h"
#include "links/wire.h"

using namespace mercury;  // NOLINT: a test

namespace {

Nonce NonceOf(uint8_t first) {
  Nonce nonce;
  for (size_t i = 0; i < nonce.size(); ++i) nonce[i] = static_cast<uint8_t>(first + i);
  return nonce;
}

Terms WorkersTerms() {
  Terms t;
  t.job = 77;
  t.worker = 3;
  t.server = 1;
  t.workers = 4;
  t.servers = 2;
  t.lane = 1;
  t.lanes = 2;
  t.packet_bytes = 65536;
  t.unit_bytes = 200000;
  t.policy = 3;
  t.checksum = true;
  t.entry = 2;
  t.generation = 3;
  return t;
}

struct Outcome {
  Status server, worker;
  bool server_done = false, worker_done = false;
  std::string challenge, hello, welcome;
  uint32_t rank = 0;
  uint16_t lane = 0;
};

using Change = std::function<void(std::string*)>;

// In pieces as small as one byte. What is fed is what each side wants, as links do it.
template <typename Side>
Status Feed(Side* side, const std::string& bytes, size_t most, std::string* reply) {
  size_t at = 0;
  while (at < bytes.size() && side->wants() != 0) {
    const size_t n = std::min({bytes.size() - at, side->wants(), most});
    Status status = side->Feed(bytes.data() + at, n, reply);
    if (!status.ok()) return status;
    at += n;
  }
  return Status::Ok();
}

Outcome Shake(const Terms& server_terms, const Terms& worker_terms, const HmacKey& server_key,
              const HmacKey& worker_key, size_t most = 1000, const Change& challenge = nullptr,
              const Change& hello = nullptr, const Change& welcome = nullptr) {
  Outcome o;
  ServerHandshake server(server_key, server_terms, NonceOf(0));
  WorkerHandshake worker(worker_key, worker_terms, NonceOf(100));
  o.challenge = server.Challenge();
  if (challenge) challenge(&o.challenge);
  o.worker = Feed(&worker, o.challenge, most, &o.hello);
  if (hello) hello(&o.hello);
  if (o.worker.ok()) o.server = Feed(&server, o.hello, most, &o.welcome);
  if (welcome) welcome(&o.welcome);
  std::string nothing;
  if (o.worker.ok()) o.worker = Feed(&worker, o.welcome, most, &nothing);
  CHECK_TRUE(nothing.empty());
  o.server_done = server.done();
  o.worker_done = worker.done();
  o.rank = server.theirs().worker;
  o.lane = server.theirs().lane;
  CHECK_TRUE(!o.server_done || server.wants() == 0);
  CHECK_TRUE(!o.worker_done || worker.wants() == 0);
  return o;
}

const HmacKey& Key() {
  static const HmacKey key("the token of a job");
  return key;
}

Terms ServersTerms() {
  Terms t = WorkersTerms();
  t.worker = 0;
  t.lane = 0;
  return t;
}

}  // namespace

TEST(both_sides_agree) {
  for (const size_t most : {1, 2, 7, 1000}) {
    const Outcome o = Shake(ServersTerms(), WorkersTerms(), Key(), Key(), most);
    CHECK_OK(o.server);
    CHECK_OK(o.worker);
    CHECK_TRUE(o.server_done && o.worker_done);
    CHECK_EQ(o.rank, 3U);
    CHECK_EQ(o.lane, 1);
  }
}

// These lengths and beginnings are the protocol: whoever changes them makes a new version of it.
TEST(golden_bytes_of_the_messages) {
  const Outcome o = Shake(ServersTerms(), WorkersTerms(), Key(), Key());
  CHECK_EQ(kChallengeBytes, 40U);
  CHECK_EQ(kHelloBytes, 125U);
  CHECK_EQ(kWelcomeBytes, 44U);
  CHECK_EQ(o.challenge.size(), kChallengeBytes);
  CHECK_EQ(o.hello.size(), kHelloBytes);
  CHECK_EQ(o.welcome.size(), kWelcomeBytes);
  const std::string prefix("MRCY\x0c\x00", 6);
  CHECK_TRUE(o.challenge.substr(0, 8) == prefix + std::string(2, '\0'));
  CHECK_TRUE(o.hello.substr(0, 6) == prefix);
  CHECK_TRUE(o.welcome.substr(0, 12) == prefix + std::string(6, '\0'));
  const std::string terms(
      "\x4d\0\0\0\0\0\0\0"      // job
      "\x03\0\0\0\x01\0\0\0"    // worker, server
      "\x04\0\0\0\x02\0\0\0"    // workers, servers
      "\x01\0\x02\0"            // lane, lanes
      "\0\0\x01\0\0\0\0\0"      // packet bytes
      "\x40\x0d\x03\0\0\0\0\0"  // unit bytes
      "\x03\x01\x02"            // policy, checksum, entry
      "\x03\0\0\0\0\0\0\0",     // generation
      kTermsBytes);
  CHECK_TRUE(o.hello.substr(6, kTermsBytes) == terms);
  CHECK_EQ(static_cast<uint8_t>(o.challenge[8]), 0);
  CHECK_EQ(static_cast<uint8_t>(o.challenge[39]), 31);
  CHECK_EQ(static_cast<uint8_t>(o.hello[61]), 100);
}

TEST(each_disagreement_is_named_on_both_sides) {
  struct {
    const char* word;
    std::function<void(Terms*)> change;
  } const cases[] = {
      {"another job", [](Terms* t) { t->job = 78; }},
      {"number 0", [](Terms* t) { t->server = 0; }},
      {"MERCURY_MAX_WORKERS) 5, the server 4", [](Terms* t) { t->workers = 5; }},
      {"DMLC_NUM_SERVER 3, the server 2", [](Terms* t) { t->servers = 3; }},
      {"MERCURY_LANES 9", [](Terms* t) { t->lanes = 9; }},
      {"MERCURY_PACKET_BYTES 1", [](Terms* t) { t->packet_bytes = 1; }},
      {"MERCURY_PARTITION_BYTES 1", [](Terms* t) { t->unit_bytes = 1; }},
      {"MERCURY_POLICY number 1, the server 3", [](Terms* t) { t->policy = 1; }},
      {"MERCURY_CHECKSUM 0, the server 1", [](Terms* t) { t->checksum = false; }},
      {"does not exist", [](Terms* t) { t->worker = 4; }},
      {"does not exist", [](Terms* t) { t->lane = 2; }},
  };
  for (const auto& [word, change] : cases) {
    Terms terms = WorkersTerms();
    change(&terms);
    const Outcome o = Shake(ServersTerms(), terms, Key(), Key(), 3);
    CHECK_STATUS(Code::kInvalidArgument, o.server);
    CHECK_STATUS(Code::kInvalidArgument, o.worker);
    CHECK_TRUE(o.server.text().find(word) != std::string::npos);
    CHECK_EQ(o.server.text(), o.worker.text());
    CHECK_FALSE(o.server_done || o.worker_done);
  }
}

TEST(without_the_token_there_is_no_answer) {
  const HmacKey other("another token");
  const Outcome o = Shake(ServersTerms(), WorkersTerms(), Key(), other);
  CHECK_STATUS(Code::kCorrupt, o.server);
  CHECK_TRUE(o.welcome.empty() && !o.server_done && !o.worker_done);
}

// Whatever is changed on the way: nobody is done who should not be, and nobody believes it.
TEST(no_changed_byte_is_believed) {
  mercury::testing::Random random;
  const auto flip = [&](std::string* bytes) {
    (*bytes)[random.Below(bytes->size())] ^= static_cast<char>(1 << random.Below(8));
  };
  for (int trial = 0; trial < 400; ++trial) {
    const int which = trial % 3;
    size_t at = 0;
    const Change change = [&](std::string* bytes) {
      const std::string before = *bytes;
      flip(bytes);
      at = static_cast<size_t>(std::mismatch(before.begin(), before.end(), bytes->begin()).first -
                               before.begin());
    };
    const Outcome o =
        Shake(ServersTerms(), WorkersTerms(), Key(), Key(), 1000, which == 0 ? change : nullptr,
              which == 1 ? change : nullptr, which == 2 ? change : nullptr);
    const bool unused = which == 0 && (at == 6 || at == 7);  // two bytes of the challenge
    CHECK_EQ(o.worker_done, unused);
    if (which != 2) CHECK_EQ(o.server_done, unused);
    CHECK_TRUE(o.worker.ok() || o.worker.code() == Code::kCorrupt);
    CHECK_TRUE(o.server.ok() || o.server.code() == Code::kCorrupt);
  }
}

TEST(another_version_is_named) {
  const Change newer = [](std::string* bytes) { (*bytes)[4] = kWireVersion + 1; };
  const Outcome worker = Shake(ServersTerms(), WorkersTerms(), Key(), Key(), 1, newer);
  CHECK_STATUS(Code::kCorrupt, worker.worker);
  CHECK_TRUE(worker.worker.text().find("version " + std::to_string(kWireVersion + 1)) !=
             std::string::npos);
  const Outcome server = Shake(ServersTerms(), WorkersTerms(), Key(), Key(), 1, nullptr, newer);
  CHECK_STATUS(Code::kCorrupt, server.server);
  CHECK_TRUE(server.server.text().find("version " + std::to_string(kWireVersion + 1)) !=
             std::string::npos);
  const Change http = [](std::string* bytes) { *bytes = "GET / HTTP/1.1\r\n"; };
  CHECK_STATUS(Code::kCorrupt,
               Shake(ServersTerms(), WorkersTerms(), Key(), Key(), 50, nullptr, http).server);
}

TEST(a_hello_cannot_be_replayed_nor_a_message_reflected) {
  const Outcome first = Shake(ServersTerms(), WorkersTerms(), Key(), Key());
  std::string reply;
  ServerHandshake again(Key(), ServersTerms(), NonceOf(50));
  CHECK_STATUS(Code::kCorrupt, Feed(&again, first.hello, 1000, &reply));
  CHECK_TRUE(reply.empty() && !again.done());
  // A welcome of another connection says nothing.
  const Change replay = [&](std::string* bytes) { *bytes = first.welcome; };
  WorkerHandshake worker(Key(), WorkersTerms(), NonceOf(101));
  ServerHandshake server(Key(), ServersTerms(), NonceOf(0));
  std::string hello;
  REQUIRE_OK(Feed(&worker, server.Challenge(), 1000, &hello));
  std::string welcome = "x";
  replay(&welcome);
  CHECK_STATUS(Code::kCorrupt, Feed(&worker, welcome, 1000, &reply));
  CHECK_FALSE(worker.done());
}

TEST(a_welcome_that_is_too_long_is_refused_before_it_is_read) {
  const Change longer = [](std::string* bytes) { (*bytes)[9] = '\x7f'; };
  const Outcome o =
      Shake(ServersTerms(), WorkersTerms(), Key(), Key(), 1000, nullptr, nullptr, longer);
  CHECK_STATUS(Code::kCorrupt, o.worker);
}
