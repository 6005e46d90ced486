#include "links/channel.h"

#include <algorithm>

#include "links/local_channel.h"
#include "links/local_socket.h"

namespace mercury {
namespace {

constexpr size_t kWakeBytesMax = 64 << 10;  // well below what a receive buffer holds

class SocketChannel : public Channel {
 public:
  using Channel::Channel;
  ssize_t Send(const msghdr* message) override {
    return Calls().send(fd(), message, MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  ssize_t Receive(msghdr* message) override { return Calls().receive(fd(), message, MSG_DONTWAIT); }
};

}  // namespace

void Channel::WakeFor(size_t bytes) {
  const int least = static_cast<int>(std::min(bytes, kWakeBytesMax));
  if (least == wake_bytes_) return;
  wake_bytes_ = least;
  setsockopt(fd(), SOL_SOCKET, SO_RCVLOWAT, &least, sizeof(least));
}

Status MakeChannel(TcpSocket socket, std::shared_ptr<LentMemory> lends,
                   std::unique_ptr<Channel>* channel, size_t ring_bytes) {
  if (!IsUnixSocket(socket.fd())) {
    *channel = std::make_unique<SocketChannel>(std::move(socket));
    return Status::Ok();
  }
  auto local = std::make_unique<LocalChannel>(std::move(socket), std::move(lends), ring_bytes);
  const Status status = local->Begin();
  *channel = std::move(local);
  return status;
}

}  // namespace mercury
