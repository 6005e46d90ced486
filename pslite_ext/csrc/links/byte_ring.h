// A ring of bytes in memory that two processes share: one writes, the other reads.
//
//   | written, reader rests |  64 bytes, of which the writer counts
//   | read, writer rests    |  64 bytes, of which the reader counts
//   | loans                 |  which the writer counts; loan n is at n modulo kLoansMax
//   | bytes                 |  `ring_bytes` of them: byte n of the stream is at n modulo that
//
// Rings of a process that has many are shorter (RingBytesOf), and what is behind them is never
// touched.
//
// What lies in memory that the reader can read, too (lent_memory.h), is not copied into the ring,
// if the reader has said that it can: a loan says where it is, and its bytes in the ring mean
// nothing. It stays there until the reader has counted past it.
//
// Who has nothing to do says so in the memory, looks once more, and rests; the other one takes that
// back when it has done something, and then has to wake it, by other means.
//
// Nothing in the memory is believed: each end keeps its own count to itself, and takes the other's
// once, if it is possible; so with a loan. Bytes are copied out before anybody looks at them. The
// memory is zero at the beginning.
//
// Thread-safety: an end is one thread's; the ends may be two threads' or two processes'. Ownership:
// none of the memory. Invariant: read <= written <= read + `ring_bytes`, by each end's own books.
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace mercury {

// With less, two lanes that share a busy processor take turns too often, and each turn costs. With
// more, urgent packets would wait: nothing overtakes what is in here.
constexpr size_t kRingBytes = 1 << 20;
constexpr size_t kRingBytesLeast = 64 << 10;
constexpr size_t kRingsBytesMost = 32 << 20;  // of a process, unless its rings are the shortest
constexpr size_t kLoansMax = 256;             // that are not counted past: more do not fit

// Of each ring of a process with so many links.
size_t RingBytesOf(size_t links);
bool IsRingBytes(uint64_t bytes);
// For less a writer does not come back.
constexpr size_t RoomBytes(size_t ring_bytes) { return ring_bytes / 4; }

struct RingMemory {
  struct Loan {
    std::atomic<uint64_t> at;     // in the stream
    std::atomic<uint64_t> where;  // in the memory that is lent
    std::atomic<uint64_t> bytes;
  };
  struct alignas(64) End {
    std::atomic<uint64_t> count;
    std::atomic<uint32_t> other_rests;
  };
  End writer, reader;
  alignas(64) std::atomic<uint64_t> ring_bytes;  // said in the host's ring, before all else
  std::atomic<uint64_t> loans_made;
  std::atomic<uint32_t> reader_borrows;
  alignas(64) Loan loans[kLoansMax];
  char bytes[kRingBytes];
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

// What one lends and the other reads.
struct Lent {
  const char* data = nullptr;
  size_t bytes = 0;
};

class RingWriter {
 public:
  explicit RingWriter(RingMemory* memory, Lent lent = {}, size_t ring_bytes = kRingBytes)
      : memory_(memory), lent_(lent), ring_bytes_(ring_bytes) {}
  // As much of it as there is room for.
  size_t Write(const iovec* pieces, size_t count);
  // Whether the reader rests, and is to be woken, as it should be when nothing more comes at once.
  bool TakeReadersRest();
  // The reader had better read now: while it rests, half of the room is used up.
  bool half_full() const { return Room() < ring_bytes_ / 2; }
  // From now on the reader wakes who writes when there is room. False: there is already.
  bool Rest();
  bool has_room() const { return Room() >= RoomBytes(ring_bytes_) || broken_; }
  // The reader has counted what was never written.
  bool broken() const { return broken_; }
  uint64_t written() const { return written_; }
  // Whether the reader has all of the stream before `at`.
  bool HasRead(uint64_t at) const { return written_ - at >= ring_bytes_ - Room(); }
  bool lends() const { return !HasRead(lent_until_); }

 private:
  size_t Room() const;
  bool Lend(const char* data, size_t bytes);

  RingMemory* const memory_;
  const Lent lent_;
  const size_t ring_bytes_;
  uint64_t written_ = 0;
  uint64_t loans_made_ = 0;
  uint64_t lent_until_ = 0;  // in the stream
  mutable bool broken_ = false;
};

class RingReader {
 public:
  explicit RingReader(RingMemory* memory, Lent lent = {}, size_t ring_bytes = kRingBytes)
      : memory_(memory), lent_(lent), ring_bytes_(ring_bytes) {
    if (lent.bytes != 0) memory->reader_borrows = 1;
  }
  // As much as there is.
  size_t Read(const iovec* pieces, size_t count);
  // Whether the writer rests although it has room by now, and is to be woken.
  bool TakeWritersRest();
  // From now on the writer wakes who reads when there is something. False: there is already.
  bool Rest();
  bool has_bytes() const { return Bytes() != 0 || broken_; }
  // The writer has counted more than fits, or lent what it cannot lend.
  bool broken() const { return broken_; }

 private:
  struct Borrowed {
    uint64_t at = 0, where = 0, bytes = 0;
  };
  size_t Bytes() const;
  bool TakeLoan();

  RingMemory* const memory_;
  const Lent lent_;
  const size_t ring_bytes_;
  uint64_t read_ = 0;
  uint64_t loans_taken_ = 0;
  Borrowed loan_;  // the next one, or the one that is being read; none: 0 bytes
  mutable bool broken_ = false;
};

}  // namespace mercury
