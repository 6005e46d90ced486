#include "control/link_watch.h"

#include <algorithm>
#include <deque>
#include <vector>

#include "harness.h"

using namespace mercury;  // NOLINT: a test

namespace {

constexpr int64_t kInterval = 1000, kTimeout = 10000, kTickMs = 500;
constexpr int kPeer = 8;

// One way of a link, as TCP has it: in order, `rate` bytes a millisecond, then `delay_ms` more. The
// other end's system takes what has arrived.
class Way {
 public:
  Way(int64_t rate, int64_t delay_ms) : rate_(rate), delay_ms_(delay_ms) {}
  void Send(uint64_t number, int64_t bytes, int64_t now) {
    free_ms_ = std::max(free_ms_, now) + bytes / rate_;
    under_way_.push_back({number, bytes, free_ms_});
  }
  // What arrives by `now`; nothing any more once it is cut.
  std::vector<uint64_t> Arrived(int64_t now) {
    std::vector<uint64_t> numbers;
    while (!cut && !under_way_.empty() && under_way_.front().sent_ms + delay_ms_ <= now) {
      taken_ += under_way_.front().bytes;
      numbers.push_back(under_way_.front().number);
      under_way_.pop_front();
    }
    return numbers;
  }
  // Also of the message that is on its way.
  int64_t Taken(int64_t now) const {
    if (under_way_.empty() || cut) return taken_;
    const auto& next = under_way_.front();
    const int64_t left = (next.sent_ms + delay_ms_ - now) * rate_;
    return taken_ + std::clamp<int64_t>(next.bytes - left, 0, next.bytes);
  }
  bool cut = false;

 private:
  struct Item {
    uint64_t number;
    int64_t bytes, sent_ms;
  };
  const int64_t rate_, delay_ms_;
  int64_t free_ms_ = 0, taken_ = 0;
  std::deque<Item> under_way_;
};

struct End {
  End() : watch(kInterval, kTimeout) {}
  LinkWatch watch;
  uint64_t sequence = 0, received = 0;
  bool gap = false;
  int64_t silent_at = -1;
  int questions = 0, acknowledgements = 0;
};

// Two nodes: messages one way and acknowledgements back for each of the two.
class Pair {
 public:
  Pair(int64_t rate, int64_t delay_ms)
      : ways_{{rate, delay_ms}, {rate, delay_ms}}, back_{{rate, delay_ms}, {rate, delay_ms}} {}
  void Send(int from, int64_t bytes) {
    End& end = ends[from];
    end.watch.Sent(kPeer, ++end.sequence, now);
    ways_[from].Send(end.sequence, bytes, now);
  }
  // One that leaves and does not arrive: a connection was reset under it.
  void SendAndLose(int from) {
    End& end = ends[from];
    end.watch.Sent(kPeer, ++end.sequence, now);
  }
  void Cut(int from) {
    ways_[from].cut = true;
    back_[1 - from].cut = true;  // the same connection
  }
  void Run(int64_t ms) {
    for (const int64_t until = now + ms; now < until; now += kTickMs) Tick();
  }
  bool quiet() const { return ends[0].watch.Waiting().empty() && ends[1].watch.Waiting().empty(); }
  void CheckAlive() const {
    for (const End& end : ends) {
      CHECK_TRUE(!end.gap);
      CHECK_EQ(end.silent_at, -1);
    }
  }

  End ends[2];
  int64_t now = 1000000;

 private:
  void Tick() {
    for (int i = 0; i < 2; ++i) {
      End& end = ends[i];
      for (const uint64_t number : ways_[1 - i].Arrived(now)) {
        end.gap = end.gap || number != end.received + 1;
        end.received = number;
        end.watch.Received(kPeer, number);
      }
      for (const uint64_t number : back_[1 - i].Arrived(now)) {
        end.watch.Acknowledged(kPeer, number, now);
      }
      end.watch.Moved(kPeer, 1, ways_[i].Taken(now), now);
    }
    for (int i = 0; i < 2; ++i) {
      End& end = ends[i];
      const LinkWatch::Due due = end.watch.Tick(now);
      for (const int peer : due.acknowledge) {
        back_[i].Send(end.watch.received(peer), 64, now);
        ++end.acknowledgements;
      }
      for (size_t n = 0; n < due.ask.size(); ++n) {
        ways_[i].Send(++end.sequence, 66, now);
        ++end.questions;
      }
      if (!due.silent.empty()) {
        CHECK_EQ(end.silent_at, -1);  // once
        end.silent_at = now;
      }
    }
  }

  Way ways_[2];
  Way back_[2];
};

}  // namespace

TEST(a_quiet_link_costs_nothing) {
  Pair pair(1000, 1);
  pair.Run(60000);
  pair.Send(0, 1000);
  pair.Run(3000);
  CHECK_TRUE(pair.quiet());
  const int before = pair.ends[0].questions + pair.ends[1].acknowledgements;
  pair.Run(3600000);
  CHECK_EQ(pair.ends[0].questions + pair.ends[1].acknowledgements, before);
  CHECK_EQ(pair.ends[1].questions + pair.ends[0].acknowledgements, 0);
  pair.CheckAlive();
}

TEST(a_busy_link_is_acknowledged_once_a_tick_and_asks_nothing) {
  Pair pair(100000, 1);
  for (int i = 0; i < 200; ++i) {
    for (int n = 0; n < 50; ++n) pair.Send(n % 2, 1000);
    pair.Run(kTickMs);
  }
  for (const End& end : pair.ends) {
    CHECK_EQ(end.questions, 0);
    CHECK_TRUE(end.acknowledgements <= 201);
  }
  pair.CheckAlive();
}

TEST(a_last_message_that_is_lost_leaves_a_gap) {
  Pair pair(1000, 1);
  pair.Send(0, 100);
  pair.Run(5000);
  pair.SendAndLose(0);
  pair.Run(2 * kInterval + kTickMs);
  CHECK_TRUE(pair.ends[1].gap);
}

TEST(a_cut_link_is_silent_after_the_timeout) {
  for (const bool waits_before : {false, true}) {
    Pair pair(1000, 1);
    pair.Send(0, 100);
    pair.Run(5000);
    if (waits_before) pair.Send(0, 5000000);  // under way when it is cut
    pair.Run(1000);
    pair.Cut(0);
    const int64_t cut_at = pair.now;
    pair.Send(0, 100);
    pair.Run(60000);
    CHECK_TRUE(pair.ends[0].silent_at >= cut_at + kTimeout - kInterval);
    CHECK_TRUE(pair.ends[0].silent_at <= cut_at + kTimeout + kInterval);
  }
}

// It is the connection that takes messages that matters, not the other one.
TEST(a_connection_that_cannot_be_made_again_is_given_up_sooner) {
  LinkWatch watch(kInterval, kTimeout);
  watch.Connected(kPeer, false, 0);
  CHECK_TRUE(watch.Tick(kTimeout).cut.empty());  // nothing waits for it
  int64_t now = kTimeout;
  watch.Connected(kPeer, true, now);
  watch.Sent(kPeer, 1, now);
  for (const int64_t down_for : {kTimeout / 2 - kTickMs, kTimeout / 2}) {
    watch.Connected(kPeer, true, now);
    LinkWatch::Due due;
    for (const int64_t end = now + down_for; now <= end; now += kTickMs) {
      CHECK_TRUE(due.cut.empty());
      watch.Connected(kPeer, false, now);
      due = watch.Tick(now);
      CHECK_TRUE(due.silent.empty());
    }
    CHECK_EQ(due.cut.size(), down_for == kTimeout / 2 ? 1U : 0U);
  }
  CHECK_TRUE(watch.broken(kPeer));
  CHECK_TRUE(watch.Tick(now + kTimeout).cut.empty());  // once
}

TEST(what_arrives_from_a_peer_does_not_hide_that_nothing_reaches_it) {
  Pair pair(1000, 1);
  pair.Run(5000);
  pair.Cut(0);
  const int64_t cut_at = pair.now;
  for (int i = 0; i < 30; ++i) {
    pair.Send(0, 100);
    pair.Send(1, 100);
    pair.Run(1000);
  }
  CHECK_TRUE(pair.ends[0].silent_at >= 0);
  CHECK_TRUE(pair.ends[0].silent_at <= cut_at + kTimeout + kInterval);
  CHECK_EQ(pair.ends[1].silent_at, -1);
}

// A box on the way takes all that is sent, and delivers nothing: questions go on and on.
TEST(a_box_that_swallows_is_silent) {
  LinkWatch watch(kInterval, kTimeout);
  int64_t now = 5000, taken = 0, silent_at = -1;
  const int64_t sent_at = now;
  watch.Moved(kPeer, 1, taken, now);
  watch.Sent(kPeer, 1, now);
  taken += 3000000;
  for (; now < 60000; now += kTickMs) {
    watch.Moved(kPeer, 1, taken, now);
    const LinkWatch::Due due = watch.Tick(now);
    taken += static_cast<int64_t>(due.ask.size()) * LinkWatch::kQuestionBytesMax;
    if (!due.silent.empty()) silent_at = now;
  }
  CHECK_TRUE(silent_at >= sent_at + kTimeout);
  CHECK_TRUE(silent_at <= sent_at + kTimeout + kInterval);
  CHECK_TRUE(watch.broken(kPeer));
}

TEST(another_connection_is_counted_anew) {
  LinkWatch watch(kInterval, kTimeout);
  watch.Sent(kPeer, 1, 0);
  watch.Moved(kPeer, 1, 1000000, 0);
  int64_t taken = 0;
  for (int64_t now = 0; now < 100000; now += kTickMs) {
    watch.Moved(kPeer, 2, taken += 1000, now);  // far less than of the first, but it moves
    CHECK_TRUE(watch.Tick(now).silent.empty());
  }
}

TEST(who_has_left_is_not_missed) {
  Pair pair(1000, 1);
  pair.Run(1000);
  pair.Cut(0);
  pair.Send(0, 100);
  pair.Run(2000);
  CHECK_FALSE(pair.ends[0].watch.gone(kPeer));
  pair.ends[0].watch.Forget(kPeer);
  CHECK_TRUE(pair.ends[0].watch.gone(kPeer));
  pair.Send(0, 100);
  pair.Run(60000);
  CHECK_EQ(pair.ends[0].silent_at, -1);
}

TEST(a_process_that_did_not_run_blames_no_link) {
  LinkWatch watch(kInterval, kTimeout);
  watch.Tick(0);
  watch.Sent(kPeer, 1, 100);
  watch.Tick(500);
  CHECK_TRUE(watch.Tick(3600000).silent.empty());
  CHECK_TRUE(watch.Tick(3605000).silent.empty());
  CHECK_EQ(watch.Tick(3610000).silent.size(), 1U);  // but silence afterwards counts
}

// 64 MB pieces over links down to 1 Mbit/s, in both directions, with delays up to two seconds.
TEST(no_false_alarm_on_slow_links_that_move) {
  mercury::testing::Random random;
  for (int history = 0; history < 100; ++history) {
    Pair pair(random.Between(125, 20000), random.Between(0, 2000));
    for (int step = 0; step < 60; ++step) {
      for (int from = 0; from < 2; ++from) {
        if (random.OneIn(3)) pair.Send(from, random.Between(1, 64 << 20));
        for (uint64_t n = random.Below(20); n != 0; --n) pair.Send(from, random.Between(1, 4000));
      }
      pair.Run(random.Between(0, 20000));
      pair.CheckAlive();
    }
    for (int more = 0; more < 1000 && !pair.quiet(); ++more) pair.Run(60000);
    CHECK_TRUE(pair.quiet());
    pair.CheckAlive();
  }
}

// Whatever was going on: a loss or a cut is noticed, by the one end or by the other.
TEST(every_loss_is_noticed) {
  mercury::testing::Random random;
  for (int history = 0; history < 1000; ++history) {
    Pair pair(random.Between(1000, 100000), random.Between(0, 200));
    for (uint64_t n = random.Below(30); n != 0; --n) {
      pair.Send(static_cast<int>(random.Below(2)), random.Between(1, 100000));
      if (random.OneIn(4)) pair.Run(random.Between(0, 5000));
    }
    pair.CheckAlive();
    const int from = static_cast<int>(random.Below(2));
    const bool loses = random.OneIn(2);
    if (loses) {
      pair.SendAndLose(from);
    } else {
      pair.Cut(from);
      pair.Send(from, random.Between(1, 100000));
    }
    pair.Run(kTimeout + 30 * kInterval);
    CHECK_EQ(pair.ends[1 - from].gap, loses);
    CHECK_EQ(pair.ends[from].silent_at >= 0, !loses);
  }
}
