// What a link's bytes go through: a TCP connection, or memory that it shares with a process of this
// host (local_channel.h).
//
// Thread-safety: none; one lane owns it. Ownership: the socket. Invariant: bytes arrive in order,
// or not at all.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "links/byte_ring.h"
#include "links/lent_memory.h"
#include "links/tcp.h"

namespace mercury {

class Channel {
 public:
  explicit Channel(TcpSocket socket) : socket_(std::move(socket)) {}
  virtual ~Channel() = default;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  int fd() const { return socket_.fd(); }
  // As sendmsg and recvmsg, which do not wait: -1 and errno; 0 received: the end.
  virtual ssize_t Send(const msghdr* message) = 0;
  virtual ssize_t Receive(msghdr* message) = 0;

  // The descriptor has woken the lane, with these events of epoll: those that are the link's.
  virtual uint32_t Woken(uint32_t events) { return events; }
  // Fewer bytes than that are of no use: they need not wake the lane.
  virtual void WakeFor(size_t bytes);
  // Whether the descriptor wakes for room, where that is wanted; else Rest looks.
  virtual bool WakesForRoom() const { return true; }
  // How much may be handed over and lie here unsent, of a link whose share is so much.
  virtual size_t UnsentMax(size_t share_bytes) const { return share_bytes; }
  // Whether bytes may change on their way.
  virtual bool NeedsChecksums() const { return true; }
  // Whether there is something to receive, or room for what is to be sent.
  virtual bool HasBytes() const { return false; }
  virtual bool HasRoom() const { return false; }
  // What has been sent out of may not change before the peer has it: a channel that lends takes it.
  virtual void Keep(std::vector<std::shared_ptr<const void>>* /*sent*/) {}
  // From now on the descriptor wakes for bytes, and for room if that is wanted. False: there is
  // something to do already.
  virtual bool Rest(bool /*wants_room*/) { return true; }

 protected:
  const TcpSocket socket_;

 private:
  int wake_bytes_ = 1;  // as the socket knows it
};

// The kind of channel that the socket is for; `lends`, if not null, is lent to a guest, with which
// each ring of shared memory has so many bytes.
Status MakeChannel(TcpSocket socket, std::shared_ptr<LentMemory> lends,
                   std::unique_ptr<Channel>* channel, size_t ring_bytes = kRingBytes);

}  // namespace mercury
