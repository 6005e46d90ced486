// wfbp, p3 and bytescheduler.
#include <memory>
#include <string>

#include "harness.h"
#include "policy/policy_order.h"

using namespace mercury;  // NOLINT: a test

namespace {

std::unique_ptr<Policy> Make(PolicyKind kind, uint64_t unit_bytes = 0, uint64_t window_bytes = 0) {
  PolicyOptions options;
  options.kind = kind;
  options.unit_bytes = unit_bytes;
  options.window_bytes = window_bytes;
  return MakeUnitPolicy(options);
}

}  // namespace

TEST(wfbp_sends_whole_tensors_in_order) {
  const auto policy = Make(PolicyKind::kWfbp);
  policy->Ready({1, -9, 3, 3}, 0);
  policy->Ready({2, 9, 2, 2}, 0);
  CHECK_EQ(Order(policy.get(), 2), "11");
  policy->Ready({3, 99, 1, 1}, 0);
  CHECK_EQ(Order(policy.get(), 99), "1223");
  CHECK_EQ(policy->WirePriority(5), 0);
}

TEST(p3_waits_for_each_slice) {
  const auto policy = Make(PolicyKind::kP3);
  policy->Ready({1, 0, 5, 2}, 0);
  CHECK_EQ(Order(policy.get(), 99), "11");
  policy->Ready({2, 5, 1, 2}, 0);  // more urgent: the next slice
  CHECK_EQ(Order(policy.get(), 99), "");
  policy->Acknowledged(1, 100);
  CHECK_EQ(Order(policy.get(), 99), "");
  policy->Acknowledged(1, 100);
  CHECK_EQ(Order(policy.get(), 99), "2");
  policy->Returned(2, 100, 0);  // sums are not what it waits for
  CHECK_EQ(Order(policy.get(), 99), "");
  policy->Acknowledged(2, 100);
  CHECK_EQ(Order(policy.get(), 99), "11");
  policy->Acknowledged(1, 200);
  CHECK_EQ(Order(policy.get(), 99), "1");
  CHECK_EQ(policy->WirePriority(5), 5);
}

TEST(a_slice_under_way_is_not_torn) {
  const auto policy = Make(PolicyKind::kP3);
  policy->Ready({1, 0, 4, 3}, 0);
  CHECK_EQ(Order(policy.get(), 1), "1");
  policy->Ready({2, 5, 1, 1}, 0);
  CHECK_EQ(Order(policy.get(), 99), "11");
}

TEST(bytescheduler_keeps_within_its_credit) {
  const auto policy = Make(PolicyKind::kByteScheduler, 200, 350);
  policy->Ready({1, 0, 20, 2}, 0);
  CHECK_EQ(Order(policy.get(), 99), "1111");  // 200 < 350: one more partition may go
  policy->Ready({2, 1, 2, 2}, 0);
  policy->Acknowledged(1, 200);
  CHECK_EQ(Order(policy.get(), 99), "22");
  policy->Forget(1);  // what was under way of it is no more
  CHECK_EQ(Order(policy.get(), 99), "");
  policy->Ready({3, 1, 1, 2}, 0);
  CHECK_EQ(Order(policy.get(), 99), "3");
}

TEST(bytescheduler_s_default_credit_is_four_partitions) {
  const auto policy = Make(PolicyKind::kByteScheduler, 200);
  policy->Ready({1, 0, 99, 2}, 0);
  CHECK_EQ(Order(policy.get(), 99).size(), 8U);
  const auto default_sizes = Make(PolicyKind::kByteScheduler);
  default_sizes->Ready({1, 0, 99, 1}, 0);
  CHECK_EQ(Order(default_sizes.get(), 99, 4 << 20).size(), 4U);
}

TEST(units_are_cut_from_what_is_all_there) {
  const auto policy = Make(PolicyKind::kP3, 2);
  policy->Ready({1, 9, 4, 2, 0, 3}, 0);
  policy->Ready({2, 0, 1, 2}, 0);
  policy->More(1, 2, 0);
  CHECK_EQ(Order(policy.get(), 9), "2");
  policy->Acknowledged(2, 1 << 20);
  policy->More(1, 1, 0);
  CHECK_EQ(Order(policy.get(), 9), "11");
}

TEST(forgetting_in_the_middle_of_a_unit_lets_the_next_go) {
  for (const PolicyKind kind : {PolicyKind::kWfbp, PolicyKind::kP3, PolicyKind::kByteScheduler}) {
    const auto policy = Make(kind, 1000);
    policy->Ready({1, 0, 6, 3}, 0);
    policy->Ready({2, 0, 2, 3}, 0);
    CHECK_EQ(Order(policy.get(), 1), "1");
    policy->Forget(1);
    policy->Acknowledged(1, 300);
    CHECK_EQ(Order(policy.get(), 99), "22");
    CHECK_TRUE(policy->Depths().empty());
  }
}
