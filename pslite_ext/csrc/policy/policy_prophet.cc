// prophet: during the backward pass, blocks of packets that just finish before a more urgent tensor
// is due, and that nothing interrupts for as long as they should take; otherwise as priority. So it
// is while it does not know the job's pattern or the link's bandwidth, and from the moment in which
// the most urgent tensor is there.
//
// What is overdue may come at any moment: until then, packets go one by one, the most urgent first
// and each when the link has carried the one before. (Else a gradient that is late by less than a
// packet takes would find a full window before it, and in each worker of other packets.)
// Credit is priority's, so that no orders of several workers can block each other; and the link is
// left idle for kHoldUsMax at most between two tensors, however wrong the predictions are.
#include <cmath>
#include <deque>
#include <set>

#include "base/check.h"
#include "policy/policy_packets.h"
#include "policy/prophet/bandwidth_monitor.h"
#include "policy/prophet/block_record.h"
#include "policy/prophet/prophet_blocks.h"

namespace mercury {
namespace {

// A block pays no startup: its first packet follows the one before on the link at once.
constexpr double kStartupUs = 0;
constexpr int64_t kHoldUsMax = 5000;

class ProphetPolicy : public PacketPolicy {
 public:
  explicit ProphetPolicy(const PolicyOptions& options)
      : PacketPolicy(options), profile_(options.profile) {}

  void Ready(const Portion& portion, int64_t now_us) override {
    PacketPolicy::Ready(portion, now_us);
    CanGo(portion.id);
  }

  void More(uint64_t portion, uint64_t slots, int64_t now_us) override {
    PacketPolicy::More(portion, slots, now_us);
    if (portions_.count(portion) != 0) CanGo(portion);
  }

  bool Next(int64_t now_us, uint64_t* portion) override {
    blocked_ = false;
    hold_until_us_ = kNever;
    if (by_urgency_.empty() || !Plans()) {
      block_.clear();
      record_.EndHold(now_us);
      return PacketPolicy::Next(now_us, portion);
    }
    if (Overdue(now_us)) EndBlock(now_us);
    if (block_.empty()) Assemble(now_us);
    if (block_.empty()) return false;
    record_.EndHold(now_us);
    const State& state = portions_.at(block_.front().portion);
    MERCURY_CHECK(state.ready != 0);
    if (!MaySend(state, now_us)) return false;
    *portion = block_.front().portion;
    return true;
  }

  // Nothing interrupts a block.
  bool NextOf(const May& may, int64_t now_us, uint64_t* portion) override {
    return !Plans() && PacketPolicy::NextOf(may, now_us, portion);
  }

  void Sent(uint64_t portion, uint64_t bytes, bool slot_done, int64_t now_us) override {
    const auto it = portions_.find(portion);
    if (it == portions_.end()) return;
    if (credit_.counted_bytes() == 0) monitor_.Begin(now_us);
    const std::pair<int64_t, uint64_t> place = Place(portion);
    PacketPolicy::Sent(portion, bytes, slot_done, now_us);
    const bool all = it->second.ready == 0;
    if (all) by_urgency_.erase(place);
    if (block_.empty() || block_.front().portion != portion) return;
    if (is_planned_) {
      if (!block_began_) record_.Began();
      block_began_ = true;
      record_.Sent(bytes);
    }
    uint64_t& left = block_.front().bytes;
    left -= std::min(bytes, left);
    if (!all && left != 0) return;
    block_.pop_front();
    if (block_.empty() && is_planned_) EndBlock(now_us);
  }

  void Returned(uint64_t portion, uint64_t bytes, int64_t now_us) override {
    PacketPolicy::Returned(portion, bytes, now_us);
    monitor_.Carried(bytes, credit_.counted_bytes() == 0, now_us);
  }

  void Forget(uint64_t portion) override {
    if (portions_.count(portion) != 0) by_urgency_.erase(Place(portion));
    block_.erase(std::remove_if(block_.begin(), block_.end(),
                                [=](const BlockItem& part) { return part.portion == portion; }),
                 block_.end());
    PacketPolicy::Forget(portion);
  }

  std::string TakeNotice() override { return monitor_.TakeNotice(); }

  int64_t WakeAt() const override { return std::min(PacketPolicy::WakeAt(), hold_until_us_); }

  BlockFigures blocks() const override { return record_.Figures(monitor_.bytes_per_second()); }

 private:
  struct BlockItem {
    uint64_t portion;
    uint64_t bytes;
  };

  // What is not planned is thought of again.
  void CanGo(uint64_t portion) {
    if (portions_.at(portion).ready != 0) by_urgency_.insert(Place(portion));
    gave_up_ = false;
    if (!is_planned_) block_.clear();
  }

  bool Plans() const { return profile_ != nullptr && profile_->in_backward() && monitor_.known(); }
  std::pair<int64_t, uint64_t> Place(uint64_t portion) const {
    return {-static_cast<int64_t>(portions_.at(portion).urgency), portion};
  }

  // A block that others hold up must not go on into the time of what is more urgent: workers whose
  // blocks end at different times would send different tensors, and wait for each other.
  bool Overdue(int64_t now_us) const {
    return is_planned_ && !block_.empty() &&
           static_cast<double>(now_us - block_started_us_) > predicted_us_;
  }

  void EndBlock(int64_t now_us) {
    double left_us = 0;
    for (const BlockItem& part : block_)
      left_us += monitor_.WireUs(static_cast<double>(part.bytes));
    if (block_began_) {
      record_.Ended(static_cast<double>(now_us - block_started_us_) + left_us - predicted_us_);
    }
    block_.clear();
  }

  void Assemble(int64_t now_us) {
    const uint64_t packet = packet_bytes();
    std::vector<BlockCandidate> candidates;
    std::vector<uint64_t> portions;
    double used_us = kStartupUs;
    for (const auto& [urgency, portion] : by_urgency_) {
      const State& state = portions_.at(portion);
      BlockCandidate c;
      c.unit_us = monitor_.WireUs(static_cast<double>(std::min(packet, state.bytes_ready())));
      c.units = std::max<uint64_t>((state.bytes_ready() + packet - 1) / packet, 1);
      c.room_us = profile_->RoomUs(state.urgency, now_us);
      candidates.push_back(c);
      portions.push_back(portion);
      used_us += static_cast<double>(c.units) * c.unit_us;
      if (used_us > c.room_us) break;  // closes the block
    }
    const std::vector<uint64_t> block = AssembleBlock(candidates, kStartupUs);
    is_planned_ = !block.empty();
    if (!is_planned_) return SendOneOrHold(now_us, candidates[0], portions[0], packet);
    block_started_us_ = now_us;
    block_began_ = false;
    predicted_us_ = kStartupUs;
    for (size_t i = 0; i < block.size(); ++i) {
      const uint64_t bytes = std::min(block[i] * packet, portions_.at(portions[i]).bytes_ready());
      block_.push_back({portions[i], bytes});
      predicted_us_ += static_cast<double>(block[i]) * candidates[i].unit_us;
    }
  }

  // Nothing fits. Until the more urgent tensor is due, nothing is sent; if it is late, one packet.
  void SendOneOrHold(int64_t now_us, const BlockCandidate& first, uint64_t portion,
                     uint64_t packet) {
    const int64_t held_until = record_.Hold(now_us) + kHoldUsMax;
    gave_up_ = gave_up_ || now_us >= held_until;
    const double wait_us =
        first.room_us > 0 ? first.room_us : static_cast<double>(next_packet_us_ - now_us);
    if (wait_us <= 0 || gave_up_) {
      block_.push_back({portion, packet});
      next_packet_us_ = now_us + std::llround(std::min(first.unit_us, 1e15));
      return;
    }
    hold_until_us_ =
        now_us + static_cast<int64_t>(std::min(wait_us, static_cast<double>(held_until - now_us)));
    hold_until_us_ = std::max(hold_until_us_, now_us + 1);
  }

  const std::shared_ptr<const ProphetProfile> profile_;
  BandwidthMonitor monitor_;
  std::set<std::pair<int64_t, uint64_t>> by_urgency_;  // portions with slots that can be sent
  std::deque<BlockItem> block_;                        // what is left of it
  bool is_planned_ = false;                            // by Algorithm 1, or one packet
  int64_t block_started_us_ = 0;
  bool block_began_ = false;  // something of it was sent
  double predicted_us_ = 0;
  bool gave_up_ = false;  // holding, until something becomes ready
  int64_t hold_until_us_ = kNever;
  int64_t next_packet_us_ = 0;  // when the link has carried one that went alone
  BlockRecord record_;
};

}  // namespace

std::unique_ptr<Policy> MakeProphetPolicy(const PolicyOptions& options) {
  return std::make_unique<ProphetPolicy>(options);
}

}  // namespace mercury
