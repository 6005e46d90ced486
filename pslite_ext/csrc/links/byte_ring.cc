#include "links/byte_ring.h"

#include <algorithm>
#include <cstring>

namespace mercury {
namespace {

// Between what an end has done and its look at whether the other one rests; the other one has it
// between saying that it rests and its last look. So one of them sees what the other has done.
void Settle() { std::atomic_thread_fence(std::memory_order_seq_cst); }

bool TakeRest(std::atomic<uint32_t>* rests) {
  Settle();
  return rests->load(std::memory_order_relaxed) != 0 &&
         rests->exchange(0, std::memory_order_relaxed) != 0;
}

void SayRest(std::atomic<uint32_t>* rests) {
  rests->store(1, std::memory_order_relaxed);
  Settle();
}

// Calls copy(in the ring, in the piece, bytes) for `bytes` of the stream from `at` on.
template <typename Copy>
void ForEachRun(const iovec* pieces, uint64_t at, size_t bytes, char* ring, const Copy& copy) {
  for (size_t done = 0, in_piece = 0; done < bytes;) {
    if (in_piece == pieces->iov_len) {
      ++pieces;
      in_piece = 0;
      continue;
    }
    const size_t start = (at + done) % kRingBytes;
    const size_t run =
        std::min({bytes - done, pieces->iov_len - in_piece, size_t{kRingBytes - start}});
    copy(ring + start, static_cast<char*>(pieces->iov_base) + in_piece, run);
    done += run;
    in_piece += run;
  }
}

size_t Total(const iovec* pieces, size_t count) {
  size_t bytes = 0;
  for (size_t i = 0; i < count; ++i) bytes += pieces[i].iov_len;
  return bytes;
}

}  // namespace

size_t RingWriter::Room() const {
  const uint64_t read = memory_->reader.count.load(std::memory_order_acquire);
  const uint64_t held = written_ - read;
  if (held <= kRingBytes) return kRingBytes - held;
  broken_ = true;
  return 0;
}

size_t RingWriter::Write(const iovec* pieces, size_t count) {
  const size_t bytes = std::min(Total(pieces, count), Room());
  if (bytes == 0) return 0;
  ForEachRun(pieces, written_, bytes, memory_->bytes,
             [](char* ring, char* piece, size_t run) { std::memcpy(ring, piece, run); });
  written_ += bytes;
  memory_->writer.count.store(written_, std::memory_order_release);
  return bytes;
}

bool RingWriter::TakeReadersRest() { return TakeRest(&memory_->writer.other_rests); }

bool RingWriter::Rest() {
  SayRest(&memory_->reader.other_rests);
  return !has_room();
}

size_t RingReader::Bytes() const {
  const uint64_t written = memory_->writer.count.load(std::memory_order_acquire);
  const uint64_t held = written - read_;
  if (held <= kRingBytes) return held;
  broken_ = true;
  return 0;
}

size_t RingReader::Read(const iovec* pieces, size_t count) {
  const size_t bytes = std::min(Total(pieces, count), Bytes());
  if (bytes == 0) return 0;
  ForEachRun(pieces, read_, bytes, memory_->bytes,
             [](char* ring, char* piece, size_t run) { std::memcpy(piece, ring, run); });
  read_ += bytes;
  memory_->reader.count.store(read_, std::memory_order_release);
  return bytes;
}

bool RingReader::TakeWritersRest() {
  return kRingBytes - Bytes() >= kRoomBytes && TakeRest(&memory_->reader.other_rests);
}

bool RingReader::Rest() {
  SayRest(&memory_->writer.other_rests);
  return !has_bytes();
}

}  // namespace mercury
