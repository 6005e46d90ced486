// prophet on one link: blocks, holds, and when it is priority.
#include <memory>
#include <string>
#include <vector>

#include "harness.h"
#include "policy/policy.h"

using namespace mercury;  // NOLINT: a test

namespace {

constexpr uint64_t kPacket = 10240;

// Gradients with keys and portions 1 (the most urgent) to 4. 3 and 4 come at once, 2 after 20 ms, 1
// after 40 ms; each of ten packets. The link carries 10 bytes a microsecond: a packet takes 1 ms.
struct OneLink {
  explicit OneLink(bool with_profile = true) : profile(std::make_shared<ProphetProfile>(50)) {
    if (with_profile) {
      CHECK_OK(profile->Load("1 102400 9 40000\n2 102400 8 20000\n3 102400 7 0\n4 102400 6 0\n"));
    }
    PolicyOptions options;
    options.kind = PolicyKind::kProphet;
    options.packet_bytes = kPacket;
    options.adapt_packets = false;
    options.credit.fixed_bytes = 1 << 30;
    options.profile = profile;
    policy = MakePolicy(options);
  }

  void Ready(uint64_t id, uint64_t slots = 10) {
    profile->Ready(id, 102400, 10 - static_cast<int32_t>(id), now_us);
    policy->Ready({id, 10 - static_cast<int32_t>(id), slots, 1, slots * kPacket}, now_us);
  }
  // As much as may go now, or so many packets, at the link's pace.
  std::string Send(int packets = 1000, bool takes_time = true) {
    std::string order;
    uint64_t portion;
    while (packets-- > 0 && policy->Next(now_us, &portion)) {
      order += std::to_string(portion);
      policy->Sent(portion, kPacket, true, now_us);
      if (takes_time) now_us += static_cast<int64_t>(kPacket / 10);
    }
    return order;
  }
  // Stretches of 50 packets: `us_each` is what a packet takes.
  void Measure(int64_t us_each = static_cast<int64_t>(kPacket / 10)) {
    for (uint64_t id = 100; id < 120; ++id) {
      policy->Ready({id, 0, 50, 1, 50 * kPacket}, now_us);
      uint64_t portion;
      for (int i = 0; i < 50; ++i) {
        REQUIRE_TRUE(policy->Next(now_us, &portion));
        policy->Sent(portion, kPacket, true, now_us);
      }
      for (int i = 0; i < 50; ++i) policy->Returned(id, kPacket, now_us += us_each);
      policy->Forget(id);
    }
  }

  // Another policy, with credit for so many packets; it has measured the link.
  void Narrow(uint64_t packets) {
    PolicyOptions options;
    options.kind = PolicyKind::kProphet;
    options.packet_bytes = kPacket;
    options.adapt_packets = false;
    options.credit.fixed_bytes = packets * kPacket;
    options.profile = profile;
    policy = MakePolicy(options);
    for (uint64_t id = 100; id < 140; ++id) {
      policy->Ready({id, 0, packets, 1, packets * kPacket}, now_us);
      CHECK_EQ(Send(static_cast<int>(packets), false).size(), 3 * packets);  // three digits each
      for (uint64_t i = 0; i < packets; ++i) policy->Returned(id, kPacket, now_us += 1000);
      policy->Forget(id);
    }
  }

  std::shared_ptr<ProphetProfile> profile;
  std::unique_ptr<Policy> policy;
  int64_t now_us = 1000000;
};

}  // namespace

TEST(a_block_ends_before_what_is_more_urgent_is_due) {
  OneLink link;
  link.Measure();
  const int64_t start = link.now_us;
  link.Ready(4);
  link.Ready(3);
  // 19 packets of 1.024 ms fit into 20 ms.
  CHECK_EQ(link.Send(),
           "3333333333"
           "444444444");
  CHECK_TRUE(link.now_us <= start + 20000);
  CHECK_EQ(link.policy->WakeAt(), start + 20000);
  CHECK_EQ(link.policy->blocks().blocks, 1U);
  CHECK_EQ(link.policy->blocks().bytes, 19 * kPacket);
  CHECK_TRUE(link.policy->blocks().transfer_error_us < 1100);
  link.now_us = start + 20000;
  link.Ready(2);
  CHECK_EQ(link.Send(), "22222222224");
  CHECK_EQ(link.policy->blocks().blocks, 2U);
}

TEST(nothing_interrupts_a_block_but_the_most_urgent) {
  OneLink link;
  link.Measure();
  link.Ready(4);
  link.Ready(3);
  CHECK_EQ(link.Send(5), "33333");
  link.Ready(2);  // early
  CHECK_EQ(link.Send(6), "333334");
  link.Ready(1);  // gradient 0: at once, and then by urgency
  CHECK_EQ(link.Send(),
           "1111111111"
           "2222222222"
           "444444444");
  CHECK_EQ(link.policy->WakeAt(), kNever);
}

TEST(a_block_that_is_held_up_ends_when_its_time_is_over) {
  OneLink link;
  link.Measure();
  const int64_t start = link.now_us;
  link.Ready(4);
  link.Ready(3);
  CHECK_EQ(link.Send(15), "333333333344444");
  // Other workers are late, and there is no credit; meanwhile 2 has come.
  link.now_us = start + 20000;
  link.Ready(2);
  CHECK_EQ(link.Send(11), "22222222224");
  CHECK_EQ(link.policy->blocks().blocks, 2U);
  CHECK_EQ(link.policy->blocks().bytes, 26 * kPacket);
  CHECK_TRUE(link.policy->blocks().transfer_error_us > 0);
}

TEST(what_is_late_is_waited_for_with_one_packet_at_a_time) {
  OneLink link;
  link.Measure();
  const int64_t start = link.now_us;
  link.Ready(4);
  CHECK_EQ(link.Send(1), "4");  // 3 should be there: it is overdue
  link.Ready(3);
  CHECK_EQ(link.Send(2), "33");
  link.now_us = start + 21000;
  CHECK_EQ(link.Send(16), "3333333344444444");  // the rest of a block
  CHECK_EQ(link.Send(1), "4");                  // 2 is late
  link.Ready(2);
  CHECK_EQ(link.Send(1), "2");
}

TEST(before_what_is_late_the_link_is_given_no_more_than_it_carries) {
  OneLink link;
  link.Measure();
  const int64_t start = link.now_us;
  link.Ready(4);
  CHECK_EQ(link.Send(1000, false), "4");  // 3 is overdue, and may come at any moment
  CHECK_EQ(link.policy->WakeAt(), start + 1024);
  link.now_us = start + 1023;
  CHECK_EQ(link.Send(1000, false), "");
  link.now_us = start + 1024;
  CHECK_EQ(link.Send(1000, false), "4");
  link.Ready(3);
  CHECK_EQ(link.Send(2, false), "33");
}

TEST(what_was_late_overtakes_a_packet_that_has_no_credit) {
  OneLink link;
  link.Narrow(1);
  link.Ready(4);
  CHECK_EQ(link.Send(1), "4");
  CHECK_EQ(link.Send(1), "");  // the next one's turn, but the window is full
  link.Ready(3);
  CHECK_EQ(link.Send(1), "3");
}

TEST(a_hold_is_short) {
  OneLink link;
  link.Measure(100000);  // the link seems to be a hundred times slower than it is
  const int64_t start = link.now_us;
  link.Ready(4);
  link.Ready(3);
  CHECK_EQ(link.Send(), "");
  CHECK_EQ(link.policy->WakeAt(), start + 5000);
  link.now_us = start + 4999;
  CHECK_EQ(link.Send(), "");
  link.now_us = start + 5000;
  CHECK_EQ(link.Send(),
           "3333333333"
           "4444444444");  // once is enough
  CHECK_EQ(link.policy->blocks().held_us, 5000U);
}

TEST(without_a_profile_or_a_bandwidth_it_is_mercury) {
  for (const bool with_profile : {false, true}) {
    OneLink link(with_profile);
    if (!with_profile) link.Measure();
    link.Ready(4);
    CHECK_EQ(link.Send(3), "444");
    link.Ready(3);
    CHECK_EQ(link.Send(12), "333333333344");
    CHECK_EQ(link.policy->blocks().blocks, 0U);
    CHECK_EQ(link.policy->WakeAt(), kNever);
  }
}

TEST(a_bandwidth_of_nothing_is_none) {
  OneLink link;
  link.Measure(1000000000);  // next to nothing came back, for hours
  CHECK_EQ(link.policy->blocks().bytes_per_second, 0.0);
  link.Ready(4);
  CHECK_EQ(link.Send(), "4444444444");
}

TEST(forgetting_what_is_in_a_block) {
  OneLink link;
  link.Measure();
  link.Ready(4);
  link.Ready(3);
  CHECK_EQ(link.Send(2), "33");
  link.policy->Forget(3);
  CHECK_EQ(link.Send(2), "44");
  link.policy->Forget(4);
  CHECK_EQ(link.Send(), "");
  CHECK_EQ(link.policy->WakeAt(), kNever);
  CHECK_TRUE(link.policy->Depths().empty());
}

TEST(blocks_are_within_the_credit) {
  OneLink link;
  link.Narrow(4);
  link.Ready(4);
  link.Ready(3);
  CHECK_EQ(link.Send(1000, false), "3333");
  CHECK_TRUE(link.policy->WakeAt() != kNever);
  link.policy->Returned(3, kPacket, link.now_us += 1000);
  CHECK_EQ(link.Send(1000, false), "3");
}
