#include "links/byte_ring.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "links/lent_memory.h"

namespace mercury {
namespace {

// All of the memory's words are read and written in one order for everybody: an end writes its
// count and then looks whether the other one rests, which says that it does and then looks at the
// count once more. So one of them sees what the other has done.
bool TakeRest(std::atomic<uint32_t>* rests) { return *rests != 0 && rests->exchange(0) != 0; }

// Calls each(data, bytes), which says how much of it was done, for so many bytes of the pieces.
template <typename Each>
void ForEachRun(const iovec* pieces, size_t bytes, const Each& each) {
  for (size_t done = 0, in_piece = 0; done < bytes;) {
    if (in_piece == pieces->iov_len) {
      ++pieces;
      in_piece = 0;
      continue;
    }
    char* data = static_cast<char*>(pieces->iov_base) + in_piece;
    const size_t run = each(data, std::min(bytes - done, pieces->iov_len - in_piece));
    if (run == 0) return;
    done += run;
    in_piece += run;
  }
}

// Of so many bytes of the stream from `at` on, those that lie together.
size_t Together(uint64_t at, size_t bytes, size_t ring_bytes) {
  return std::min(bytes, ring_bytes - at % ring_bytes);
}

static_assert(kLoansMax * kLoanBytesMin >= kRingBytes);  // the ring is full first

size_t Total(const iovec* pieces, size_t count) {
  size_t bytes = 0;
  for (size_t i = 0; i < count; ++i) bytes += pieces[i].iov_len;
  return bytes;
}

}  // namespace

size_t RingBytesOf(size_t links) {
  size_t bytes = kRingBytes;
  while (bytes > kRingBytesLeast && 2 * links * bytes > kRingsBytesMost) bytes /= 2;
  return bytes;
}

bool IsRingBytes(uint64_t bytes) {
  return bytes >= kRingBytesLeast && bytes <= kRingBytes && (bytes & (bytes - 1)) == 0;
}

size_t RingWriter::Room() const {
  const uint64_t read = memory_->reader.count;
  const uint64_t held = written_ - read;
  if (held <= ring_bytes_) return ring_bytes_ - held;
  broken_ = true;
  return 0;
}

size_t RingWriter::Write(const iovec* pieces, size_t count) {
  const size_t bytes = std::min(Total(pieces, count), Room());
  if (bytes == 0) return 0;
  const uint64_t before = written_;
  ForEachRun(pieces, bytes, [&](const char* data, size_t most) {
    size_t run = most;
    if (!Lend(data, most)) {
      run = Together(written_, most, ring_bytes_);
      std::memcpy(memory_->bytes + written_ % ring_bytes_, data, run);
    }
    written_ += run;
    return run;
  });
  MERCURY_CHECK(written_ - before == bytes && lent_until_ <= written_);
  memory_->writer.count = written_;
  return bytes;
}

bool RingWriter::Lend(const char* data, size_t bytes) {
  if (bytes < kLoanBytesMin || data < lent_.data || data >= lent_.data + lent_.bytes) return false;
  if (memory_->reader_borrows == 0) return false;
  RingMemory::Loan& loan = memory_->loans[loans_made_ % kLoansMax];
  loan.at = written_;
  loan.where = static_cast<uint64_t>(data - lent_.data);
  loan.bytes = bytes;
  lent_until_ = written_ + bytes;
  memory_->loans_made = ++loans_made_;
  return true;
}

bool RingWriter::TakeReadersRest() { return TakeRest(&memory_->writer.other_rests); }

bool RingWriter::Rest() {
  memory_->reader.other_rests = 1;
  return !has_room();
}

size_t RingReader::Bytes() const {
  if (broken_) return 0;
  const uint64_t written = memory_->writer.count;
  const uint64_t held = written - read_;
  if (held <= ring_bytes_) return held;
  broken_ = true;
  return 0;
}

size_t RingReader::Read(const iovec* pieces, size_t count) {
  const size_t bytes = std::min(Total(pieces, count), Bytes());
  const uint64_t before = read_;
  ForEachRun(pieces, bytes, [&](char* data, size_t most) {
    if (loan_.bytes == 0 && !TakeLoan()) return size_t{0};
    const uint64_t in_loan = read_ - loan_.at;  // huge: before it
    size_t run;
    if (in_loan < loan_.bytes) {
      run = std::min(most, loan_.bytes - in_loan);
      std::memcpy(data, lent_.data + loan_.where + in_loan, run);
      if (in_loan + run == loan_.bytes) loan_ = Borrowed();
    } else {
      run = Together(read_, loan_.bytes == 0 ? most : std::min<uint64_t>(most, loan_.at - read_),
                     ring_bytes_);
      std::memcpy(data, memory_->bytes + read_ % ring_bytes_, run);
    }
    read_ += run;
    return run;
  });
  MERCURY_CHECK(read_ - before <= bytes);
  if (read_ != before) memory_->reader.count = read_;
  return read_ - before;
}

// The next loan, if there is one. False: it cannot be.
bool RingReader::TakeLoan() {
  const uint64_t made = memory_->loans_made;
  if (made == loans_taken_) return true;
  const RingMemory::Loan& told = memory_->loans[loans_taken_ % kLoansMax];
  const Borrowed loan{told.at, told.where, told.bytes};
  ++loans_taken_;
  broken_ = made - loans_taken_ >= kLoansMax || loan.at - read_ > ring_bytes_ || loan.bytes == 0 ||
            loan.bytes > ring_bytes_ || loan.where > lent_.bytes ||
            loan.bytes > lent_.bytes - loan.where;
  if (!broken_) loan_ = loan;
  return !broken_;
}

bool RingReader::TakeWritersRest() {
  return ring_bytes_ - Bytes() >= RoomBytes(ring_bytes_) && TakeRest(&memory_->reader.other_rests);
}

bool RingReader::Rest() {
  memory_->writer.other_rests = 1;
  return !has_bytes();
}

}  // namespace mercury
