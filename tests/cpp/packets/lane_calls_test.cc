#include "packets/lane_calls.h"

#include <vector>

#include "harness.h"

using namespace mercury;           // NOLINT: a test
using namespace mercury::testing;  // NOLINT: a test

namespace {

// Two peers, three lanes of which the first `carriers` carry; all are there and rest.
struct Calls {
  explicit Calls(int carriers)
      : lanes(2, 3, carriers, [this](int lane) { called.push_back(lane); }) {
    for (int peer = 0; peer < 2; ++peer) {
      for (int lane = 0; lane < 3; ++lane) lanes.Rests(peer, lane);
    }
  }
  std::vector<int> called;
  LaneCalls lanes;
};

using Lanes = std::vector<int>;

}  // namespace

TEST(one_lane_that_rests_is_called) {
  Calls calls(3);
  calls.lanes.Asks(1, 0);  // that is another peer's
  calls.lanes.Full(0, 1);
  calls.lanes.Offer(0, 1);
  CHECK_EQ(calls.called, Lanes{0});
  calls.lanes.Offer(0, 1);  // it will ask, and take this, too
  CHECK_EQ(calls.called, Lanes{0});
}

TEST(who_has_its_turn_is_not_called) {
  Calls calls(3);
  calls.lanes.Offer(0, 2);  // it asks by itself before it rests
  calls.lanes.Offer(0, 1);  // and takes this, too
  CHECK_EQ(calls.called, Lanes{});
}

TEST(another_is_called_when_a_link_is_full) {
  Calls calls(3);
  calls.lanes.Offer(0, 2);
  calls.lanes.Asks(0, 2);
  calls.lanes.Full(0, 2);
  calls.lanes.Offer(0, 2);  // it leaves something
  CHECK_EQ(calls.called, Lanes{0});
  calls.lanes.Asks(0, 0);
  calls.lanes.Full(0, 0);
  calls.lanes.Offer(0, 0);
  CHECK_EQ(calls.called, (Lanes{0, 1}));
  calls.lanes.Full(0, 1);
  calls.lanes.Offer(0, 1);  // there is none that could: each asks when it has room
  CHECK_EQ(calls.called, (Lanes{0, 1}));
  calls.lanes.Asks(0, 2);
  calls.lanes.Rests(0, 2);
  calls.lanes.Offer(0, 0);
  CHECK_EQ(calls.called, (Lanes{0, 1, 2}));
}

TEST(who_does_not_carry_is_not_called) {
  Calls calls(1);
  calls.lanes.Offer(0, 2);
  CHECK_EQ(calls.called, Lanes{0});
  calls.lanes.Full(0, 0);
  calls.lanes.Offer(0, 2);
  CHECK_EQ(calls.called, Lanes{0});
}

TEST(a_link_that_is_not_there_yet_counts_as_full) {
  LaneCalls lanes(1, 2, 2, [](int /*lane*/) { CHECK_TRUE(false); });
  lanes.Offer(0, 0);
}

TEST(a_lane_alone_is_never_called) {
  LaneCalls lanes(1, 1, 1, nullptr);
  lanes.Rests(0, 0);
  lanes.Offer(0, 0);
}

TEST(what_one_lane_alone_carries_is_told_to_it) {
  Calls calls(3);
  calls.lanes.Asks(0, 1);  // it works, and cannot take it
  calls.lanes.OfferTo(0, 0);
  calls.lanes.OfferTo(0, 0);
  CHECK_EQ(calls.called, Lanes{0});
  calls.lanes.Full(0, 0);
  calls.lanes.OfferTo(0, 0);  // it asks when it has room
  CHECK_EQ(calls.called, Lanes{0});
}
