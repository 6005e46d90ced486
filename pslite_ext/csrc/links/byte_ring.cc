#include "links/byte_ring.h"

#include <algorithm>
#include <cstring>

namespace mercury {
namespace {

// All of the memory's words are read and written in one order for everybody: an end writes its
// count and then looks whether the other one rests, which says that it does and then looks at the
// count once more. So one of them sees what the other has done.
bool TakeRest(std::atomic<uint32_t>* rests) { return *rests != 0 && rests->exchange(0) != 0; }

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
  const uint64_t read = memory_->reader.count;
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
  memory_->writer.count = written_;
  return bytes;
}

bool RingWriter::TakeReadersRest() { return TakeRest(&memory_->writer.other_rests); }

bool RingWriter::Rest() {
  memory_->reader.other_rests = 1;
  return !has_room();
}

size_t RingReader::Bytes() const {
  const uint64_t written = memory_->writer.count;
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
  memory_->reader.count = read_;
  return bytes;
}

bool RingReader::TakeWritersRest() {
  return kRingBytes - Bytes() >= kRoomBytes && TakeRest(&memory_->reader.other_rests);
}

bool RingReader::Rest() {
  memory_->writer.other_rests = 1;
  return !has_bytes();
}

}  // namespace mercury
