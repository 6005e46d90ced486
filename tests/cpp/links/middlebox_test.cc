// Two links with something in between that acknowledges what it is given: it may pass it on, slowly
// or not, swallow it, or change it. Bytes are real, time is a number.
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "harness.h"
#include "links/link.h"
#include "links/loopback.h"

using namespace mercury;
namespace {

constexpr int64_t kSecond = 1000000, kStepUs = 50000;

// Sends what it is told to, and takes everything.
struct End : Endpoint {
  Status OnHeader(int /*peer*/, const Header& header, int64_t /*now*/, char** target) override {
    if (header.length != 0) *target = received.data();
    return Status::Ok();
  }
  Status OnPacket(int /*peer*/, const Header& header, int64_t /*now*/) override {
    CHECK_TRUE(header.kind == PacketKind::kData);
    ++packets;
    return Status::Ok();
  }
  bool Next(int /*peer*/, int64_t /*now*/, OutPacket* out) override {
    if (to_send == 0) return false;
    --to_send;
    out->header.length = static_cast<uint32_t>(payload.size());
    out->payload = payload.data();
    return true;
  }
  std::string payload;
  std::vector<char> received = std::vector<char>(64 << 10);
  size_t packets = 0, to_send = 0;
};

class Middlebox {
 public:
  explicit Middlebox(bool checksum = false) {
    for (size_t i = 0; i < 2; ++i) {
      TcpSocket near;
      std::tie(near, far_[i]) = testing::ConnectedPair();
      LinkOptions options;
      options.checksum = checksum;
      options.silence_us = 10 * kSecond;
      links[i] = std::make_unique<Link>(mercury::testing::ChannelOf(std::move(near)), 0, &ends[i],
                                        options);
    }
  }

  // A lane's turns, until a link has ended or this time is over.
  void Run(int64_t us) {
    const int64_t until_us = now_us + us;
    while (now_us < until_us && status[0].ok() && status[1].ok()) {
      now_us += kStepUs;
      for (size_t i = 0; i < 2; ++i) {
        Then(i, [&] { return links[i]->Read(now_us); });
        if (links[i]->progress_at_us() <= now_us) {
          Then(i, [&] { return links[i]->CheckProgress(now_us); });
        }
        Then(i, [&] { return links[i]->Write(now_us); });
        Pass(i);
      }
    }
  }
  bool idle() const {
    return links[0]->progress_at_us() == kNever && links[1]->progress_at_us() == kNever;
  }

  std::array<End, 2> ends;
  std::array<std::unique_ptr<Link>, 2> links;
  std::array<Status, 2> status;
  std::array<bool, 2> swallows{};          // what comes from this end
  std::array<uint64_t, 2> flip_at{};       // the byte of which a bit is changed
  size_t bytes_at_once = size_t{1} << 20;  // in one step
  int64_t now_us = kSecond;

 private:
  template <typename Step>
  void Then(size_t i, const Step& step) {
    if (status[i].ok()) status[i] = step();
  }
  void Pass(size_t from) {
    for (size_t left = bytes_at_once; left != 0;) {
      char buffer[4096];
      const ssize_t got =
          recv(far_[from].fd(), buffer, std::min(sizeof(buffer), left), MSG_DONTWAIT);
      if (got <= 0) return;
      left -= static_cast<size_t>(got);
      const uint64_t at = flip_at[from] - passed_[from];
      if (flip_at[from] != 0 && at < static_cast<uint64_t>(got)) buffer[at] ^= 4;
      passed_[from] += static_cast<uint64_t>(got);
      if (swallows[from]) continue;
      for (ssize_t sent = 0; sent < got;) {
        const ssize_t n = send(far_[1 - from].fd(), buffer + sent, static_cast<size_t>(got - sent),
                               MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0) sent += n;
        // The other end reads more than this.
        if (n < 0) Then(1 - from, [&] { return links[1 - from]->Read(now_us); });
        if (!status[1 - from].ok()) return;
      }
    }
  }

  std::array<TcpSocket, 2> far_;
  std::array<uint64_t, 2> passed_{};
};

TEST(a_link_that_is_swallowed_ends_on_either_side) {
  for (const auto& [first, second] : {std::pair{true, false}, {false, true}, {true, true}}) {
    for (const bool checksum : {false, true}) {
      Middlebox box(checksum);
      for (End& end : box.ends) end.payload = std::string(10000, 'x');
      const auto talk = [&](int times) {
        for (; times != 0; --times) {
          for (End& end : box.ends) end.to_send = 2;
          box.Run(500000);
        }
      };
      talk(60);
      CHECK_OK(box.status[0]);
      CHECK_OK(box.status[1]);
      CHECK_EQ(box.ends[0].packets, 120U);
      box.swallows = {first, second};
      const int64_t since_us = box.now_us;
      talk(60);
      const Status& status = box.status[0].ok() ? box.status[1] : box.status[0];
      CHECK_STATUS(Code::kPeerLost, status);
      CHECK_TRUE(status.text().find("bytes vanish on the way") != std::string::npos);
      CHECK_TRUE(box.now_us - since_us > 8 * kSecond);
      CHECK_TRUE(box.now_us - since_us < 14 * kSecond);
    }
  }
}

TEST(one_packet_that_is_swallowed_is_enough) {
  Middlebox box;
  box.ends[0].payload = "a few bytes";
  box.swallows = {true, false};
  box.ends[0].to_send = 1;
  box.Run(60 * kSecond);
  CHECK_STATUS(Code::kPeerLost, box.status[0]);
  CHECK_OK(box.status[1]);
}

// 10 kbit/s each way, packets of 64 KiB: each takes 52 s, and so does a report behind one.
TEST(a_slow_link_lasts) {
  Middlebox box(true);
  box.bytes_at_once = 62;
  for (End& end : box.ends) {
    end.payload = std::string(64 << 10, 'x');
    end.to_send = 3;
  }
  box.Run(400 * kSecond);
  CHECK_OK(box.status[0]);
  CHECK_OK(box.status[1]);
  CHECK_EQ(box.ends[0].packets, 3U);
  CHECK_EQ(box.ends[1].packets, 3U);
  CHECK_TRUE(box.idle());
}

TEST(an_idle_link_says_nothing) {
  Middlebox box;
  box.ends[0].payload = "a few bytes";
  box.ends[0].to_send = 1;
  box.Run(5 * kSecond);
  CHECK_EQ(box.ends[1].packets, 1U);
  CHECK_TRUE(box.idle());
  const uint64_t sent = box.links[1]->counters().bytes_sent;
  CHECK_EQ(sent, kHeaderBytes);  // one report
  box.Run(1000 * kSecond);
  CHECK_EQ(box.links[1]->counters().bytes_sent, sent);
  CHECK_OK(box.status[0]);
  CHECK_OK(box.status[1]);
}

TEST(a_changed_bit_ends_the_link_and_no_packet_of_it_is_believed) {
  testing::Random random;
  for (int trial = 0; trial < 40; ++trial) {
    Middlebox box(true);
    const size_t from = random.Below(2);
    End& end = box.ends[from];
    end.payload = std::string(3000, 'x');
    end.to_send = 10;
    const size_t packet_bytes = kHeaderBytes + end.payload.size() + kChecksumBytes;
    const size_t whole = random.Below(10);
    box.flip_at[from] = whole * packet_bytes + 1 + random.Below(packet_bytes - 1);
    box.Run(60 * kSecond);
    const Status& status = box.status[1 - from];
    CHECK_EQ(box.ends[1 - from].packets, whole);
    // A length that was changed in the last packets makes it wait for what never comes.
    if (status.code() != Code::kPeerLost) CHECK_STATUS(Code::kCorrupt, status);
    if (status.code() == Code::kPeerLost) CHECK_EQ(whole, 9U);
  }
}

}  // namespace
