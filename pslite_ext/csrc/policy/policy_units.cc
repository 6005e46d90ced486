// The policies that send unit by unit, as earlier systems do in user code: wfbp, p3,
// bytescheduler. They differ in the size of a unit, in the order, and in how much may be under way.
#include <algorithm>
#include <limits>
#include <unordered_map>

#include "base/check.h"
#include "policy/policy.h"
#include "policy/urgency_queue.h"

namespace mercury {
namespace {

constexpr uint64_t kNoPortion = ~uint64_t{0};

class UnitPolicy : public Policy {
 public:
  explicit UnitPolicy(const PolicyOptions& options)
      : by_priority_(options.kind != PolicyKind::kWfbp),
        packet_bytes_(options.packet_bytes),
        waiting_(options.levels_max) {
    switch (options.kind) {
      case PolicyKind::kP3:
        window_bytes_ = 1;  // nothing else under way
        break;
      case PolicyKind::kByteScheduler:
        window_bytes_ = options.window_bytes;
        if (window_bytes_ == 0) {
          window_bytes_ =
              4 * (options.unit_bytes != 0 ? options.unit_bytes : DefaultUnitBytes(options.kind));
        }
        break;
      default:
        window_bytes_ = std::numeric_limits<uint64_t>::max();
    }
  }

  void Ready(const Portion& portion, int64_t /*now_us*/) override {
    State& state = portions_[portion.id];
    state = {portion.priority, portion.slots, portion.unit_slots, portion.missing, 0};
    if (state.slots_left != 0 && state.missing == 0) Wait(portion.id, state);
  }

  // Units are cut from what is all there.
  void More(uint64_t portion, uint64_t slots, int64_t /*now_us*/) override {
    const auto it = portions_.find(portion);
    if (it == portions_.end() || slots == 0) return;
    MERCURY_CHECK(slots <= it->second.missing);
    it->second.missing -= slots;
    if (it->second.missing == 0) Wait(portion, it->second);
  }

  bool Next(int64_t /*now_us*/, uint64_t* portion) override {
    if (current_ == kNoPortion) {
      if (waiting_.empty() || under_way_ >= window_bytes_) return false;
      State& first = portions_.at(waiting_.Front());
      MERCURY_CHECK(first.slots_left != 0);
      current_ = waiting_.Front();
      current_slots_ = std::min(first.slots_left, first.unit_slots);
      first.slots_left -= current_slots_;
      if (first.slots_left == 0) waiting_.Pop();
    }
    *portion = current_;
    return true;
  }

  void Sent(uint64_t portion, uint64_t bytes, bool slot_done, int64_t /*now_us*/) override {
    const auto it = portions_.find(portion);
    if (it == portions_.end()) return;
    it->second.under_way += bytes;
    under_way_ += bytes;
    if (slot_done && portion == current_ && --current_slots_ == 0) current_ = kNoPortion;
  }

  void Returned(uint64_t /*portion*/, uint64_t /*bytes*/, int64_t /*now_us*/) override {}

  void Acknowledged(uint64_t portion, uint64_t bytes) override {
    const auto it = portions_.find(portion);
    if (it == portions_.end()) return;
    bytes = std::min(bytes, it->second.under_way);
    it->second.under_way -= bytes;
    under_way_ -= bytes;
  }

  void Forget(uint64_t portion) override {
    const auto it = portions_.find(portion);
    if (it == portions_.end()) return;
    under_way_ -= it->second.under_way;
    if (it->second.slots_left != 0 && it->second.missing == 0)
      waiting_.Remove([portion](uint64_t other) { return other == portion; });
    if (portion == current_) current_ = kNoPortion;
    portions_.erase(it);
  }

  uint64_t packet_bytes() const override { return packet_bytes_; }
  int32_t WirePriority(int32_t priority) const override { return by_priority_ ? priority : 0; }
  std::vector<std::pair<int32_t, size_t>> Depths() const override { return waiting_.Depths(); }

 private:
  struct State {
    int32_t priority = 0;
    uint64_t slots_left = 0;  // in units that have not begun
    uint64_t unit_slots = 1;
    uint64_t missing = 0;  // slots that are not ready
    uint64_t under_way = 0;
  };
  void Wait(uint64_t portion, const State& state) {
    waiting_.Push(WirePriority(state.priority), portion);
  }

  const bool by_priority_;
  const uint64_t packet_bytes_;
  uint64_t window_bytes_;
  UrgencyQueue<uint64_t> waiting_;
  std::unordered_map<uint64_t, State> portions_;
  uint64_t current_ = kNoPortion;  // the portion whose unit is being sent
  uint64_t current_slots_ = 0;
  uint64_t under_way_ = 0;
};

}  // namespace

std::unique_ptr<Policy> MakeUnitPolicy(const PolicyOptions& options) {
  return std::make_unique<UnitPolicy>(options);
}

}  // namespace mercury
