// A ring of bytes in memory that two processes share: one writes, the other reads.
//
//   | written, reader rests |  64 bytes, of which the writer counts
//   | read, writer rests    |  64 bytes, of which the reader counts
//   | bytes                 |  kRingBytes: byte n of the stream is at n modulo kRingBytes
//
// Who has nothing to do says so in the memory, looks once more, and rests; the other one takes that
// back when it has done something, and then has to wake it, by other means.
//
// Nothing in the memory is believed: each end keeps its own count to itself, and takes the other's
// once, if it is possible. Bytes are copied out before anybody looks at them. The memory is zero
// at the beginning.
//
// Thread-safety: an end is one thread's; the ends may be two threads' or two processes'. Ownership:
// none of the memory. Invariant: read <= written <= read + kRingBytes, by each end's own books.
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace mercury {

// With less, two lanes that share a busy processor take turns too often, and each turn costs. With
// more, urgent packets would wait: nothing overtakes what is in here.
constexpr size_t kRingBytes = 1 << 20;
constexpr size_t kRoomBytes = kRingBytes / 4;  // for less a writer does not come back

struct RingMemory {
  struct alignas(64) End {
    std::atomic<uint64_t> count;
    std::atomic<uint32_t> other_rests;
  };
  End writer, reader;
  char bytes[kRingBytes];
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

class RingWriter {
 public:
  explicit RingWriter(RingMemory* memory) : memory_(memory) {}
  // As much of it as there is room for.
  size_t Write(const iovec* pieces, size_t count);
  // Whether the reader rests, and is to be woken, as it should be when nothing more comes at once.
  bool TakeReadersRest();
  // The reader had better read now: while it rests, half of the room is used up.
  bool half_full() const { return Room() < kRingBytes / 2; }
  // From now on the reader wakes who writes when there is room. False: there is already.
  bool Rest();
  bool has_room() const { return Room() >= kRoomBytes || broken_; }
  // The reader has counted what was never written.
  bool broken() const { return broken_; }

 private:
  size_t Room() const;

  RingMemory* const memory_;
  uint64_t written_ = 0;
  mutable bool broken_ = false;
};

class RingReader {
 public:
  explicit RingReader(RingMemory* memory) : memory_(memory) {}
  // As much as there is.
  size_t Read(const iovec* pieces, size_t count);
  // Whether the writer rests although it has room by now, and is to be woken.
  bool TakeWritersRest();
  // From now on the writer wakes who reads when there is something. False: there is already.
  bool Rest();
  bool has_bytes() const { return Bytes() != 0 || broken_; }
  // The writer has counted more than fits.
  bool broken() const { return broken_; }

 private:
  size_t Bytes() const;

  RingMemory* const memory_;
  uint64_t read_ = 0;
  mutable bool broken_ = false;
};

}  // namespace mercury
