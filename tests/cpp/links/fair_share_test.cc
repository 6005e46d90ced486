// How the links of a host come to share its way in: by themselves, and over a simulated bottleneck.
#include "links/fair_share.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "harness.h"

using namespace mercury;
namespace {

constexpr uint64_t kSegment = 1448;

// Flows into one host: each keeps as much under way as its receiver last said, over a path of
// `delay_us` each way that ends in one queue. Time moves in steps.
class Bottleneck {
 public:
  Bottleneck(int flows, double bytes_per_us, int64_t delay_us)
      : rate_(bytes_per_us), delay_us_(delay_us), flows_(static_cast<size_t>(flows)) {
    for (int i = 0; i < flows; ++i) share_.Add(i);
  }

  void Run(int64_t us) {
    for (const int64_t end = now_us_ + us; now_us_ < end; now_us_ += kStepUs) Step();
  }
  void SetRate(double bytes_per_us) { rate_ = bytes_per_us; }
  void SetActive(size_t flow, bool active) { flows_[flow].active = active; }
  uint64_t window() const { return share_.window_bytes(2 * delay_us_, kSegment); }
  // Of what the queue may hold, the most since it was last asked.
  uint64_t TakeQueueMax() { return std::exchange(queue_max_, 0); }
  std::vector<uint64_t> TakeCarried() {
    std::vector<uint64_t> carried;
    for (Flow& flow : flows_) carried.push_back(std::exchange(flow.carried, 0));
    return carried;
  }
  const FairShare& share() const { return share_; }

 private:
  static constexpr int64_t kStepUs = 50;
  struct Flow {
    bool active = true;
    uint64_t under_way = 0, carried = 0;
  };
  struct Event {
    int64_t at_us;
    size_t flow;
  };

  void Step() {
    while (!returning_.empty() && returning_.front().at_us <= now_us_) {
      flows_[returning_.front().flow].under_way -= kSegment;
      returning_.pop_front();
    }
    for (size_t i = 0; i < flows_.size(); ++i) {
      Flow& flow = flows_[(first_ + i) % flows_.size()];
      while (flow.active && flow.under_way + kSegment <= window()) {
        flow.under_way += kSegment;
        coming_.push_back({now_us_ + delay_us_, (first_ + i) % flows_.size()});
      }
    }
    ++first_;
    while (!coming_.empty() && coming_.front().at_us <= now_us_) {
      queue_.push_back(coming_.front().flow);
      coming_.pop_front();
    }
    queue_max_ = std::max<uint64_t>(queue_max_, queue_.size() * kSegment);
    allowance_ = queue_.empty() ? 0 : allowance_ + rate_ * kStepUs;
    while (!queue_.empty() && allowance_ >= kSegment) {
      allowance_ -= kSegment;
      flows_[queue_.front()].carried += kSegment;
      share_.Carried(static_cast<int>(queue_.front()), kSegment, now_us_);
      returning_.push_back({now_us_ + delay_us_, queue_.front()});
      queue_.pop_front();
    }
  }

  double rate_;
  const int64_t delay_us_;
  std::vector<Flow> flows_;
  FairShare share_;
  int64_t now_us_ = 0;
  size_t first_ = 0;
  double allowance_ = 0;
  uint64_t queue_max_ = 0;
  std::deque<Event> coming_, returning_;
  std::deque<size_t> queue_;
};

double Sum(const std::vector<uint64_t>& values) {
  double sum = 0;
  for (const uint64_t value : values) sum += static_cast<double>(value);
  return sum;
}

// Two lanes of one host behind one queue, where each flow's part is what its window is of all of
// them: what the lanes settle on by themselves, from any beginning.
class TwoLanes {
 public:
  explicit TwoLanes(int links_beside) {
    ShareLimits limits;
    limits.links_beside = links_beside;
    for (auto& share : shares_) {
      share = std::make_unique<FairShare>(limits, [this] { return static_cast<uint64_t>(host_); });
      for (int link = 0; link < kLinks; ++link) share->Add(link);
    }
  }
  // The first lane's part of the rate, which it keeps for a second before windows decide.
  void Begin(double part) {
    for (const int64_t end = now_us_ + 1000000; now_us_ < end;) Step(part);
  }
  void Run(int64_t us) {
    for (const int64_t end = now_us_ + us; now_us_ < end;) Step(part());
  }
  double part() const {
    const auto window = [this](int i) {
      return static_cast<double>(shares_[i]->window_bytes(400, 100));
    };
    return window(0) / (window(0) + window(1));
  }
  const FairShare& share(int lane) const { return *shares_[lane]; }

 private:
  static constexpr int kLinks = 4;
  static constexpr double kRate = 12.5;  // bytes a microsecond, 100 Mbit/s
  void Step(double part) {
    now_us_ += 1000;
    host_ += 1.05 * kRate * 1000;  // with headers
    for (int i = 0; i < 2; ++i) {
      const double bytes = kRate * 1000 * (i == 0 ? part : 1 - part) / kLinks;
      for (int link = 0; link < kLinks; ++link) {
        shares_[i]->Carried(link, static_cast<uint64_t>(bytes), now_us_);
      }
    }
  }
  double host_ = 1e9;  // of before
  int64_t now_us_ = 0;
  std::unique_ptr<FairShare> shares_[2];
};

// What the rate carries in the time that windows are made for.
double Product(double bytes_per_us, int64_t round_trip_us, int links) {
  const double queue_us = std::min(1000 + 20000.0 / links, 6000.0);
  return bytes_per_us * (1.25 * static_cast<double>(round_trip_us) + queue_us);
}

}  // namespace

TEST(windows_together_are_about_what_the_way_carries_in_a_round_trip) {
  for (const int flows : {1, 2, 4, 8, 16}) {
    const double rate = 30;  // 240 Mbit/s
    Bottleneck way(flows, rate, 200);
    way.Run(1000000);
    way.TakeCarried();
    way.TakeQueueMax();
    way.Run(1000000);
    const std::vector<uint64_t> carried = way.TakeCarried();
    CHECK_TRUE(Sum(carried) > 0.97 * rate * 1e6);
    const double all = static_cast<double>(way.window()) * flows;
    const double floor = static_cast<double>(ShareLimits().segments_min * kSegment) * flows;
    const double wanted = std::max(Product(rate, 400, flows), floor);
    const double most_wanted = 1.05 * wanted + static_cast<double>(kSegment) * flows;
    CHECK_TRUE(all > 0.9 * wanted && all < most_wanted);
    CHECK_EQ(way.window() % kSegment, 0U);  // a part of one would not be used
    // Never more in the queue than that, less what the path itself holds.
    CHECK_TRUE(static_cast<double>(way.TakeQueueMax()) < most_wanted);
    const auto [least, most] = std::minmax_element(carried.begin(), carried.end());
    CHECK_TRUE(*most - *least < *most / 10);
  }
}

// Two lanes whose rates differ by little differ by little, on whichever side of a whole segment.
TEST(turn_by_turn_windows_are_the_share_on_average) {
  const auto average = [](double bytes_per_us, uint64_t segment) {
    FairShare share;
    for (int link = 0; link < 4; ++link) share.Add(link);
    for (int64_t now = 0; now < 1000000; now += 1000) {
      for (int link = 0; link < 4; ++link) {
        share.Carried(link, static_cast<uint64_t>(bytes_per_us * 1000 / 4), now);
      }
    }
    const uint64_t first = share.window_bytes(400, segment);
    double sum = 0;
    for (int turn = 0; turn < 34; ++turn) {
      share.NextTurn();
      const uint64_t window = share.window_bytes(400, segment);
      CHECK_TRUE(window + segment >= first && window <= first + segment);
      CHECK_EQ(window % segment, 0U);
      sum += static_cast<double>(window) / 34;
    }
    return sum;
  };
  for (double rate = 10; rate < 16; rate += 0.2) {
    const double share = average(rate, 1);
    CHECK_TRUE(std::abs(average(rate, kSegment) - share - kSegment / 2.0) < kSegment / 25.0);
  }
}

TEST(the_window_follows_the_rate_both_ways) {
  Bottleneck way(8, 25, 100);
  for (const double rate : {25.0, 5.0, 100.0}) {
    way.SetRate(rate);
    way.Run(4000000);
    CHECK_TRUE(way.share().bytes_per_second() > 0.9e6 * rate);
    CHECK_TRUE(way.share().bytes_per_second() < 1.1e6 * rate);
    const double all = static_cast<double>(way.window()) * 8;
    const double least = 8.0 * static_cast<double>(ShareLimits().segments_min * kSegment);
    const double wanted = std::max(Product(rate, 200, 8), least);
    CHECK_TRUE(all > 0.85 * wanted && all < 1.15 * wanted);
  }
}

TEST(idle_links_give_their_share_back) {
  Bottleneck way(8, 25, 100);
  way.Run(1000000);
  const uint64_t before = way.window();
  CHECK_EQ(way.share().links(), 8);
  for (size_t flow = 2; flow < 8; ++flow) way.SetActive(flow, false);
  way.Run(3000000);
  CHECK_EQ(way.share().links(), 2);
  CHECK_TRUE(way.window() > 4 * before);
  way.SetActive(5, true);
  way.Run(20000);  // at once
  CHECK_EQ(way.share().links(), 3);
  for (size_t flow = 0; flow < 8; ++flow) way.SetActive(flow, true);
  way.Run(1000000);
  CHECK_TRUE(way.window() < before + before / 8 && way.window() > before - before / 8);
}

TEST(while_no_rate_is_known_links_have_equal_parts_of_the_first_window) {
  FairShare share;
  CHECK_EQ(share.links(), 1);
  for (int link = 0; link < 4; ++link) share.Add(link);
  CHECK_EQ(share.window_bytes(0, 1024), ShareLimits().first_bytes / 4);
  share.Carried(7, 1000000, 5);  // not one of them
  share.Remove(2);
  share.Remove(3);
  CHECK_EQ(share.window_bytes(0, 1024), ShareLimits().first_bytes / 2);
  CHECK_EQ(share.bytes_per_second(), 0.0);
}

TEST(links_that_take_turns_each_have_the_whole_way) {
  ShareLimits limits;
  limits.take_turns = true;
  FairShare turns(limits), level;
  for (int link = 0; link < 30; ++link) turns.Add(link);
  level.Add(0);
  CHECK_EQ(turns.window_bytes(0, 1024), ShareLimits().first_bytes);
  // Each carries for 80 ms; the other lane has one link, which carries the same.
  for (int64_t now = 0; now < 2400000; now += 1000) {
    turns.Carried(static_cast<int>(now / 80000), 12500, now);
    level.Carried(0, 12500, now);
  }
  CHECK_EQ(turns.links(), 1);
  CHECK_EQ(turns.window_bytes(400, 1448), level.window_bytes(400, 1448));
}

TEST(lanes_of_one_host_come_to_equal_parts) {
  for (const double part : {0.1, 0.35, 0.5, 0.8}) {
    TwoLanes lanes(4);
    lanes.Begin(part);
    lanes.Run(3000000);
    CHECK_TRUE(lanes.part() > 0.49 && lanes.part() < 0.51);
    for (int i = 0; i < 2; ++i) {
      CHECK_EQ(lanes.share(i).links(), 8);
      CHECK_TRUE(lanes.share(i).bytes_per_second() < 1.1 * 12.5e6);
    }
  }
}

// The other one gets its part as soon as it has something to carry, and gives it back.
TEST(a_lane_whose_neighbour_is_idle_has_the_whole_way) {
  TwoLanes lanes(4);
  lanes.Begin(1.0);
  CHECK_EQ(lanes.share(0).links(), 4);
  const uint64_t alone = lanes.share(0).window_bytes(400, 100);
  lanes.Begin(0.7);
  CHECK_EQ(lanes.share(0).links(), 8);
  CHECK_TRUE(lanes.share(0).window_bytes(400, 100) < alone * 6 / 10);
  lanes.Begin(1.0);
  lanes.Begin(1.0);
  CHECK_EQ(lanes.share(0).links(), 4);
  CHECK_TRUE(lanes.share(0).window_bytes(400, 100) > alone * 9 / 10);
}

// A backup, another job: alone on its host, a lane has what it carries; among others of its job, at
// most twice what they would have if they were even.
TEST(what_is_not_of_this_job_takes_no_windows) {
  TwoLanes strangers(0);
  strangers.Begin(0.3);
  CHECK_EQ(strangers.share(0).links(), 4);
  CHECK_TRUE(strangers.share(0).bytes_per_second() < 0.33 * 12.5e6);
  TwoLanes lanes(4);
  lanes.Begin(0.05);
  CHECK_TRUE(lanes.share(0).bytes_per_second() > 0.19 * 12.5e6);
  CHECK_TRUE(lanes.share(0).bytes_per_second() < 0.22 * 12.5e6);
}

TEST(an_interface_that_does_not_tell_leaves_the_own_rate) {
  FairShare share({}, [] { return uint64_t{0}; });
  share.Add(0);
  for (int64_t now = 0; now < 1000000; now += 1000) share.Carried(0, 5000, now);
  CHECK_TRUE(share.bytes_per_second() > 4.9e6 && share.bytes_per_second() < 5.3e6);
  CHECK_EQ(share.links(), 1);
}

TEST(a_burst_after_a_pause_is_not_a_rate) {
  FairShare share;
  share.Add(1);
  for (int64_t now = 0; now < 10000000; now += 100000) share.Carried(1, 100000, now);
  CHECK_EQ(share.bytes_per_second(), 0.0);
}

// What comes of bursts of so long, each 100 ms, whose first 5 ms carry `at_first` times as much.
double RateOfBursts(int64_t burst_us, double at_first) {
  constexpr double kRate = 1250;
  FairShare share;
  for (int link = 0; link < 8; ++link) share.Add(link);
  for (int64_t begin = 0; begin < 1000000; begin += 100000) {
    for (int64_t us = 0; us < burst_us; us += 100) {
      const double bytes = 100 * kRate * (us < 5000 ? at_first : 1);
      share.Carried(static_cast<int>(us / 100 % 8), static_cast<uint64_t>(bytes), begin + us);
    }
  }
  return share.bytes_per_second() / (1e6 * kRate);
}

TEST(short_bursts_have_a_rate_which_is_not_that_of_their_beginning) {
  for (const int64_t burst_us : {16000, 20000, 30000, 45000, 60000}) {
    for (const double at_first : {1.0, 4.0}) {
      CHECK_TRUE(std::abs(RateOfBursts(burst_us, at_first) - 1) < 0.05);
    }
  }
  CHECK_EQ(RateOfBursts(5000, 4), 0.0);
}

TEST(windows_stay_within_their_limits) {
  ShareLimits limits;
  limits.bytes_max = 100000;
  FairShare share(limits);
  share.Add(1);
  int64_t now = 0;
  for (const uint64_t bytes : {1, 1000000}) {
    for (int i = 0; i < 3000; ++i) share.Carried(1, bytes, now += 1000);
    for (const uint64_t segment : {0, 1448, 65483}) {
      const uint64_t window = share.window_bytes(100, segment);
      CHECK_TRUE(window >= std::min<uint64_t>(limits.segments_min * segment, 100000) &&
                 window <= 100000);
    }
  }
}

TEST(however_slow_there_is_room_for_more_than_a_segment) {
  FairShare share;
  share.Add(1);
  for (int64_t now = 0; now < 1000000; now += 1000) share.Carried(1, 40, now);  // 40 KB/s
  CHECK_TRUE(share.bytes_per_second() > 0);
  CHECK_EQ(share.carries_bytes(2.8e-3, 8 << 10, 1448), 8 << 10);
  CHECK_EQ(share.carries_bytes(2.8e-3, 8 << 10, 8948), 2 * 8948);    // jumbo frames
  CHECK_EQ(share.carries_bytes(2.8e-3, 8 << 10, 65483), 2 * 65483);  // loopback
  for (int64_t now = 1000000; now < 2000000; now += 1000) share.Carried(1, 100000, now);
  CHECK_TRUE(share.carries_bytes(2.8e-3, 8 << 10, 1448) > 250000);
}
