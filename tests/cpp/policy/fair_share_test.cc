// How the links of a host come to share its way in: by themselves, and over a simulated bottleneck.
#include "policy/fair_share.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "harness.h"

namespace mercury {
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
    CHECK_TRUE(all > 0.9 * wanted && all < 1.15 * wanted);
    // Never more in the queue than that, less what the path itself holds.
    CHECK_TRUE(static_cast<double>(way.TakeQueueMax()) < 1.15 * wanted);
    const auto [least, most] = std::minmax_element(carried.begin(), carried.end());
    CHECK_TRUE(*most - *least < *most / 10);
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
  CHECK_EQ(share.window_bytes(0, kSegment), ShareLimits().first_bytes / 4);
  share.Carried(7, 1000000, 5);  // not one of them
  share.Remove(2);
  share.Remove(3);
  CHECK_EQ(share.window_bytes(0, kSegment), ShareLimits().first_bytes / 2);
  CHECK_EQ(share.bytes_per_second(), 0.0);
}

TEST(a_burst_after_a_pause_is_not_a_rate) {
  FairShare share;
  share.Add(1);
  for (int64_t now = 0; now < 10000000; now += 100000) share.Carried(1, 100000, now);
  CHECK_EQ(share.bytes_per_second(), 0.0);
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

}  // namespace mercury
