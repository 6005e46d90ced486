// The ring that two processes share: bytes in order, nobody sleeps too long, nothing is believed.
#include "links/byte_ring.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "harness.h"
#include "links/lent_memory.h"

using namespace mercury;
namespace {

// Byte n of a stream that never repeats itself within a ring.
char At(uint64_t n) { return static_cast<char>((n * 2654435761U) >> 13); }

struct Ring {
  explicit Ring(size_t ring_bytes = kRingBytes)
      : writer(memory.get(), {}, ring_bytes), reader(memory.get(), {}, ring_bytes) {}
  std::unique_ptr<RingMemory> memory = std::make_unique<RingMemory>();
  RingWriter writer;
  RingReader reader;
};

TEST(rings_of_a_process_that_has_many_are_shorter) {
  CHECK_EQ(RingBytesOf(1), kRingBytes);
  CHECK_EQ(RingBytesOf(16), kRingBytes);
  CHECK_EQ(RingBytesOf(17), kRingBytes / 2);
  CHECK_EQ(RingBytesOf(100), kRingBytes / 8);
  CHECK_EQ(RingBytesOf(1000000), kRingBytesLeast);
  for (size_t links = 1; links < 5000; links = links * 5 / 4 + 1) {
    const size_t bytes = RingBytesOf(links);
    CHECK_TRUE(IsRingBytes(bytes));
    CHECK_TRUE(bytes == kRingBytesLeast || 2 * links * bytes <= kRingsBytesMost);
  }
  for (const uint64_t no : {uint64_t{0}, uint64_t{kRingBytesLeast / 2}, uint64_t{2 * kRingBytes},
                            uint64_t{kRingBytes - 1}, ~uint64_t{0}}) {
    CHECK_FALSE(IsRingBytes(no));
  }
}

void CheckBytesComeInOrder(size_t ring_bytes) {
  Ring ring(ring_bytes);
  auto random = mercury::testing::Random();
  uint64_t written = 0, read = 0;
  for (int turn = 0; turn < mercury::testing::Cases(2000); ++turn) {
    std::vector<char> bytes(random() % (ring_bytes / 8));
    const size_t cut = bytes.empty() ? 0 : random() % bytes.size();
    iovec pieces[3] = {{bytes.data(), cut}, {nullptr, 0}, {bytes.data() + cut, bytes.size() - cut}};
    if (random() % 2 == 0) {
      for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = At(written + i);
      const size_t took = ring.writer.Write(pieces, 3);
      CHECK_EQ(took, std::min<size_t>(bytes.size(), ring_bytes - (written - read)));
      written += took;
    } else {
      const size_t got = ring.reader.Read(pieces, 3);
      CHECK_EQ(got, std::min<size_t>(bytes.size(), written - read));
      for (size_t i = 0; i < got; ++i) REQUIRE_EQ(bytes[i], At(read + i));
      read += got;
    }
    CHECK_EQ(ring.reader.has_bytes(), written != read);
    CHECK_EQ(ring.writer.has_room(), ring_bytes - (written - read) >= ring_bytes / 4);
  }
  const char* begin = ring.memory->bytes;
  CHECK_TRUE(std::all_of(begin + ring_bytes, begin + kRingBytes, [](char c) { return c == 0; }));
}

TEST(bytes_come_out_in_order_however_they_are_cut) {
  CheckBytesComeInOrder(kRingBytes);
  CheckBytesComeInOrder(kRingBytesLeast);
}

// A ring whose writer lends: the reader has the same memory elsewhere.
struct LendingRing {
  explicit LendingRing(size_t bytes, size_t ring = kRingBytes)
      : lent(bytes),
        borrowed(bytes),
        writer(memory.get(), {lent.data(), lent.size()}, ring),
        reader(memory.get(), {borrowed.data(), borrowed.size()}, ring) {}
  // Of what is written now; nobody has copied it if the reader finds it where it is put here.
  size_t Write(size_t at, size_t bytes) {
    std::memcpy(borrowed.data() + at, lent.data() + at, bytes);
    const iovec piece{lent.data() + at, bytes};
    return writer.Write(&piece, 1);
  }
  std::unique_ptr<RingMemory> memory = std::make_unique<RingMemory>();
  std::vector<char> lent, borrowed;
  RingWriter writer;
  RingReader reader;
};

void CheckLoansComeInOrder(size_t ring_bytes) {
  const size_t lent_bytes = 2 * ring_bytes;
  LendingRing ring(lent_bytes, ring_bytes);
  auto random = mercury::testing::Random();
  uint64_t written = 0, read = 0;
  std::vector<char> own(ring_bytes);
  for (int turn = 0; turn < mercury::testing::Cases(3000); ++turn) {
    if (random() % 2 == 0) {
      // Lent bytes of the ring's last two turns are never written over: the reader has them.
      std::vector<iovec> pieces;
      uint64_t offered = 0;
      const size_t most = ring_bytes - (written - read);
      for (size_t i = random() % 4; i > 0; --i) {
        const size_t bytes = std::min<size_t>(random() % (3 * kLoanBytesMin), most - offered);
        const size_t at = (written + offered) % lent_bytes;
        const bool lend = random() % 2 == 0 && at + bytes <= lent_bytes;
        char* data = lend ? ring.lent.data() + at : own.data() + offered;
        for (size_t k = 0; k < bytes; ++k) data[k] = At(written + offered + k);
        if (lend) std::memcpy(ring.borrowed.data() + at, data, bytes);
        pieces.push_back({data, bytes});
        offered += bytes;
      }
      REQUIRE_EQ(ring.writer.Write(pieces.data(), pieces.size()), offered);
      written += offered;
    } else {
      std::vector<char> bytes(random() % (ring_bytes / 8));
      const iovec piece{bytes.data(), bytes.size()};
      const size_t got = ring.reader.Read(&piece, 1);
      CHECK_EQ(got, std::min<size_t>(bytes.size(), written - read));
      for (size_t i = 0; i < got; ++i) REQUIRE_EQ(bytes[i], At(read + i));
      read += got;
      CHECK_TRUE(ring.writer.HasRead(read));
      CHECK_EQ(ring.writer.HasRead(read + 1), written == read);
    }
  }
  CHECK_TRUE(read > mercury::testing::Cases(30) * ring_bytes / 3);
}

TEST(what_is_lent_comes_in_order_with_the_rest_however_it_is_cut) {
  CheckLoansComeInOrder(kRingBytes);
  CheckLoansComeInOrder(kRingBytesLeast);
}

TEST(what_is_long_enough_is_lent_and_nothing_else) {
  LendingRing ring(kRingBytes);
  std::vector<char> took(kRingBytes);
  const iovec all{took.data(), took.size()};
  CHECK_EQ(ring.Write(0, kLoanBytesMin - 1), kLoanBytesMin - 1);
  CHECK_FALSE(ring.writer.lends());
  CHECK_EQ(ring.Write(10000, kLoanBytesMin), kLoanBytesMin);
  CHECK_TRUE(ring.writer.lends());
  ring.borrowed[10005] = 'x';
  CHECK_EQ(ring.reader.Read(&all, 1), 2 * kLoanBytesMin - 1);
  CHECK_EQ(took[kLoanBytesMin - 1 + 5], 'x');
  CHECK_FALSE(ring.writer.lends());
  // As many as fit, more than once around.
  for (int turn = 0; turn < 3; ++turn) {
    for (size_t i = 0; i < kRingBytes / kLoanBytesMin; ++i) {
      CHECK_EQ(ring.Write(i * kLoanBytesMin, kLoanBytesMin), kLoanBytesMin);
    }
    CHECK_EQ(ring.Write(0, 1), 0U);
    std::memset(ring.borrowed.data(), 'a' + turn, kRingBytes);
    CHECK_EQ(ring.reader.Read(&all, 1), kRingBytes);
    CHECK_TRUE(took == ring.borrowed);
  }
}

TEST(nothing_is_lent_to_a_reader_that_cannot_read_there) {
  auto memory = std::make_unique<RingMemory>();
  std::vector<char> lent(2 * kLoanBytesMin, 'a'), took(lent.size());
  RingWriter writer(memory.get(), {lent.data(), lent.size()});
  RingReader reader(memory.get());
  const iovec piece{lent.data(), lent.size()}, target{took.data(), took.size()};
  CHECK_EQ(writer.Write(&piece, 1), lent.size());
  CHECK_FALSE(writer.lends());
  CHECK_EQ(reader.Read(&target, 1), lent.size());
  CHECK_TRUE(took == lent);
}

TEST(a_loan_that_cannot_be_breaks_the_ring) {
  constexpr uint64_t kLent = 100000;
  struct Loan {
    uint64_t at, where, bytes, made;
  };
  for (const Loan& loan :
       {Loan{0, kLent, 1, 1}, Loan{0, kLent - 99, 100, 1}, Loan{0, 0, 0, 1},
        Loan{0, ~uint64_t{0}, 2, 1}, Loan{0, 0, ~uint64_t{0}, 1}, Loan{0, 0, kRingBytes + 1, 1},
        Loan{kRingBytes + 1, 0, 1, 1}, Loan{~uint64_t{0}, 0, 100, 1},
        Loan{0, 0, 100, kLoansMax + 1}, Loan{0, 0, 100, ~uint64_t{0}}}) {
    LendingRing ring(kLent);
    ring.memory->loans[0].at = loan.at;
    ring.memory->loans[0].where = loan.where;
    ring.memory->loans[0].bytes = loan.bytes;
    ring.memory->loans_made = loan.made;
    ring.memory->writer.count = 200;
    char bytes[200];
    const iovec piece{bytes, sizeof(bytes)};
    CHECK_EQ(ring.reader.Read(&piece, 1), 0U);
    CHECK_TRUE(ring.reader.broken());
    CHECK_TRUE(ring.reader.has_bytes());
    CHECK_EQ(ring.reader.Read(&piece, 1), 0U);
  }
}

TEST(who_rests_is_woken_once) {
  Ring ring;
  std::vector<char> bytes(kRingBytes);
  const iovec all{bytes.data(), bytes.size()}, little{bytes.data(), 8};
  CHECK_EQ(ring.writer.Write(&little, 1), 8U);
  CHECK_FALSE(ring.writer.TakeReadersRest());  // it does not rest
  CHECK_FALSE(ring.reader.Rest());             // there is something
  CHECK_EQ(ring.reader.Read(&all, 1), 8U);
  CHECK_TRUE(ring.reader.Rest());
  CHECK_EQ(ring.writer.Write(&all, 1), kRingBytes);
  CHECK_TRUE(ring.writer.half_full());
  CHECK_TRUE(ring.writer.TakeReadersRest());
  CHECK_FALSE(ring.writer.TakeReadersRest());
  CHECK_TRUE(ring.writer.Rest());
  CHECK_EQ(ring.reader.Read(&little, 1), 8U);
  CHECK_FALSE(ring.reader.TakeWritersRest());  // not for so little room
  CHECK_EQ(ring.reader.Read(&all, 1), kRingBytes - 8);
  CHECK_TRUE(ring.reader.TakeWritersRest());
  CHECK_FALSE(ring.writer.Rest());
}

// Each end waits for the other's byte in a pipe whenever it has said that it rests.
TEST(two_that_rest_and_wake_each_other_never_both_wait) {
  Ring ring;
  int to_reader[2], to_writer[2];
  REQUIRE_EQ(pipe(to_reader), 0);
  REQUIRE_EQ(pipe(to_writer), 0);
  const auto wake = [](int fd) { CHECK_EQ(write(fd, "", 1), 1); };
  const auto wait = [](int fd) {
    char byte;
    CHECK_EQ(read(fd, &byte, 1), 1);
  };
  constexpr uint64_t kBytes = uint64_t{64} << 20;
  std::thread writer([&] {
    std::vector<char> bytes(3 * kRingBytes / 4);
    for (uint64_t n = 0; n < kBytes;) {
      const uint64_t want = std::min<uint64_t>(n % bytes.size() + 1, kBytes - n);
      bytes[0] = At(n);
      const iovec piece{bytes.data(), want};
      const size_t took = ring.writer.Write(&piece, 1);
      n += took;
      if (took != 0 && ring.writer.TakeReadersRest()) wake(to_reader[1]);
      if (took == 0 && ring.writer.Rest()) wait(to_writer[0]);
    }
  });
  uint64_t got = 0;
  for (std::vector<char> bytes(kRingBytes); got < kBytes;) {
    const iovec piece{bytes.data(), bytes.size()};
    const size_t more = ring.reader.Read(&piece, 1);
    got += more;
    if (more != 0 && ring.reader.TakeWritersRest()) wake(to_writer[1]);
    if (more == 0 && ring.reader.Rest()) wait(to_reader[0]);
  }
  writer.join();
  CHECK_EQ(got, kBytes);
  for (const int fd : {to_reader[0], to_reader[1], to_writer[0], to_writer[1]}) close(fd);
}

TEST(a_count_that_cannot_be_breaks_the_ring_and_reads_nothing) {
  for (const uint64_t count : {uint64_t{kRingBytes + 1}, ~uint64_t{0}, uint64_t{1} << 63}) {
    Ring ring;
    char byte = 0;
    const iovec piece{&byte, 1};
    ring.memory->writer.count = count;
    CHECK_TRUE(ring.reader.has_bytes());  // so that somebody looks
    CHECK_FALSE(ring.reader.Rest());
    CHECK_EQ(ring.reader.Read(&piece, 1), 0U);
    CHECK_TRUE(ring.reader.broken());
    ring.memory->reader.count = count / 2 + 1;
    CHECK_TRUE(ring.writer.has_room());
    CHECK_FALSE(ring.writer.Rest());
    CHECK_EQ(ring.writer.Write(&piece, 1), 0U);
    CHECK_TRUE(ring.writer.broken());
  }
}

}  // namespace
