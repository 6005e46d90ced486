// A policy that sends packet by packet, within the link's credit: priority (the most urgent next,
// and in between what other workers have sent before this one), fifo (in order), and what prophet
// is when it has nothing to plan with.
//
// Thread-safety: none. Invariants: those of policy.h; a portion with slots that can be
// sent is in `waiting_`.
#pragma once

#include <algorithm>
#include <limits>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "policy/policy.h"
#include "policy/urgency_queue.h"

namespace mercury {

class PacketPolicy : public Policy {
 public:
  explicit PacketPolicy(const PolicyOptions& options);

  void Ready(const Portion& portion, int64_t now_us) override;
  void More(uint64_t portion, uint64_t slots, int64_t now_us) override;
  bool Next(int64_t now_us, uint64_t* portion) override;
  bool NextOf(const May& may, int64_t now_us, uint64_t* portion) override;
  void Sent(uint64_t portion, uint64_t bytes, bool slot_done, int64_t now_us) override;
  void Returned(uint64_t portion, uint64_t bytes, int64_t now_us) override;
  void Acknowledged(uint64_t /*portion*/, uint64_t /*bytes*/) override {}
  void Behind(uint64_t portion, uint64_t bytes) override;
  void Forget(uint64_t portion) override;

  void SetRoundTrip(int64_t us) override { credit_.SetRoundTrip(us); }
  int64_t WakeAt() const override { return blocked_ ? credit_.WakeAt() : kNever; }
  uint64_t packet_bytes() const override;
  int32_t WirePriority(int32_t priority) const override { return by_priority_ ? priority : 0; }
  uint64_t preemptions() const override { return preemptions_; }
  const Credit* credit() const override { return &credit_; }
  std::vector<std::pair<int32_t, size_t>> Depths() const override { return waiting_.Depths(); }

 protected:
  struct State {
    int32_t urgency = 0;
    uint64_t least = 0;  // may be under way
    uint64_t slots_left = 0;
    uint64_t ready = 0;  // of those
    uint64_t bytes_left = 0;
    uint64_t behind = 0;  // bytes that another worker has sent before

    uint64_t bytes_ready() const {
      return ready == slots_left ? bytes_left : bytes_left / slots_left * ready;
    }
  };
  // Whether a packet of it may go now; if not, the credit says when to look again.
  bool MaySend(const State& portion, int64_t now_us);

  std::unordered_map<uint64_t, State> portions_;
  UrgencyQueue<uint64_t> waiting_;
  Credit credit_;
  bool blocked_ = false;

 private:
  void NotBehind(uint64_t portion);
  bool NextBehind(uint64_t first, uint64_t* portion);

  const bool follows_link_;
  const bool by_priority_;
  const uint64_t packet_bytes_max_;
  const bool adapt_packets_;
  const int links_;
  int32_t most_urgent_ = std::numeric_limits<int32_t>::min();  // that there has been
  std::vector<uint64_t> behind_;                               // portions
  bool gives_way_ = false;  // the last packet was of none of them
  uint64_t last_portion_ = ~uint64_t{0};
  uint64_t preemptions_ = 0;
};

}  // namespace mercury
