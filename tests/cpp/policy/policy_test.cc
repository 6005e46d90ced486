#include "policy/policy.h"

#include <map>
#include <set>
#include <string>
#include <utility>

#include "harness.h"

using namespace mercury;  // NOLINT: a test

namespace {

constexpr PolicyKind kAll[] = {PolicyKind::kPriority,      PolicyKind::kFifo,
                               PolicyKind::kWfbp,          PolicyKind::kP3,
                               PolicyKind::kByteScheduler, PolicyKind::kProphet};

}  // namespace

TEST(names_and_kinds_match) {
  const char* const names[] = {"priority", "fifo", "wfbp", "p3", "bytescheduler", "prophet"};
  for (size_t i = 0; i < std::size(kAll); ++i) {
    PolicyKind kind;
    CHECK_OK(ParsePolicy(names[i], &kind));
    CHECK_TRUE(kind == kAll[i]);
    CHECK_EQ(std::string(Name(kind)), names[i]);
    CHECK_EQ(static_cast<int>(kind), static_cast<int>(i));  // on the wire
  }
  PolicyKind kind;
  for (const char* wrong : {"", "P3", "priority ", "tic"}) {
    const Status status = ParsePolicy(wrong, &kind);
    CHECK_STATUS(Code::kInvalidArgument, status);
    CHECK_TRUE(status.text().find("bytescheduler") != std::string::npos);
  }
  CHECK_EQ(std::string(Name(static_cast<PolicyKind>(99))), "unknown");
}

TEST(units_are_what_the_policies_say) {
  CHECK_EQ(UnitSlots(PolicyKind::kPriority, 1 << 20, 1000, 50), 1U);
  CHECK_EQ(UnitSlots(PolicyKind::kFifo, 0, 1000, 50), 1U);
  CHECK_EQ(UnitSlots(PolicyKind::kProphet, 1 << 20, 1000, 50), 1U);
  CHECK_EQ(UnitSlots(PolicyKind::kWfbp, 0, 1000, 50), 50U);
  CHECK_EQ(UnitSlots(PolicyKind::kWfbp, 0, 1000, 0), 1U);
  CHECK_EQ(UnitSlots(PolicyKind::kP3, 5999, 1000, 50), 5U);
  CHECK_EQ(UnitSlots(PolicyKind::kP3, 10, 1000, 50), 1U);
  CHECK_EQ(UnitSlots(PolicyKind::kByteScheduler, 5000, 0, 0), 5000U);
  for (const PolicyKind kind : kAll) {  // 0 is the default
    CHECK_EQ(UnitSlots(kind, 0, 1000, 50), UnitSlots(kind, DefaultUnitBytes(kind), 1000, 50));
  }
  CHECK_FALSE(Acknowledges(PolicyKind::kPriority) || Acknowledges(PolicyKind::kFifo) ||
              Acknowledges(PolicyKind::kWfbp) || Acknowledges(PolicyKind::kProphet));
  CHECK_TRUE(Acknowledges(PolicyKind::kP3) && Acknowledges(PolicyKind::kByteScheduler));
}

// The promises of policy.h, for all and any sequence of calls: Next names a portion that was made
// ready, was not forgotten and has slots that are ready to send; units are not torn; with nothing
// under way, something is sent.
TEST(every_policy_keeps_its_promises) {
  mercury::testing::Random random;
  for (int trial = 0; trial < 300; ++trial) {
    PolicyOptions options;
    options.kind = kAll[trial % std::size(kAll)];
    options.packet_bytes = 1024;
    options.unit_bytes = random.OneIn(3) ? 0 : random.Below(10000) + 1;
    options.window_bytes = random.OneIn(2) ? 0 : random.Below(30000) + 1;
    options.levels_max = random.OneIn(2) ? 2 : 4096;
    if (random.OneIn(2)) options.credit.fixed_bytes = random.Below(20000) + 1;
    const auto profile = std::make_shared<ProphetProfile>(3);
    options.profile = profile;
    const auto policy = MakePolicy(options);
    struct State {
      Portion portion;
      uint64_t sent = 0;  // slots
      uint64_t bytes = 0, returned = 0, acknowledged = 0;
    };
    std::map<uint64_t, State> portions;
    uint64_t ids = 0;
    int64_t now = 0;
    const bool unit_policy = options.kind == PolicyKind::kWfbp || Acknowledges(options.kind);
    uint64_t torn = ~uint64_t{0};  // the portion whose unit is being sent
    const auto send = [&]() -> bool {
      uint64_t id;
      if (!policy->Next(now, &id)) return false;
      const auto it = portions.find(id);
      REQUIRE_TRUE(it != portions.end());
      State& s = it->second;
      REQUIRE_TRUE(s.sent < s.portion.slots - s.portion.missing);
      REQUIRE_TRUE(s.portion.missing == 0 || !unit_policy);
      if (unit_policy && torn != ~uint64_t{0}) CHECK_EQ(id, torn);
      CHECK_TRUE(policy->packet_bytes() <= 1024 && policy->packet_bytes() % 64 == 0);
      const bool slot_done = !random.OneIn(4);
      s.bytes += 500;
      if (slot_done) ++s.sent;
      const bool unit_done =
          slot_done && (s.sent % s.portion.unit_slots == 0 || s.sent == s.portion.slots);
      torn = unit_done ? ~uint64_t{0} : id;
      policy->Sent(id, 500, slot_done, now);
      return true;
    };
    for (int step = 0; step < 300; ++step) {
      now += random.Between(0, 300);
      if (random.OneIn(6)) {
        Portion portion{++ids, static_cast<int32_t>(random.Between(-3, 3)), random.Below(12), 1};
        portion.unit_slots = UnitSlots(options.kind, options.unit_bytes, 1024, portion.slots);
        portion.bytes = random.OneIn(9) ? 0 : 500 * portion.slots;
        portion.missing = random.OneIn(2) ? 0 : random.Below(portion.slots + 1);
        portions[portion.id].portion = portion;
        profile->Ready(portion.id % 8, 1, portion.priority, now);
        policy->Ready(portion, now);
      } else if (!random.OneIn(3)) {
        send();
      } else if (!portions.empty()) {
        auto it = portions.begin();
        std::advance(it, static_cast<ptrdiff_t>(random.Below(portions.size())));
        State& s = it->second;
        if (s.portion.missing != 0 && random.OneIn(2)) {
          const uint64_t more = random.Below(s.portion.missing + 1);
          s.portion.missing -= more;
          policy->More(it->first, more, now);
        } else if (random.OneIn(3)) {
          policy->Acknowledged(it->first, s.bytes - s.acknowledged);
          s.acknowledged = s.bytes;
        } else if (random.OneIn(2)) {
          policy->Returned(it->first, s.bytes - s.returned, now);
          s.returned = s.bytes;
        } else {
          policy->Forget(it->first);
          if (torn == it->first) torn = ~uint64_t{0};
          portions.erase(it);
        }
      }
    }
    // Everything comes back: then all can be sent, without waiting.
    uint64_t left = 0;
    for (auto& [id, s] : portions) policy->More(id, std::exchange(s.portion.missing, 0), now);
    for (const auto& [id, s] : portions) left += s.portion.slots - s.sent;
    for (int turns = 0; left != 0 && turns < 10000; ++turns) {
      if (!send()) {
        for (auto& [id, s] : portions) {
          policy->Acknowledged(id, s.bytes - s.acknowledged);
          policy->Returned(id, s.bytes - s.returned, now);
          s.acknowledged = s.returned = s.bytes;
        }
        if (!send()) {  // it will when it said, if not now
          REQUIRE_TRUE(policy->WakeAt() != kNever && policy->WakeAt() > now);
          now = policy->WakeAt();
          continue;
        }
      }
      left = 0;
      for (const auto& [id, s] : portions) left += s.portion.slots - s.sent;
    }
    CHECK_EQ(left, 0U);
    CHECK_TRUE(policy->Depths().empty());
    CHECK_FALSE(send());
  }
}
