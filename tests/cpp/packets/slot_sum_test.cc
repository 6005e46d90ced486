#include "packets/slot_sum.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/crc32c.h"
#include "harness.h"

namespace mercury {
namespace {

using testing::Random;

Block Piece(PacketPool* pool, const std::vector<uint8_t>& copy, size_t at, size_t length,
            size_t room) {
  Block block = pool->Get(std::max<size_t>(room, 1));
  std::memcpy(block.get(), copy.data() + at, length);
  return block;
}

TEST(pieces_in_any_order_of_workers_make_the_sum) {
  Random random;
  for (int trial = 0; trial < 300; ++trial) {
    PacketPool pool(0);
    SlotSum slot;
    Block before;
    for (int round = 0; round < 3; ++round) {
      const bool deterministic = random.OneIn(2);
      const size_t workers = 1 + random.Below(4), bytes = 1 + random.Below(1000);
      std::vector<std::vector<uint8_t>> copies(workers, std::vector<uint8_t>(bytes));
      std::vector<uint8_t> expected(bytes);
      for (auto& copy : copies) {
        random.Fill(copy.data(), bytes);
        for (size_t i = 0; i < bytes; ++i)
          expected[i] = static_cast<uint8_t>(expected[i] + copy[i]);
      }
      std::vector<size_t> at(workers);
      for (size_t left = workers * bytes; left != 0;) {
        const size_t w = random.Below(workers);
        const size_t length = std::min(bytes - at[w], 1 + random.Below(400));
        if (length == 0) continue;
        const bool begins = slot.Begins(at[w], deterministic);
        Block piece = Piece(&pool, copies[w], at[w], length, begins ? bytes : length);
        if (deterministic) {
          slot.Keep(w, workers, at[w], length, &piece);
        } else {
          slot.Add(DType::kUint8, at[w], length, &piece);
        }
        at[w] += length;
        left -= length;
      }
      CHECK_TRUE(slot.last() == before);  // until it is finished
      slot.Finish(DType::kUint8, bytes);
      REQUIRE_TRUE(slot.last() != nullptr);
      CHECK_TRUE(slot.last() != before);  // which others may still hold
      CHECK_EQ(std::memcmp(slot.last().get(), expected.data(), bytes), 0);
      before = slot.last();
    }
  }
}

TEST(the_check_of_any_part_is_right_in_every_round) {
  Random random;
  PacketPool pool(0);
  SlotSum slot;
  for (int round = 0; round < 5; ++round) {
    std::vector<uint8_t> copy(4096);
    random.Fill(copy.data(), copy.size());
    Block piece = Piece(&pool, copy, 0, copy.size(), copy.size());
    slot.Add(DType::kUint8, 0, copy.size(), &piece);
    slot.Finish(DType::kUint8, copy.size());
    for (int worker = 0; worker < 3; ++worker) {
      for (const uint32_t length : {4096U, 1024U, 64U}) {
        for (uint32_t at = 0; at < 4096; at += length) {
          CHECK_EQ(slot.Crc(slot.last(), at, length), Crc32c(0, copy.data() + at, length));
        }
      }
    }
    CHECK_EQ(slot.Crc(slot.last(), 0, 0), 0U);
  }
}

TEST(the_check_of_a_part_is_made_once) {
  PacketPool pool(0);
  SlotSum slot;
  const std::vector<uint8_t> copy(64, 7);
  Block piece = Piece(&pool, copy, 0, 64, 64);
  slot.Add(DType::kUint8, 0, 64, &piece);
  slot.Finish(DType::kUint8, 64);
  const uint32_t crc = slot.Crc(slot.last(), 0, 64);
  slot.last().get()[3] ^= 1;  // nobody may: only to see that it is not looked at again
  CHECK_EQ(slot.Crc(slot.last(), 0, 64), crc);
}

}  // namespace
}  // namespace mercury
