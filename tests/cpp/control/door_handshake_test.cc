#include "control/door_handshake.h"

#include <algorithm>
#include <functional>
#include <string>

#include "harness.h"

using namespace mercury;  // NOLINT: a test

namespace {

using Change = std::function<void(std::string*)>;

Nonce NonceOf(uint8_t first) {
  Nonce nonce;
  for (size_t i = 0; i < nonce.size(); ++i) nonce[i] = static_cast<uint8_t>(first + i);
  return nonce;
}

JobIdentity JobOf(uint8_t first) {
  JobIdentity job;
  for (size_t i = 0; i < job.size(); ++i) job[i] = static_cast<uint8_t>(first + i);
  return job;
}

const HmacKey& Key() {
  static const HmacKey key("the token of a job");
  return key;
}

// What connections do: a side is fed what it wants, in pieces as small as one byte.
template <typename Side>
Status Feed(Side* side, const std::string& bytes, size_t most, std::string* reply) {
  for (size_t at = 0; at < bytes.size() && side->wants() != 0;) {
    const size_t n = std::min({bytes.size() - at, side->wants(), most});
    Status status = side->Feed(bytes.data() + at, n, reply);
    if (!status.ok()) return status;
    at += n;
  }
  return Status::Ok();
}

struct Ends {
  HmacKey host_key = Key(), guest_key = Key();
  Post post = Post::kScheduler, expected_post = Post::kScheduler;
  std::optional<JobIdentity> expected_job;
  uint8_t host_nonce = 0, guest_nonce = 100;
};

struct Outcome {
  Status host, guest;
  bool host_done = false, guest_done = false;
  std::string challenge, hello, welcome;
  JobIdentity job{};
};

Outcome Shake(const Ends& ends, size_t most = 1000, const Change& challenge = nullptr,
              const Change& hello = nullptr, const Change& welcome = nullptr) {
  Outcome o;
  HostHandshake host(ends.host_key, ends.post, JobOf(200), NonceOf(ends.host_nonce));
  GuestHandshake guest(ends.guest_key, ends.expected_post, ends.expected_job,
                       NonceOf(ends.guest_nonce));
  o.challenge = host.Challenge();
  if (challenge) challenge(&o.challenge);
  o.guest = Feed(&guest, o.challenge, most, &o.hello);
  if (hello) hello(&o.hello);
  if (o.guest.ok()) o.host = Feed(&host, o.hello, most, &o.welcome);
  if (welcome) welcome(&o.welcome);
  std::string nothing;
  if (o.guest.ok()) o.guest = Feed(&guest, o.welcome, most, &nothing);
  CHECK_TRUE(nothing.empty());
  o.host_done = host.wants() == 0 && o.host.ok();
  o.guest_done = guest.done();
  CHECK_TRUE(!o.guest_done || guest.wants() == 0);
  o.job = guest.job();
  return o;
}

bool Says(const Status& status, const std::string& text) {
  return status.code() == Code::kCorrupt && status.text().find(text) != std::string::npos;
}

}  // namespace

TEST(both_sides_know_the_job) {
  for (const size_t most : {1, 2, 7, 1000}) {
    for (const bool knew : {false, true}) {
      Ends ends;
      if (knew) ends.expected_job = JobOf(200);
      const Outcome o = Shake(ends, most);
      CHECK_OK(o.host);
      CHECK_OK(o.guest);
      CHECK_TRUE(o.host_done && o.guest_done);
      CHECK_TRUE(o.job == JobOf(200));
    }
  }
}

// These lengths and beginnings are the protocol: whoever changes them makes a new version of it.
TEST(golden_bytes_of_the_messages) {
  const Outcome o = Shake({});
  const std::string prefix("MRCC\x06\x00", 6), zero(2, '\0');
  CHECK_EQ(o.challenge.size(), size_t{56});
  CHECK_EQ(o.hello.size(), size_t{72});
  CHECK_EQ(o.welcome.size(), size_t{40});
  CHECK_TRUE(o.challenge.substr(0, 8) == prefix + std::string("\x01\x00", 2));
  CHECK_EQ(static_cast<uint8_t>(o.challenge[8]), 200);
  CHECK_EQ(static_cast<uint8_t>(o.challenge[55]), 31);
  CHECK_TRUE(o.hello.substr(0, 8) == prefix + zero);
  CHECK_EQ(static_cast<uint8_t>(o.hello[8]), 100);
  CHECK_TRUE(o.welcome.substr(0, 8) == prefix + zero);
}

TEST(without_the_token_there_is_no_answer) {
  Ends ends;
  ends.guest_key = HmacKey("a guess");
  const Outcome guest = Shake(ends);
  CHECK_TRUE(Says(guest.host, "does not know the job token"));
  CHECK_TRUE(guest.welcome.empty() && !guest.guest_done);
  // And who only seems to be the host has nothing to answer with.
  const Change forged = [](std::string* welcome) {
    welcome->assign(kDoorWelcomeBytes, 'x');
    welcome->replace(0, 8, std::string("MRCC\x06\0\0\0", 8));
  };
  const Outcome host = Shake({}, 1000, nullptr, nullptr, forged);
  CHECK_TRUE(Says(host.guest, "does not know the job token") && !host.guest_done);
}

TEST(another_job_or_another_post_is_not_asked_any_further) {
  Ends ends;
  ends.expected_job = JobOf(201);
  const Outcome job = Shake(ends);
  CHECK_TRUE(Says(job.guest, "belongs to another job"));
  CHECK_TRUE(job.hello.empty() && !job.host_done);
  for (const bool scheduler : {false, true}) {
    Ends other;
    other.post = scheduler ? Post::kScheduler : Post::kNode;
    other.expected_post = scheduler ? Post::kNode : Post::kScheduler;
    const Outcome o = Shake(other);
    CHECK_TRUE(Says(o.guest, scheduler ? "it is a scheduler" : "it is not a scheduler"));
    CHECK_TRUE(o.hello.empty());
  }
}

// Whatever is changed on the way: nobody is done who should not be, and nobody believes it.
TEST(no_changed_byte_is_believed) {
  const Outcome plain = Shake({});
  const std::string* const messages[] = {&plain.challenge, &plain.hello, &plain.welcome};
  for (size_t which = 0; which < 3; ++which) {
    for (size_t at = 0; at < messages[which]->size(); ++at) {
      const Change change = [&](std::string* bytes) {
        (*bytes)[at] = static_cast<char>((*bytes)[at] ^ (1 << (at % 8)));
      };
      const Outcome o = Shake({}, 1000, which == 0 ? change : nullptr,
                              which == 1 ? change : nullptr, which == 2 ? change : nullptr);
      CHECK_FALSE(o.guest_done);
      CHECK_EQ(o.host_done, which == 2);
      CHECK_TRUE(o.guest.ok() || o.guest.code() == Code::kCorrupt);
      CHECK_TRUE(o.host.ok() || o.host.code() == Code::kCorrupt);
    }
  }
}

TEST(nobody_is_done_before_the_last_byte) {
  const Outcome plain = Shake({});
  for (size_t length = 0; length < kDoorHelloBytes; ++length) {
    HostHandshake host(Key(), Post::kScheduler, JobOf(200), NonceOf(0));
    std::string reply;
    CHECK_OK(Feed(&host, plain.hello.substr(0, length), 1000, &reply));
    CHECK_TRUE(reply.empty());
    CHECK_EQ(host.wants(), kDoorHelloBytes - length);
  }
  const std::string all = plain.challenge + plain.welcome;
  for (size_t length = 0; length < all.size(); ++length) {
    GuestHandshake guest(Key(), Post::kScheduler, {}, NonceOf(100));
    std::string reply;
    CHECK_OK(Feed(&guest, all.substr(0, length), 1000, &reply));
    CHECK_FALSE(guest.done());
    CHECK_EQ(guest.said_hello(), length >= kDoorChallengeBytes);
    CHECK_EQ(reply.empty(), !guest.said_hello());
  }
}

// Of other protocols, the first bytes are enough.
TEST(strangers_are_known_by_their_first_bytes) {
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.1\r\n"), std::string("\xff\0\0\0\0\0\0\0\0\x7e\x03", 11),
        std::string("MRCY\x01\0", 6), std::string("M!")}) {
    HostHandshake host(Key(), Post::kNode, JobOf(200), NonceOf(0));
    GuestHandshake guest(Key(), Post::kNode, {}, NonceOf(0));
    std::string reply;
    CHECK_TRUE(Says(Feed(&host, bytes, 1, &reply), "does not speak this protocol"));
    CHECK_TRUE(Says(Feed(&guest, bytes, 1, &reply), "does not speak this protocol"));
    CHECK_TRUE(reply.empty());
  }
  const Change newer = [](std::string* bytes) { (*bytes)[4] = 9; };
  CHECK_TRUE(Says(Shake({}, 1, newer).guest, "it speaks version 9 of the control protocol"));
  CHECK_TRUE(Says(Shake({}, 1, nullptr, newer).host, "it speaks version 9"));
}

TEST(stock_mxnet_is_known_by_zeromq_s_greeting) {
  const std::string greeting("\xff\0\0\0\0\0\0\0\1\x7f\x03", 11);
  for (size_t step : {1, 4, 11}) {
    HostHandshake host(Key(), Post::kScheduler, JobOf(200), NonceOf(0));
    GuestHandshake guest(Key(), Post::kScheduler, {}, NonceOf(0));
    std::string reply;
    CHECK_OK(Feed(&host, greeting.substr(0, 9), step, &reply));
    CHECK_TRUE(Says(Feed(&host, greeting.substr(9), step, &reply), "as stock MXNet does"));
    CHECK_TRUE(Says(Feed(&guest, greeting, step, &reply), "as stock MXNet does"));
    CHECK_TRUE(reply.empty());
  }
}

TEST(nothing_that_was_recorded_is_believed) {
  const Outcome recorded = Shake({});
  std::string reply;
  // A node's hello, at the same host later.
  HostHandshake host(Key(), Post::kScheduler, JobOf(200), NonceOf(1));
  CHECK_TRUE(Says(Feed(&host, recorded.hello, 1000, &reply), "does not know the job token"));
  CHECK_TRUE(reply.empty());
  // A scheduler's side of a conversation, to a node that joins now.
  GuestHandshake guest(Key(), Post::kScheduler, {}, NonceOf(101));
  const Status status = Feed(&guest, recorded.challenge + recorded.welcome, 1000, &reply);
  CHECK_TRUE(Says(status, "does not know the job token"));
  CHECK_FALSE(guest.done());
  // What a host says, said back to it.
  HostHandshake mirrored(Key(), Post::kScheduler, JobOf(200), NonceOf(2));
  std::string back = mirrored.Challenge() + recorded.welcome;
  CHECK_STATUS(Code::kCorrupt, Feed(&mirrored, back, 1000, &reply));
}
