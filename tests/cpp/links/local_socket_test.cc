// Local sockets: who is found by an address, and who is not.
#include "links/local_socket.h"

#include <sys/socket.h>

#include <string>

#include "harness.h"
#include "links/loopback.h"

using namespace mercury;
namespace {

using mercury::testing::Place;

TEST(who_listens_beside_an_address_is_found_by_it) {
  const Place place;
  TcpSocket listener, near, far;
  std::string from;
  REQUIRE_OK(ListenLocally(place.address, &listener));
  CHECK_TRUE(Accept(listener, TcpOptions(), &near, &from).code() == Code::kTimeout);
  REQUIRE_OK(ConnectLocally(place.address, &far));
  REQUIRE_OK(Connected(far));
  REQUIRE_OK(Accept(listener, TcpOptions(), &near, &from));
  CHECK_EQ(from, std::string("this host"));
  CHECK_EQ(send(near.fd(), "word", 4, 0), 4);
  char got[8] = "";
  CHECK_EQ(recv(far.fd(), got, sizeof(got), 0), 4);
  CHECK_EQ(std::string(got), std::string("word"));
  CHECK_TRUE(IsUnixSocket(near.fd()) && IsLocal(near.fd()));
  CHECK_TRUE(IsUnixSocket(far.fd()) && IsLocal(far.fd()));
  CHECK_FALSE(IsUnixSocket(place.tcp.fd()));
}

TEST(a_name_has_one_owner_as_long_as_he_lives) {
  const Place place;
  TcpSocket first, second, far;
  CHECK_STATUS(Code::kPeerLost, ConnectLocally(place.address, &far));
  REQUIRE_OK(ListenLocally(place.address, &first));
  CHECK_STATUS(Code::kPeerLost, ListenLocally(place.address, &second));
  first.Close();
  CHECK_STATUS(Code::kPeerLost, ConnectLocally(place.address, &far));
  REQUIRE_OK(ListenLocally(place.address, &second));
  CHECK_OK(ConnectLocally(place.address, &far));
}

TEST(an_address_too_long_for_a_name_has_none) {
  const Address address{std::string(200, 'a'), 1};
  TcpSocket socket;
  CHECK_STATUS(Code::kPeerLost, ListenLocally(address, &socket));
  CHECK_STATUS(Code::kPeerLost, ConnectLocally(address, &socket));
}

}  // namespace
