// The ring that two processes share: bytes in order, nobody sleeps too long, nothing is believed.
#include "links/byte_ring.h"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "harness.h"

namespace mercury {
namespace {

// Byte n of a stream that never repeats itself within a ring.
char At(uint64_t n) { return static_cast<char>((n * 2654435761U) >> 13); }

struct Ring {
  std::unique_ptr<RingMemory> memory = std::make_unique<RingMemory>();
  RingWriter writer{memory.get()};
  RingReader reader{memory.get()};
};

TEST(bytes_come_out_in_order_however_they_are_cut) {
  Ring ring;
  auto random = mercury::testing::Random();
  uint64_t written = 0, read = 0;
  for (int turn = 0; turn < 2000; ++turn) {
    std::vector<char> bytes(random() % (kRingBytes / 8));
    const size_t cut = bytes.empty() ? 0 : random() % bytes.size();
    iovec pieces[3] = {{bytes.data(), cut}, {nullptr, 0}, {bytes.data() + cut, bytes.size() - cut}};
    if (random() % 2 == 0) {
      for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = At(written + i);
      const size_t took = ring.writer.Write(pieces, 3);
      CHECK_EQ(took, std::min<size_t>(bytes.size(), kRingBytes - (written - read)));
      written += took;
    } else {
      const size_t got = ring.reader.Read(pieces, 3);
      CHECK_EQ(got, std::min<size_t>(bytes.size(), written - read));
      for (size_t i = 0; i < got; ++i) REQUIRE_EQ(bytes[i], At(read + i));
      read += got;
    }
    CHECK_EQ(ring.reader.has_bytes(), written != read);
    CHECK_EQ(ring.writer.has_room(), kRingBytes - (written - read) >= kRoomBytes);
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
}  // namespace mercury
