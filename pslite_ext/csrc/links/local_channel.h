// A link's bytes between two processes of one host: through memory that they share, a ring for each
// direction. A Unix socket stays beside it: it hands the memory over, wakes who rests, and ends
// when a process does.
//
//   host:   makes the memory -- its descriptor, with one byte -->  guest: maps it
//           (and beside it that of what it lends, if it does; the guest only reads there, or
//           does without, if it has no room for so many addresses)
//   guest:  one byte: whether it has the memory
//   either: one byte: wake up
//
//   meeting --both have the memory--> sharing
//           --one has not--> streaming: bytes go through the socket, as they would over TCP
//
// The host is who listens. Both have proved themselves before (handshake.h), and belong to the same
// user (local_socket.h).
//
// Thread-safety: none; one lane owns it. Ownership: the socket and the mappings; blocks that are
// lent until they are read. Invariants: what the other process writes into the memory or says on
// the socket, breaks this channel at worst; what it wrote before it ended is received.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "links/byte_ring.h"
#include "links/channel.h"
#include "links/shared_memory.h"

namespace mercury {

class LocalChannel : public Channel {
 public:
  // `ring_bytes`: of each ring, if it is the host's.
  LocalChannel(TcpSocket socket, std::shared_ptr<LentMemory> lends, size_t ring_bytes)
      : Channel(std::move(socket)), lends_(std::move(lends)), ring_bytes_(ring_bytes) {}
  ~LocalChannel() override;
  // Once, first of all.
  Status Begin();

  ssize_t Send(const msghdr* message) override;
  ssize_t Receive(msghdr* message) override;
  // Until it streams, its descriptor does nothing but wake: what comes is not read from it, and it
  // can be written to long before there is room.
  uint32_t Woken(uint32_t events) override;
  void WakeFor(size_t bytes) override {
    if (WakesForRoom()) Channel::WakeFor(bytes);
  }
  bool WakesForRoom() const override { return state_ == State::kStreaming; }
  // Shared memory is short, and says by itself when it is full.
  size_t UnsentMax(size_t share_bytes) const override {
    return WakesForRoom() ? share_bytes : SIZE_MAX;
  }
  bool NeedsChecksums() const override { return false; }  // nothing changes inside a host
  bool HasBytes() const override { return ended_ || (ends_ && ends_->in.has_bytes()); }
  bool HasRoom() const override { return ends_ && ends_->out.has_room(); }
  bool Rest(bool wants_room) override;
  void Keep(std::vector<std::shared_ptr<const void>>* sent) override;

 private:
  enum class State : uint8_t { kMeeting, kSharing, kStreaming };
  Status Offer();
  Status Take(const TcpSocket& rings, const TcpSocket& lent);
  void Hear();
  void Meet(char said, const TcpSocket& rings, const TcpSocket& lent);
  void Share(Lent lent, Lent borrowed);
  void Stream();
  void Break(int error);
  ssize_t Failed(bool broken);
  void WakeReader(RingWriter* out);
  void WakeOther();

  struct Ends {
    RingReader in;
    RingWriter out;
  };
  struct Kept {
    uint64_t until;  // the reader has read so much
    std::vector<std::shared_ptr<const void>> blocks;
  };
  const std::shared_ptr<LentMemory> lends_;  // null: nothing
  size_t ring_bytes_;                        // a guest's: as its host has said
  bool host_ = false;
  State state_ = State::kMeeting;
  SharedMemory memory_;       // none: it is not there yet, or streaming
  SharedMemory borrowed_;     // none: the host lends nothing
  std::optional<Ends> ends_;  // while sharing
  std::list<Kept> kept_;
  bool owes_wake_ = false;  // something was written, of which the reader may not know
  bool ended_ = false;
  int error_ = 0;  // errno of what has broken it
};

}  // namespace mercury
