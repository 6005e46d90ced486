// Two processes' shared memory and the socket beside it: what comes, who is woken, who ends it, and
// what somebody who knows the token but keeps to no rules can do.
#include "links/local_channel.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "harness.h"
#include "links/lane.h"
#include "links/local_pair.h"
#include "links/loopback.h"
#include "packets/packet_pool.h"

using namespace mercury;
namespace {

using mercury::testing::AddressBytes;
using mercury::testing::ChannelOf;
using mercury::testing::Limit;
using mercury::testing::LocalPair;
using mercury::testing::Pair;
using mercury::testing::Place;
using mercury::testing::Receive;
using mercury::testing::Send;
using mercury::testing::Woken;

TEST(only_who_rests_is_woken_when_the_other_has_no_more_to_say) {
  Pair pair;
  pair.Meet();
  Send(pair.guest.get(), "a");
  CHECK_TRUE(pair.guest->Rest(false));
  CHECK_FALSE(Woken(*pair.host));
  CHECK_FALSE(pair.host->Rest(false));  // it has found it by itself
  CHECK_EQ(Receive(pair.host.get()), std::string("a"));
  CHECK_TRUE(pair.host->Rest(false));
  Send(pair.guest.get(), "b");
  CHECK_FALSE(Woken(*pair.host));  // more may come
  CHECK_TRUE(pair.guest->Rest(false));
  REQUIRE_TRUE(Woken(*pair.host));
  pair.host->Woken(POLLIN);
  CHECK_FALSE(Woken(*pair.host));
  CHECK_EQ(Receive(pair.host.get()), std::string("b"));
  CHECK_TRUE(pair.host->Rest(false));
  Send(pair.guest.get(), std::string(kRingBytes, 'c'));
  CHECK_TRUE(Woken(*pair.host));  // with so much waiting it had better begin
}

TEST(what_was_said_before_the_end_is_heard_and_then_the_end) {
  Pair pair;
  pair.Meet();
  Send(pair.guest.get(), "farewell");
  pair.guest.reset();
  REQUIRE_TRUE(Woken(*pair.host));
  pair.host->Woken(POLLIN);
  CHECK_TRUE(pair.host->HasBytes());
  CHECK_EQ(Receive(pair.host.get()), std::string("farewell"));
  CHECK_TRUE(pair.host->HasBytes());
  ssize_t got;
  Receive(pair.host.get(), &got);
  CHECK_EQ(got, 0);
}

int DescriptorsOpen() {
  int open = 0;
  for (int fd = 0; fd < 256; ++fd) open += fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
  return open;
}

TEST(memory_that_could_be_taken_back_ends_the_channel) {
  auto [host, come] = LocalPair();
  const auto guest = ChannelOf(std::move(come));
  const TcpSocket unsealed(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  REQUIRE_EQ(ftruncate(unsealed.fd(), 2 * sizeof(RingMemory)), 0);
  const int before = DescriptorsOpen();
  REQUIRE_TRUE(HandOver(host.fd(), 1, unsealed.fd()));
  guest->Woken(POLLIN);
  CHECK_EQ(DescriptorsOpen(), before);
  CHECK_TRUE(guest->HasBytes());
  ssize_t got;
  Receive(guest.get(), &got);
  CHECK_EQ(got, -1);
  CHECK_EQ(errno, EPROTO);
}

TEST(who_is_handed_more_descriptors_keeps_none) {
  auto [listening, come] = LocalPair();
  const int dup = fcntl(listening.fd(), F_DUPFD_CLOEXEC, 0), back = fcntl(come.fd(), F_DUPFD, 0);
  const TcpSocket to_guest(dup), to_host(back);
  const auto guest = ChannelOf(std::move(come));
  const auto host = ChannelOf(std::move(listening));
  guest->Woken(POLLIN);
  host->Woken(POLLIN);
  const int before = DescriptorsOpen();
  for (int i = 0; i < 100; ++i) {
    REQUIRE_TRUE(HandOver(to_guest.fd(), 0, STDIN_FILENO));
    REQUIRE_TRUE(HandOver(to_host.fd(), 0, STDIN_FILENO));
    guest->Woken(POLLIN);
    host->Woken(POLLIN);
  }
  CHECK_EQ(DescriptorsOpen(), before);
  CHECK_EQ(Send(guest.get(), "still there"), 11);
  CHECK_EQ(Receive(host.get()), std::string("still there"));
}

// A guest that maps the memory itself; its own ring is the second.
RingMemory* TakeAsGuest(const TcpSocket& come, SharedMemory* memory) {
  TcpSocket handed, lent;
  char byte;
  REQUIRE_EQ(Hear(come.fd(), &byte, 1, &handed, &lent), 1);
  REQUIRE_EQ(send(come.fd(), &byte, 1, 0), 1);  // it has it
  REQUIRE_OK(
      SharedMemory::Map(handed, 2 * sizeof(RingMemory), SharedMemory::For::kWriting, memory));
  return static_cast<RingMemory*>(memory->data());
}

TEST(a_count_that_cannot_be_ends_the_channel) {
  auto [listening, come] = LocalPair();
  const auto host = ChannelOf(std::move(listening));
  SharedMemory memory;
  RingMemory* rings = TakeAsGuest(come, &memory);
  host->Woken(POLLIN);
  rings[1].writer.count = uint64_t{1} << 40;
  CHECK_FALSE(host->Rest(false));
  CHECK_TRUE(host->HasBytes());
  ssize_t got;
  Receive(host.get(), &got);
  CHECK_EQ(got, -1);
  CHECK_EQ(errno, EPROTO);
}

TEST(another_user_of_the_host_is_given_nothing) {
  if (geteuid() != 0) return;  // nobody else can be played
  const Place place;
  TcpSocket listener, host, guest;
  std::string from;
  REQUIRE_OK(ListenLocally(place.address, &listener));
  REQUIRE_EQ(seteuid(65534), 0);
  const Status connected = ConnectLocally(place.address, &guest);
  REQUIRE_EQ(seteuid(0), 0);
  CHECK_STATUS(Code::kPeerLost, connected);
  REQUIRE_OK(Accept(listener, TcpOptions(), &host, &from));
  std::unique_ptr<Channel> channel;
  CHECK_STATUS(Code::kPeerLost, MakeChannel(std::move(host), nullptr, &channel));
}

// A host that lends, and its guest.
struct Lending {
  Lending() {
    auto [listening, come] = LocalPair();
    guest = ChannelOf(std::move(come));
    host = ChannelOf(std::move(listening), lends);
    guest->Woken(POLLIN);
    host->Woken(POLLIN);
  }
  // A block of the memory that is lent, full of one letter.
  std::shared_ptr<char> Block(char letter) const {
    char* block = lends->Get(kBlockBytes);
    REQUIRE_TRUE(block != nullptr);
    std::memset(block, letter, kBlockBytes);
    const auto memory = lends;
    return {block, [memory](char* gone) { memory->Return(gone, kBlockBytes); }};
  }
  // Sends all of it, and lets go of it as a link does.
  void SendAndKeep(std::shared_ptr<char> block) const {
    iovec piece{block.get(), kBlockBytes};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    CHECK_EQ(host->Send(&message), static_cast<ssize_t>(kBlockBytes));
    std::vector<std::shared_ptr<const void>> sent{std::move(block)};
    host->Keep(&sent);
  }
  std::string Take(size_t bytes) const {
    std::string taken;
    while (taken.size() < bytes) taken += Receive(guest.get());
    return taken;
  }
  static constexpr size_t kBlockBytes = 10000;  // of which Receive takes 100 at a time
  const std::shared_ptr<LentMemory> lends = LentMemory::Make();
  std::unique_ptr<Channel> host, guest;
};

TEST(what_is_lent_is_read_where_it_lies_and_kept_until_then) {
  const Lending pair;
  auto first = pair.Block('a');
  const std::weak_ptr<char> watched = first;
  char* where = first.get();
  pair.SendAndKeep(std::move(first));
  where[5000] = 'x';  // nobody has copied it
  CHECK_EQ(pair.Take(9900), std::string(5000, 'a') + "x" + std::string(4899, 'a'));
  pair.SendAndKeep(pair.Block('b'));
  CHECK_FALSE(watched.expired());
  CHECK_EQ(pair.Take(Lending::kBlockBytes + 100),
           std::string(100, 'a') + std::string(Lending::kBlockBytes, 'b'));
  pair.SendAndKeep(pair.Block('c'));
  CHECK_TRUE(watched.expired());
}

TEST(what_a_guest_has_not_read_yet_stays_when_the_host_lets_go) {
  std::weak_ptr<char> unread, read;
  {
    Lending pair;
    auto block = pair.Block('a');
    unread = block;
    pair.SendAndKeep(std::move(block));
    pair.host.reset();
    CHECK_FALSE(unread.expired());
    CHECK_EQ(pair.Take(Lending::kBlockBytes), std::string(Lending::kBlockBytes, 'a'));
  }
  {
    Lending pair;
    auto block = pair.Block('a');
    read = block;
    pair.SendAndKeep(std::move(block));
    pair.Take(Lending::kBlockBytes);
    pair.host.reset();
    CHECK_TRUE(read.expired());
  }
}

TEST(a_guest_without_room_for_what_is_lent_gets_copies) {
  Lending pair;
  auto [listening, come] = LocalPair();
  pair.guest = ChannelOf(std::move(come));
  pair.host = ChannelOf(std::move(listening), pair.lends);
  {
    const Limit addresses(RLIMIT_AS, AddressBytes() + (rlim_t{16} << 20));
    pair.guest->Woken(POLLIN);
  }
  pair.host->Woken(POLLIN);
  auto block = pair.Block('a');
  const std::weak_ptr<char> watched = block;
  pair.SendAndKeep(std::move(block));
  CHECK_TRUE(watched.expired());
  CHECK_EQ(pair.Take(Lending::kBlockBytes), std::string(Lending::kBlockBytes, 'a'));
}

TEST(a_loan_that_cannot_be_ends_the_channel) {
  for (const bool lends : {false, true}) {
    auto [listening, come] = LocalPair();
    const auto guest = ChannelOf(std::move(come));
    // A host that makes the memory itself; its own ring is the first.
    SharedMemory memory;
    TcpSocket descriptor;
    REQUIRE_OK(SharedMemory::Make(2 * sizeof(RingMemory), &memory, &descriptor));
    const auto lent = LentMemory::Make();
    auto* rings = static_cast<RingMemory*>(memory.data());
    rings[0].ring_bytes = kRingBytesLeast;
    REQUIRE_TRUE(HandOver(listening.fd(), 1, descriptor.fd(), lends ? lent->Lend() : -1));
    guest->Woken(POLLIN);
    rings[0].loans[0].bytes = 100;
    rings[0].loans[0].where = lends ? kLentBytes - 99 : 0;
    rings[0].loans_made = 1;
    rings[0].writer.count = 100;
    ssize_t got;
    Receive(guest.get(), &got);
    CHECK_EQ(got, -1);
    CHECK_EQ(errno, EPROTO);
  }
}

TEST(rings_are_as_long_as_the_host_says_and_no_other_length_is_believed) {
  for (const size_t ring_bytes : {kRingBytesLeast, kRingBytes / 4, kRingBytes}) {
    auto [listening, come] = LocalPair();
    std::unique_ptr<Channel> host, guest;
    REQUIRE_OK(MakeChannel(std::move(come), nullptr, &guest));
    REQUIRE_OK(MakeChannel(std::move(listening), nullptr, &host, ring_bytes));
    guest->Woken(POLLIN);
    host->Woken(POLLIN);
    const auto most = static_cast<ssize_t>(ring_bytes);
    CHECK_EQ(Send(host.get(), std::string(2 * kRingBytes, 'h')), most);
    CHECK_EQ(Send(guest.get(), std::string(2 * kRingBytes, 'g')), most);
    CHECK_EQ(Receive(host.get()), std::string(100, 'g'));
    CHECK_EQ(Receive(guest.get()), std::string(100, 'h'));
  }
  auto [listening, come] = LocalPair();
  const auto guest = ChannelOf(std::move(come));
  SharedMemory memory;
  TcpSocket descriptor;
  REQUIRE_OK(SharedMemory::Make(2 * sizeof(RingMemory), &memory, &descriptor));
  static_cast<RingMemory*>(memory.data())->ring_bytes = kRingBytes + 1;
  REQUIRE_TRUE(HandOver(listening.fd(), 1, descriptor.fd(), -1));
  guest->Woken(POLLIN);
  ssize_t got;
  Receive(guest.get(), &got);
  CHECK_EQ(got, -1);
  CHECK_EQ(errno, EPROTO);
}

// Sends so many packets, each of its own length, and takes the other's.
struct Chatter : Endpoint {
  explicit Chatter(std::shared_ptr<LentMemory> lends) : pool(0, std::move(lends)) {}
  Status OnHeader(int /*peer*/, const Header& header, int64_t /*now*/, char** target) override {
    if (header.length != 0) *target = inbox.data();
    return Status::Ok();
  }
  Status OnPacket(int /*peer*/, const Header& header, int64_t /*now*/) override {
    if (header.kind == PacketKind::kGoodbye) return Status::Ok();
    const std::lock_guard<std::mutex> lock(mutex);
    for (size_t i = 0; i < header.length; i += 997) {
      if (inbox[i] != static_cast<char>(header.tensor)) ++wrong;
    }
    if (++came == kPackets) changed.notify_all();
    return Status::Ok();
  }
  bool Next(int /*peer*/, int64_t /*now*/, OutPacket* out) override {
    if (sent == kPackets) return false;
    out->header.tensor = sent++;
    out->header.length = sent * 7919 % 65536;
    const Block payload = pool.Get(out->header.length);
    std::memset(payload.get(), static_cast<char>(out->header.tensor), out->header.length);
    out->payload = payload.get();
    out->keep = payload;
    return true;
  }
  bool Heard() {
    std::unique_lock<std::mutex> lock(mutex);
    return changed.wait_for(lock, std::chrono::seconds(60), [&] { return came == kPackets; });
  }
  static constexpr uint32_t kPackets = 5000;
  PacketPool pool;
  std::vector<char> inbox = std::vector<char>(64 << 10);
  uint32_t sent = 0, came = 0, wrong = 0;
  std::mutex mutex;
  std::condition_variable changed;
};

// One of them lends, from blocks that are used again as soon as they may be.
void FloodEachOther(bool share) {
  auto pair = LocalPair();
  std::vector<std::unique_ptr<Lane>> lanes;
  std::vector<Chatter*> chatters;
  for (TcpSocket* socket : {&pair.first, &pair.second}) {
    LinkOptions options;
    if (socket == &pair.first) options.lends = LentMemory::Make();
    auto chatter = std::make_unique<Chatter>(options.lends);
    chatters.push_back(chatter.get());
    LaneEvents events;
    events.lost = [](int /*peer*/, const Status& status) { CHECK_OK(status); };
    events.left = [](int /*peer*/) {};
    lanes.push_back(std::make_unique<Lane>(std::move(chatter), options, std::move(events)));
    REQUIRE_OK(lanes.back()->Start("mercury-test"));
    Lane* lane = lanes.back().get();
    REQUIRE_TRUE(lane->Ask([&] {
      const Limit files(RLIMIT_FSIZE, share ? RLIM_INFINITY : 1 << 20);
      lane->AddLink(std::move(*socket), 0);
    }));
  }
  for (Chatter* chatter : chatters) {
    CHECK_TRUE(chatter->Heard());
    CHECK_EQ(chatter->wrong, 0U);
  }
}

TEST(two_lanes_that_flood_each_other_take_it_all) { FloodEachOther(true); }
TEST(two_lanes_without_memory_to_share_take_it_all_by_their_socket) { FloodEachOther(false); }

}  // namespace
