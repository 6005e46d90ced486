// priority and fifo.
#include <memory>
#include <string>

#include "harness.h"
#include "policy/policy_order.h"

using namespace mercury;  // NOLINT: a test

namespace {

std::unique_ptr<Policy> Make(PolicyKind kind, uint64_t credit_bytes = 1 << 20,
                             uint64_t packet_bytes = 64 << 10) {
  PolicyOptions options;
  options.kind = kind;
  options.packet_bytes = packet_bytes;
  options.credit.fixed_bytes = credit_bytes;
  return MakePacketPolicy(options);
}

}  // namespace

TEST(mercury_sends_the_most_urgent_next_and_equals_in_order) {
  const auto policy = Make(PolicyKind::kPriority);
  policy->Ready({1, -5, 3, 1}, 0);
  policy->Ready({2, -1, 2, 1}, 0);
  policy->Ready({3, -5, 1, 1}, 0);
  CHECK_EQ(Order(policy.get(), 3), "221");
  policy->Ready({4, 0, 1, 1}, 0);  // preempts 1
  CHECK_EQ(Order(policy.get(), 9), "4113");
  CHECK_EQ(policy->preemptions(), 1U);
  CHECK_EQ(policy->WirePriority(-5), -5);
}

TEST(fifo_sends_in_the_order_of_readiness) {
  const auto policy = Make(PolicyKind::kFifo);
  policy->Ready({1, -5, 2, 1}, 0);
  policy->Ready({2, 9, 2, 1}, 0);
  CHECK_EQ(Order(policy.get(), 1), "1");
  policy->Ready({3, 100, 1, 1}, 0);
  CHECK_EQ(Order(policy.get(), 9), "1223");
  CHECK_EQ(policy->preemptions(), 0U);
  CHECK_EQ(policy->WirePriority(100), 0);
}

// Which would be 2 alone, without it: nothing more urgent than 3 has been, and 2 is not that.
TEST(what_is_behind_goes_in_every_other_packet) {
  const auto policy = Make(PolicyKind::kPriority);
  policy->Ready({3, 0, 1, 1}, 0);
  policy->Ready({2, -1, 9, 1}, 0);
  policy->Ready({1, -2, 9, 1}, 0);
  policy->Behind(1, 300);
  CHECK_EQ(Order(policy.get(), 1), "3");
  CHECK_EQ(Order(policy.get(), 8), "12121222");
  CHECK_EQ(policy->preemptions(), 0U);
  policy->Behind(9, 100);  // it is over
  policy->Behind(1, 0);
  CHECK_EQ(Order(policy.get(), 1), "2");
}

TEST(nothing_catches_up_once_the_most_urgent_is_there) {
  const auto policy = Make(PolicyKind::kPriority);
  policy->Ready({1, -2, 9, 1}, 0);
  policy->Ready({2, 0, 3, 1}, 0);
  policy->Behind(1, 300);
  CHECK_EQ(Order(policy.get(), 6), "222111");
  policy->Ready({3, -1, 3, 1}, 0);
  policy->Behind(1, 100);
  CHECK_EQ(Order(policy.get(), 4), "3133");
}

TEST(what_is_behind_needs_no_credit) {
  const auto policy = Make(PolicyKind::kPriority, 100);
  policy->Ready({1, -2, 9, 1}, 0);
  policy->Ready({2, -1, 9, 1}, 0);
  CHECK_EQ(Order(policy.get(), 9), "2");  // its sum waits for others
  policy->Behind(1, 200);
  CHECK_EQ(Order(policy.get(), 9), "1");  // no more than may be under way
  policy->Behind(1, 100);
  policy->Forget(1);
  CHECK_EQ(Order(policy.get(), 9), "");
  policy->Returned(2, 100, 0);
  CHECK_EQ(Order(policy.get(), 9), "2");
}

TEST(what_is_behind_is_sent_when_it_is_ready) {
  const auto policy = Make(PolicyKind::kPriority);
  policy->Ready({3, 0, 1, 1}, 0);
  policy->Ready({2, -1, 9, 1}, 0);
  policy->Ready({1, -2, 3, 1, 300, 3}, 0);
  policy->Behind(1, 300);
  CHECK_EQ(Order(policy.get(), 3), "322");
  policy->More(1, 2, 0);
  CHECK_EQ(Order(policy.get(), 6), "121222");
  policy->More(1, 1, 0);
  CHECK_EQ(Order(policy.get(), 3), "122");
}

TEST(a_slot_in_pieces_counts_once) {
  const auto policy = Make(PolicyKind::kPriority);
  policy->Ready({1, 0, 1, 1}, 0);
  uint64_t portion;
  for (const bool last : {false, false, true}) {
    REQUIRE_TRUE(policy->Next(0, &portion));
    policy->Sent(portion, 64, last, 0);
  }
  CHECK_FALSE(policy->Next(0, &portion));
}

// Of the first portion, others have begun all slots.
TEST(who_may_not_send_of_the_first_is_given_the_next) {
  const auto policy = Make(PolicyKind::kPriority, 1000);
  policy->Ready({1, 0, 1, 1}, 0);
  policy->Ready({2, -1, 1, 1}, 0);
  policy->Ready({3, -2, 1, 1}, 0);
  const auto all_but_first = [](uint64_t portion) { return portion != 1; };
  uint64_t portion = 0;
  policy->Sent(1, 64, false, 0);
  REQUIRE_TRUE(policy->NextOf(all_but_first, 0, &portion));
  CHECK_EQ(portion, 2U);
  policy->Sent(2, 64, true, 0);
  REQUIRE_TRUE(policy->NextOf(all_but_first, 0, &portion));
  CHECK_EQ(portion, 3U);
  policy->Sent(3, 2000, true, 0);
  CHECK_FALSE(policy->NextOf(all_but_first, 0, &portion));
  REQUIRE_TRUE(policy->Next(0, &portion));  // it is more urgent than what fills the window
  CHECK_EQ(portion, 1U);
  policy->Ready({4, -3, 1, 1}, 0);
  CHECK_FALSE(policy->NextOf(all_but_first, 0, &portion));  // that holds this back
  CHECK_TRUE(policy->WakeAt() != kNever);
}

TEST(the_window_holds_back_all_but_the_more_urgent) {
  const auto policy = Make(PolicyKind::kPriority, 1000);
  CHECK_EQ(policy->WakeAt(), kNever);
  policy->Ready({1, 0, 50, 1}, 0);
  CHECK_EQ(Order(policy.get(), 50), "1111111111");
  CHECK_TRUE(policy->WakeAt() != kNever);
  policy->Ready({2, 1, 2, 1}, 0);
  CHECK_EQ(Order(policy.get(), 50), "22");
  policy->Returned(1, 300, 100);
  CHECK_EQ(Order(policy.get(), 50), "1");  // 1100 - 300 + 200 were under way
  policy->Forget(1);
  policy->Forget(2);
  CHECK_EQ(policy->credit()->counted_bytes(), 0U);
  CHECK_TRUE(policy->Depths().empty());
}

TEST(two_slots_may_be_under_way_where_no_part_of_one_is_answered) {
  for (const bool whole : {false, true}) {
    const auto policy = Make(PolicyKind::kPriority, 1000);
    policy->Ready({1, 0, 5, 1, 5 * 1500, 0, whole}, 0);
    CHECK_EQ(Order(policy.get(), 5, 1500), whole ? "11" : "1");
    policy->Returned(1, 1500, 100);
    CHECK_EQ(Order(policy.get(), 5, 1500), "1");
  }
  Make(PolicyKind::kPriority)->Ready({1, 0, 0, 1, 0, 0, true}, 0);  // a share without slots
}

// 1 byte/us: a window of 2 ms is less than one of these packets.
TEST(two_packets_may_be_under_way_on_a_slow_link) {
  PolicyOptions options;
  options.packet_bytes = 50048;
  options.adapt_packets = false;
  options.credit.bytes_min = 1;
  const auto policy = MakePacketPolicy(options);
  policy->Ready({1, 0, 9, 1}, 0);
  CHECK_EQ(Order(policy.get(), 1, 20000), "1");
  policy->Returned(1, 20000, 20000);
  REQUIRE_TRUE(policy->credit()->window_bytes() < 3000);
  CHECK_EQ(Order(policy.get(), 9, 50048), "11");
}

TEST(fifo_is_held_back_by_all_of_the_window) {
  const auto policy = Make(PolicyKind::kFifo, 1000);
  policy->Ready({1, 0, 50, 1}, 0);
  CHECK_EQ(Order(policy.get(), 50), "1111111111");
  policy->Ready({2, 100, 2, 1}, 0);
  CHECK_EQ(Order(policy.get(), 50), "");
}

TEST(portions_without_slots_and_forgotten_portions_are_not_named) {
  const auto policy = Make(PolicyKind::kPriority);
  policy->Ready({1, 0, 0, 1}, 0);
  policy->Ready({2, 0, 5, 1}, 0);
  policy->Ready({3, 0, 1, 1}, 0);
  CHECK_EQ(Order(policy.get(), 1), "2");
  policy->Forget(2);
  policy->Forget(2);
  policy->Returned(2, 100, 0);
  policy->Sent(2, 100, true, 0);
  CHECK_EQ(Order(policy.get(), 9), "3");
}

TEST(slots_that_are_not_ready_are_not_named) {
  const auto policy = Make(PolicyKind::kPriority);
  policy->Ready({1, 9, 4, 1, 0, 4}, 0);
  policy->Ready({2, 0, 2, 1, 0, 1}, 0);
  CHECK_EQ(Order(policy.get(), 9), "2");
  policy->More(1, 3, 0);
  policy->More(2, 1, 0);
  CHECK_EQ(Order(policy.get(), 9), "1112");
  policy->More(1, 1, 0);
  policy->More(7, 1, 0);  // nobody has heard of it
  CHECK_EQ(Order(policy.get(), 9), "1");
  policy->Ready({3, 0, 2, 1, 0, 2}, 0);
  policy->Forget(3);
  policy->More(3, 2, 0);
  CHECK_EQ(Order(policy.get(), 9), "");
}

TEST(packets_shrink_on_slow_links_and_stay_aligned) {
  for (const uint64_t most :
       {uint64_t{64} << 10, uint64_t{50000}, uint64_t{100001}, uint64_t{1024}}) {
    const auto policy = Make(PolicyKind::kPriority, 1 << 20, most);
    CHECK_EQ(policy->packet_bytes(), most / 64 * 64);
    for (int64_t i = 0; i < 100; ++i) {  // 1 byte/us
      policy->Ready({static_cast<uint64_t>(i + 1), 0, 1, 1}, i * 2000);
      uint64_t portion;
      REQUIRE_TRUE(policy->Next(i * 2000, &portion));
      policy->Sent(portion, 2000, true, i * 2000);
      policy->Returned(portion, 2000, i * 2000 + 1900);
      policy->Forget(portion);
    }
    // Halved as long as 4 KiB are left.
    CHECK_TRUE(policy->packet_bytes() < 8192);
    CHECK_TRUE(policy->packet_bytes() >= 4096 || most == 1024);
    CHECK_EQ(policy->packet_bytes() % 64, 0U);
  }
}

TEST(depths_are_told_by_priority) {
  const auto policy = Make(PolicyKind::kPriority);
  policy->Ready({1, -5, 3, 1}, 0);
  policy->Ready({2, -5, 2, 1}, 0);
  policy->Ready({3, 7, 2, 1}, 0);
  const auto depths = policy->Depths();
  REQUIRE_EQ(depths.size(), 2U);
  CHECK_TRUE(depths[0].first == 7 && depths[0].second == 1);
  CHECK_TRUE(depths[1].first == -5 && depths[1].second == 2);
}
