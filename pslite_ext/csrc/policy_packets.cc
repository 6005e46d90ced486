// The policies that send packet by packet: mercury (the most urgent next) and fifo (in order).
#include <algorithm>
#include <unordered_map>

#include "policy.h"
#include "urgency_queue.h"
#include "wire.h"

namespace mercury {
namespace {

class PacketPolicy : public Policy {
 public:
  explicit PacketPolicy(const PolicyOptions& options)
      : by_priority_(options.kind == PolicyKind::kMercury),
        packet_bytes_max_(
            std::max(options.packet_bytes / kPacketAlignment * kPacketAlignment, kPacketAlignment)),
        adapt_packets_(options.adapt_packets),
        links_(options.links),
        waiting_(options.levels_max),
        credit_(options.credit) {}

  void Ready(const Run& run, int64_t /*now_us*/) override {
    runs_[run.id] = {WirePriority(run.priority), run.slots};
    if (run.slots != 0) waiting_.Push(WirePriority(run.priority), run.id);
  }

  bool Next(int64_t now_us, uint64_t* run) override {
    blocked_ = false;
    if (waiting_.empty()) return false;
    const uint64_t first = waiting_.Front();
    blocked_ = !credit_.MaySend(waiting_.FrontPriority(), now_us);
    if (blocked_) return false;
    *run = first;
    return true;
  }

  void Sent(uint64_t run, uint64_t bytes, bool slot_done, int64_t now_us) override {
    const auto it = runs_.find(run);
    if (it == runs_.end()) return;
    credit_.Sent(run, it->second.urgency, bytes, now_us);
    if (run != last_run_) {
      const auto last = runs_.find(last_run_);
      if (last != runs_.end() && last->second.slots_left != 0) ++preemptions_;
      last_run_ = run;
    }
    if (!slot_done || --it->second.slots_left != 0) return;
    if (!waiting_.empty() && waiting_.Front() == run) {
      waiting_.Pop();
    } else {
      waiting_.Remove([run](uint64_t other) { return other == run; });
    }
  }

  void Returned(uint64_t run, uint64_t bytes, int64_t now_us) override {
    credit_.Returned(run, bytes, now_us);
  }
  void Acknowledged(uint64_t /*run*/, uint64_t /*bytes*/) override {}

  void Forget(uint64_t run) override {
    const auto it = runs_.find(run);
    if (it == runs_.end()) return;
    if (it->second.slots_left != 0) waiting_.Remove([run](uint64_t other) { return other == run; });
    runs_.erase(it);
    credit_.Forget(run);
  }

  void SetRoundTrip(int64_t us) override { credit_.SetRoundTrip(us); }
  int64_t WakeAt() const override { return blocked_ ? credit_.WakeAt() : kNever; }

  uint64_t packet_bytes() const override {
    const double rate = credit_.bytes_per_second();
    if (!adapt_packets_ || rate == 0) return packet_bytes_max_;
    return PacketBytes(rate * links_, packet_bytes_max_);
  }

  int32_t WirePriority(int32_t priority) const override { return by_priority_ ? priority : 0; }
  uint64_t preemptions() const override { return preemptions_; }
  const Credit* credit() const override { return &credit_; }
  std::vector<std::pair<int32_t, size_t>> Depths() const override { return waiting_.Depths(); }

 private:
  struct State {
    int32_t urgency = 0;
    uint64_t slots_left = 0;
  };
  const bool by_priority_;
  const uint64_t packet_bytes_max_;
  const bool adapt_packets_;
  const int links_;
  UrgencyQueue<uint64_t> waiting_;
  std::unordered_map<uint64_t, State> runs_;
  Credit credit_;
  bool blocked_ = false;
  uint64_t last_run_ = ~uint64_t{0};
  uint64_t preemptions_ = 0;
};

}  // namespace

std::unique_ptr<Policy> MakePacketPolicy(const PolicyOptions& options) {
  return std::make_unique<PacketPolicy>(options);
}

}  // namespace mercury
