#include "packets/slot_sum.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/crc32c.h"
#include "harness.h"

using namespace mercury;
namespace {

using testing::Random;

const Coded kBytes{&PlainCodec(DType::kUint8), 0};

Block Piece(PacketPool* pool, const void* from, size_t length, size_t room) {
  Block block = pool->Get(std::max<size_t>(room, 1));
  std::memcpy(block.get(), from, length);
  return block;
}

// Copies of `elements`, coded, in parts and in any order of workers, and what they add up to.
void MakeSum(Random* random, const Coded& coded, size_t workers, uint64_t elements, bool kept,
             SlotSum* slot, PacketPool* pool, std::vector<char>* expected) {
  const Codec& codec = *coded.codec;
  const Codec& plain = SumCodec(codec);
  expected->assign(plain.bytes(elements), 0);
  std::vector<std::vector<char>> copies(workers, std::vector<char>(codec.bytes(elements)));
  for (auto& copy : copies) {
    random->Fill(copy.data(), copy.size());
    codec.add(coded.parameter, copy.data(), elements, expected->data(),
              &copy == copies.data() ? Into::kRoom : Into::kSum);
  }
  std::vector<uint64_t> at(workers);
  for (uint64_t left = workers * elements; left != 0;) {
    const size_t w = random->Below(workers);
    const uint64_t count = std::min(elements - at[w], (1 + random->Below(8)) * codec.together);
    if (count == 0) continue;
    const bool whole = slot->Begins(at[w], coded, kept);
    Block piece = Piece(pool, copies[w].data() + codec.bytes(at[w]), codec.bytes(count),
                        codec.bytes(whole ? elements : count));
    if (kept) {
      slot->Keep(w, workers, coded, at[w], count, &piece);
    } else {
      REQUIRE_TRUE(slot->Add(coded, at[w], count, elements, &piece, pool));
    }
    at[w] += count;
    left -= count;
  }
}

TEST(parts_in_any_order_of_workers_make_the_sum) {
  Random random;
  for (int trial = 0; trial < 300; ++trial) {
    PacketPool pool(0);
    SlotSum slot;
    Block before;
    const Codec* codecs[] = {&PlainCodec(DType::kUint8), &PlainCodec(DType::kInt32),
                             &PlainCodec(DType::kInt64), FindCompression("1bit"),
                             FindCompression("2bit")};
    const Codec* codec = codecs[random.Below(std::size(codecs))];
    for (int round = 0; round < 3; ++round) {
      // Whole numbers, so that any order gives the same.
      const Coded coded{codec, static_cast<float>(1 + random.Below(9))};
      const uint64_t elements = 1 + random.Below(1000);
      std::vector<char> expected;
      MakeSum(&random, coded, 1 + random.Below(4), elements, random.OneIn(2), &slot, &pool,
              &expected);
      CHECK_TRUE(slot.value() == before);  // until it is finished
      REQUIRE_TRUE(slot.Finish(codec->sent_back(), elements, &pool));
      REQUIRE_TRUE(slot.value() != nullptr);
      CHECK_TRUE(slot.value() != before);  // which others may still hold
      CHECK_EQ(std::memcmp(slot.value().get(), expected.data(), expected.size()), 0);
      before = slot.value();
    }
  }
}

TEST(what_is_applied_changes_the_value_but_not_one_that_is_shared) {
  PacketPool pool(0);
  SlotSum slot;
  const auto push = [&](uint8_t value) {
    const std::vector<uint8_t> copy(10, value);
    Block piece = Piece(&pool, copy.data(), 10, 10);
    slot.Keep(1, 2, kBytes, 0, 10, &piece);
    REQUIRE_TRUE(slot.Apply(1, 10, &pool));
  };
  push(3);
  const char* first = slot.value().get();
  push(4);
  CHECK_TRUE(slot.value().get() == first);  // nobody else has it
  CHECK_EQ(int{slot.value().get()[9]}, 7);
  const auto checks = slot.Checks(slot.value());
  const Block held = slot.value();
  push(5);
  CHECK_TRUE(slot.value() != held);
  CHECK_EQ(int{held.get()[0]}, 7);
  CHECK_EQ(int{slot.value().get()[0]}, 12);
  CHECK_TRUE(slot.Checks(slot.value()) != checks);
}

TEST(a_first_value_is_the_value) {
  PacketPool pool(0);
  SlotSum slot;
  const std::vector<uint8_t> copy(100, 9);
  for (const uint64_t at : {0, 64}) {
    const uint64_t count = std::min<uint64_t>(64, 100 - at);
    Block piece = Piece(&pool, copy.data(), count, slot.Begins(at, kBytes, true) ? 100 : count);
    slot.Keep(0, 1, kBytes, at, count, &piece);
  }
  CHECK_TRUE(slot.value() == nullptr);
  slot.Begin(0);
  REQUIRE_TRUE(slot.value() != nullptr);
  CHECK_EQ(std::memcmp(slot.value().get(), copy.data(), 100), 0);
}

TEST(without_memory_it_says_so) {
  for (const bool kept : {false, true}) {
    PacketPool pool(4096);
    SlotSum slot;
    const Coded coded{FindCompression("1bit"), 0.5F};
    const std::vector<char> copy(coded.codec->bytes(4000), 7);
    Block piece = Piece(&pool, copy.data(), copy.size(), copy.size());
    bool room = true;
    if (kept) {
      slot.Keep(0, 1, coded, 0, 4000, &piece);
      room = slot.Finish(PlainCodec(DType::kFloat32), 4000, &pool);
    } else {
      room = slot.Add(coded, 0, 4000, 4000, &piece, &pool);
    }
    CHECK_FALSE(room);  // for 16000 bytes
  }
}

TEST(the_check_of_any_part_is_right_in_every_round) {
  Random random;
  PacketPool pool(0);
  SlotSum slot;
  for (int round = 0; round < 5; ++round) {
    std::vector<uint8_t> copy(4096);
    random.Fill(copy.data(), copy.size());
    Block piece = Piece(&pool, copy.data(), copy.size(), copy.size());
    REQUIRE_TRUE(slot.Add(kBytes, 0, copy.size(), copy.size(), &piece, &pool));
    REQUIRE_TRUE(slot.Finish(*kBytes.codec, copy.size(), &pool));
    for (int worker = 0; worker < 3; ++worker) {
      for (const uint32_t length : {4096U, 1024U, 64U}) {
        for (uint32_t at = 0; at < 4096; at += length) {
          CHECK_EQ(slot.Checks(slot.value())->Of(slot.value().get() + at, at, length),
                   Crc32c(0, copy.data() + at, length));
        }
      }
    }
    CHECK_EQ(slot.Checks(slot.value())->Of(slot.value().get(), 0, 0), 0U);
  }
}

TEST(the_checks_of_a_sum_are_the_same_for_all_who_get_it) {
  PacketPool pool(0);
  SlotSum slot;
  const std::vector<uint8_t> copy(64, 7);
  Block piece = Piece(&pool, copy.data(), 64, 64);
  REQUIRE_TRUE(slot.Add(kBytes, 0, 64, 64, &piece, &pool));
  REQUIRE_TRUE(slot.Finish(*kBytes.codec, 64, &pool));
  CHECK_TRUE(slot.Checks(slot.value()) == slot.Checks(slot.value()));
}

}  // namespace
