// One link at the end of a real connection: when it is woken, and how it ends.
#include "links/link.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "harness.h"
#include "links/local_pair.h"
#include "links/loopback.h"

using namespace mercury;
namespace {

// Takes everything; sends packets of `to_send` bytes without end, if any.
struct Sink : Endpoint {
  Status OnHeader(int /*peer*/, const Header& header, int64_t /*now*/, char** target) override {
    if (header.length != 0) *target = buffer.data();
    return Status::Ok();
  }
  Status OnPacket(int /*peer*/, const Header& /*header*/, int64_t /*now*/) override {
    ++packets;
    return Status::Ok();
  }
  bool Next(int /*peer*/, int64_t /*now*/, OutPacket* out) override {
    if (to_send == 0) return false;
    out->header.length = static_cast<uint32_t>(to_send);
    out->payload = buffer.data();
    return true;
  }
  std::vector<char> buffer = std::vector<char>(64 << 10);
  size_t packets = 0, to_send = 0;
};

std::string Packet(PacketKind kind, size_t bytes) {
  Header header;
  header.kind = kind;
  header.length = static_cast<uint32_t>(bytes);
  const HeaderBytes encoded = Encode(header);
  return std::string(encoded.begin(), encoded.end()) + std::string(bytes, 'x');
}

// A link, and the other end of its connection, played by the test.
struct Wire {
  Wire() {
    TcpSocket near;
    std::tie(near, far) = mercury::testing::ConnectedPair();
    link = std::make_unique<Link>(mercury::testing::ChannelOf(std::move(near)), 0, &sink,
                                  LinkOptions());
  }
  void Send(const std::string& bytes) const {
    REQUIRE_EQ(send(far.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL), bytes.size());
  }
  // Hangs up with bytes unread: what the link sends from now on is answered with a reset.
  void Reset() {
    const linger at_once{1, 0};
    setsockopt(far.fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    far.Close();
  }
  Status WriteUntilItFails() {
    for (int i = 0; i < 100000; ++i) {
      Status status = link->Write(i);
      if (!status.ok()) return status;
    }
    return Status::Ok();
  }

  Sink sink;
  TcpSocket far;
  std::unique_ptr<Link> link;
};

// What the link receives, instead of what its socket holds: always as much as it has room for.
std::string burst;

ssize_t ReceiveFromBurst(int /*fd*/, msghdr* message, int /*flags*/) {
  size_t got = 0;
  for (size_t i = 0; i < message->msg_iovlen; ++i) {
    const iovec& piece = message->msg_iov[i];
    const size_t bytes = std::min(piece.iov_len, burst.size() - got);
    std::memcpy(piece.iov_base, burst.data() + got, bytes);
    got += bytes;
  }
  burst.erase(0, got);
  return static_cast<ssize_t>(got);
}

// Into memory that nobody reads from.
TEST(a_turn_of_writing_ends_before_all_is_written) {
  mercury::testing::Pair pair;
  pair.Meet();
  Sink sink;
  sink.to_send = 64 << 10;
  Link link(std::move(pair.host), 0, &sink, LinkOptions());
  REQUIRE_OK(link.Write(1));
  const uint64_t turn = link.counters().bytes_sent;
  CHECK_TRUE(turn > kRingBytes / 4 && turn < kRingBytes * 3 / 4);
  CHECK_FALSE(link.blocked());
  CHECK_TRUE(link.has_more());
  REQUIRE_OK(link.Write(2));
  CHECK_EQ(link.counters().bytes_sent, kRingBytes);
  CHECK_TRUE(link.blocked());
  CHECK_FALSE(link.has_more());  // until there is room
}

TEST(a_turn_that_ends_early_is_continued_however_little_is_left) {
  Wire wire;
  const int poll = epoll_create1(0);
  const TcpSocket owner(poll);
  epoll_event event{};
  event.events = EPOLLIN;
  REQUIRE_EQ(epoll_ctl(poll, EPOLL_CTL_ADD, wire.link->fd(), &event), 0);
  // A header alone: from now on the link is not woken for less than a large part of the payload.
  const std::string packet = Packet(PacketKind::kData, 64 << 10);
  wire.Send(packet.substr(0, kHeaderBytes));
  while (wire.link->counters().bytes_received < kHeaderBytes) REQUIRE_OK(wire.link->Read(1));
  REQUIRE_OK(wire.link->Read(1));
  // A turn's worth, and a little more.
  burst = packet.substr(kHeaderBytes);
  for (int i = 0; i < 7; ++i) burst += packet;
  for (int i = 0; i < 3; ++i) burst += Packet(PacketKind::kSum, 1000);
  Calls().receive = ReceiveFromBurst;
  const Status status = wire.link->Read(2);
  Calls().receive = recvmsg;
  REQUIRE_OK(status);
  // The rest comes while the link is not looking.
  REQUIRE_TRUE(!burst.empty() && burst.size() < 4000);
  wire.Send(burst);
  while (wire.sink.packets < 11) {
    REQUIRE_EQ(epoll_wait(poll, &event, 1, 5000), 1);
    REQUIRE_OK(wire.link->Read(3));
  }
}

// However much the socket would take: a packet goes out in parts, and is whole in the end. Its last
// few bytes go with those before them.
TEST(no_more_is_handed_over_at_once_than_the_link_s_share) {
  Wire wire;
  wire.sink.to_send = 50000;
  std::fill(wire.sink.buffer.begin(), wire.sink.buffer.end(), 'x');
  constexpr uint64_t kShare = 20001;
  wire.link->SetShare(1 << 20, kShare);
  std::string wanted, got;
  while (wanted.size() < 9 * kShare) wanted += Packet(Header().kind, 50000);
  for (uint64_t turn = 1; turn <= 9; ++turn) {
    REQUIRE_OK(wire.link->Write(static_cast<int64_t>(turn)));
    CHECK_TRUE(wire.link->blocked());
    const uint64_t handed_over = wire.link->counters().bytes_sent - got.size();
    REQUIRE_TRUE(handed_over == kShare || turn % 5 == 0);
    REQUIRE_TRUE(handed_over >= kShare && handed_over < kShare + 100);
    std::string part(handed_over, ' ');
    REQUIRE_EQ(recv(wire.far.fd(), part.data(), part.size(), MSG_WAITALL),
               static_cast<ssize_t>(part.size()));
    got += part;
  }
  CHECK_EQ(wire.link->counters().send_calls,
           11U);  // one a turn, two where the next packet begins in it
  CHECK_TRUE(got == wanted.substr(0, got.size()));
  wire.sink.to_send = 0;  // the rest of a packet that has begun, then nothing
  for (int turn = 10; turn < 20; ++turn) REQUIRE_OK(wire.link->Write(turn));
  CHECK_FALSE(wire.link->blocked());
  CHECK_EQ(wire.link->counters().bytes_sent % (50000 + kHeaderBytes), 0U);
}

// Each part of a segment is sent with headers of its own. What is last must not wait, though.
TEST(while_more_waits_only_full_segments_leave) {
  Wire wire;
  wire.link->shares = true;
  wire.sink.to_send = 10000;
  const auto path = [&] {
    tcp_info info{};
    socklen_t bytes = sizeof(info);
    REQUIRE_EQ(getsockopt(wire.link->fd(), IPPROTO_TCP, TCP_INFO, &info, &bytes), 0);
    return info;
  };
  uint64_t arrived = 0;
  std::string part(1 << 20, ' ');
  const auto receive = [&](int flags) {
    const ssize_t got = recv(wire.far.fd(), part.data(), part.size(), flags);
    arrived += got > 0 ? static_cast<uint64_t>(got) : 0;
    return got > 0;
  };
  for (int turn = 0; turn < 200; ++turn) {
    REQUIRE_OK(wire.link->Write(turn));
    REQUIRE_TRUE(wire.link->blocked());
    while (receive(MSG_DONTWAIT)) {
    }
  }
  const uint64_t sent = wire.link->counters().bytes_sent;
  REQUIRE_TRUE(sent > 100 * path().tcpi_snd_mss);
  CHECK_TRUE(path().tcpi_data_segs_out < sent / path().tcpi_snd_mss * 11 / 10);

  wire.sink.to_send = 0;
  while (wire.link->blocked()) {
    REQUIRE_OK(wire.link->Write(200));
    while (receive(MSG_DONTWAIT)) {
    }
  }
  int held = 1;
  socklen_t bytes = sizeof(held);
  REQUIRE_EQ(getsockopt(wire.link->fd(), IPPROTO_TCP, TCP_CORK, &held, &bytes), 0);
  CHECK_EQ(held, 0);
  while (arrived < wire.link->counters().bytes_sent) REQUIRE_TRUE(receive(0));
}

TEST(the_socket_is_told_its_share) {
  Wire wire;
  const auto told = [&](int name) {
    int value = 0;
    socklen_t bytes = sizeof(value);
    REQUIRE_EQ(getsockopt(wire.link->fd(), IPPROTO_TCP, name, &value, &bytes), 0);
    return value;
  };
  wire.link->SetShare(40000, 30000);
  CHECK_EQ(told(TCP_WINDOW_CLAMP), 40000);
  CHECK_EQ(told(TCP_NOTSENT_LOWAT), 30000);
  // As the kernel does by itself.
  const int forgotten = 400000;
  setsockopt(wire.link->fd(), IPPROTO_TCP, TCP_WINDOW_CLAMP, &forgotten, sizeof(forgotten));
  wire.link->SetShare(41000, 31000);
  CHECK_EQ(told(TCP_WINDOW_CLAMP), 41000);
  CHECK_EQ(told(TCP_NOTSENT_LOWAT), 30000);  // not for so little
  wire.link->SetShare(4000, 1 << 30);
  CHECK_EQ(told(TCP_WINDOW_CLAMP), 4000);
  CHECK_EQ(told(TCP_NOTSENT_LOWAT), kUnsentBytesMax);
}

TEST(connections_within_a_host_are_told_from_others) {
  Wire wire;
  CHECK_TRUE(IsLocal(wire.link->fd()));
  CHECK_TRUE(PathOf(wire.link->fd()).segment_bytes > 500);
  const TcpSocket lonely(socket(AF_INET, SOCK_STREAM, 0));
  CHECK_FALSE(IsLocal(lonely.fd()));
}

TEST(who_has_said_goodbye_is_not_lost_however_it_hangs_up) {
  Wire wire;
  wire.sink.to_send = 1000;
  REQUIRE_OK(wire.link->Write(1));
  wire.Send(Packet(PacketKind::kGoodbye, 0));
  while (wire.sink.packets == 0) REQUIRE_OK(wire.link->Read(2));
  wire.Reset();
  Status status = wire.link->Read(3);
  while (status.ok()) status = wire.link->Read(3);
  CHECK_STATUS(Code::kClosed, status);
}

TEST(a_goodbye_counts_though_writing_fails_before_it_is_read) {
  for (const bool read_before : {true, false}) {
    Wire wire;
    wire.sink.to_send = 1000;
    REQUIRE_OK(wire.link->Write(1));
    wire.Send(Packet(PacketKind::kSum, 100) + Packet(PacketKind::kGoodbye, 0));
    while (read_before && wire.sink.packets < 2) REQUIRE_OK(wire.link->Read(2));
    // In good order, but for what it has not read.
    wire.far.Close();
    CHECK_STATUS(Code::kClosed, wire.WriteUntilItFails());
    CHECK_EQ(wire.sink.packets, 2U);
  }
}

// Sends the same block of memory that is lent, again and again.
struct Lender : Sink {
  explicit Lender(const std::shared_ptr<LentMemory>& memory)
      : block(memory->Get(kBlockBytes), [memory](char* its) { memory->Return(its, kBlockBytes); }) {
    REQUIRE_TRUE(block != nullptr);
    std::memset(block.get(), 'x', kBlockBytes);
  }
  bool Next(int /*peer*/, int64_t /*now*/, OutPacket* out) override {
    if (block == nullptr) return false;
    out->header.length = kBlockBytes;
    out->payload = block.get();
    out->keep = block;
    return true;
  }
  static constexpr size_t kBlockBytes = 48 << 10;
  std::shared_ptr<char> block;
};

// The guest has room for the first packet of a batch, and for a part of the second, and has read
// nothing when the link ends.
TEST(what_is_lent_of_a_batch_under_way_stays_when_the_link_ends) {
  const auto lends = LentMemory::Make();
  auto [listening, come] = mercury::testing::LocalPair();
  std::unique_ptr<Channel> host;
  const auto guest = mercury::testing::ChannelOf(std::move(come));
  REQUIRE_OK(MakeChannel(std::move(listening), lends, &host, kRingBytesLeast));
  guest->Woken(EPOLLIN);
  host->Woken(EPOLLIN);
  Lender lender(lends);
  const std::weak_ptr<char> lent = lender.block;
  auto link = std::make_unique<Link>(std::move(host), 0, &lender, LinkOptions());
  REQUIRE_OK(link->Write(1));
  CHECK_TRUE(link->blocked());
  lender.block.reset();
  CHECK_FALSE(lent.expired());
  link.reset();
  CHECK_FALSE(lent.expired());
  std::string got(kHeaderBytes + Lender::kBlockBytes, ' ');
  iovec piece{got.data(), got.size()};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  CHECK_EQ(guest->Receive(&message), static_cast<ssize_t>(got.size()));
  CHECK_EQ(got.substr(kHeaderBytes), std::string(Lender::kBlockBytes, 'x'));
}

TEST(who_hangs_up_without_a_goodbye_is_lost) {
  for (const bool reset : {true, false}) {
    Wire wire;
    wire.sink.to_send = 1000;
    REQUIRE_OK(wire.link->Write(1));
    if (reset) {
      wire.Reset();
    } else {
      wire.far.Close();
    }
    CHECK_STATUS(Code::kPeerLost, wire.WriteUntilItFails());
  }
}

}  // namespace
