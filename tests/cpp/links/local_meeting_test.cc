// How a host and its guest come to share memory, and that they do without if either cannot.
#include <sys/socket.h>

#include <cerrno>
#include <memory>
#include <string>
#include <utility>

#include "harness.h"
#include "links/local_channel.h"
#include "links/local_pair.h"

using namespace mercury;
namespace {

using mercury::testing::AddressBytes;
using mercury::testing::ChannelOf;
using mercury::testing::Limit;
using mercury::testing::LocalPair;
using mercury::testing::Pair;
using mercury::testing::Receive;
using mercury::testing::Send;
using mercury::testing::Woken;

TEST(both_speak_once_both_have_the_memory) {
  Pair pair;
  for (Channel* each : {pair.host.get(), pair.guest.get()}) {
    CHECK_TRUE(each->Rest(true));
    CHECK_FALSE(each->HasRoom());
    CHECK_EQ(Send(each, "too early"), -1);
    CHECK_EQ(errno, EAGAIN);
  }
  REQUIRE_TRUE(Woken(*pair.guest));
  pair.guest->Woken(POLLIN);
  CHECK_TRUE(pair.guest->HasRoom());
  CHECK_EQ(Send(pair.guest.get(), "thanks"), 6);
  REQUIRE_TRUE(Woken(*pair.host));
  pair.host->Woken(POLLIN);
  CHECK_TRUE(pair.host->HasRoom() && pair.host->HasBytes() && !pair.host->WakesForRoom());
  CHECK_EQ(Receive(pair.host.get()), std::string("thanks"));
  CHECK_EQ(Receive(pair.host.get()), std::string());
  CHECK_EQ(errno, EAGAIN);
  CHECK_EQ(Send(pair.host.get(), "welcome"), 7);
  CHECK_EQ(Receive(pair.guest.get()), std::string("welcome"));
}

// Neither of them has memory; what follows goes through the socket.
void CheckStreams(const Pair& pair) {
  for (const auto& [from, to] : {std::pair{pair.host.get(), pair.guest.get()},
                                 std::pair{pair.guest.get(), pair.host.get()}}) {
    CHECK_TRUE(from->WakesForRoom());
    CHECK_TRUE(from->Rest(true));
    CHECK_EQ(Send(from, "by the socket"), 13);
    CHECK_EQ(Receive(to), std::string("by the socket"));
    CHECK_EQ(Receive(to), std::string());
    CHECK_EQ(errno, EAGAIN);
  }
}

TEST(a_host_without_memory_streams) {
  auto [listening, come] = LocalPair();
  Pair pair;
  pair.guest = ChannelOf(std::move(come));
  {
    const Limit files(RLIMIT_FSIZE, 1 << 20);
    pair.host = ChannelOf(std::move(listening));
  }
  pair.guest->Woken(POLLIN);
  CHECK_EQ(Send(pair.guest.get(), "at once"), 7);  // right behind its answer
  pair.host->Woken(POLLIN);
  CHECK_EQ(Receive(pair.host.get()), std::string("at once"));
  CheckStreams(pair);
}

TEST(a_guest_without_room_for_the_memory_streams) {
  Pair pair;
  {
    const Limit addresses(RLIMIT_AS, AddressBytes() + (rlim_t{1} << 20));
    pair.guest->Woken(POLLIN);
  }
  pair.host->Woken(POLLIN);
  CheckStreams(pair);
}

TEST(a_guest_that_can_take_no_descriptor_streams) {
  Pair pair;
  {
    const Limit descriptors(RLIMIT_NOFILE, 3);
    pair.guest->Woken(POLLIN);
  }
  pair.host->Woken(POLLIN);
  CheckStreams(pair);
}

TEST(an_answer_that_cannot_be_ends_the_channel) {
  for (const char answer : {'\1', '\2'}) {
    auto [listening, come] = LocalPair();
    std::unique_ptr<Channel> host;
    {
      // None is offered, so none can have been taken; and 2 is no answer at all.
      const Limit files(RLIMIT_FSIZE, answer == 1 ? 1 << 20 : RLIM_INFINITY);
      host = ChannelOf(std::move(listening));
    }
    REQUIRE_EQ(send(come.fd(), &answer, 1, 0), 1);
    host->Woken(POLLIN);
    CHECK_TRUE(host->HasBytes());
    ssize_t got;
    Receive(host.get(), &got);
    CHECK_EQ(got, -1);
    CHECK_EQ(errno, EPROTO);
  }
}

}  // namespace
