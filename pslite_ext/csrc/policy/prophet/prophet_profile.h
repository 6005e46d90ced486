// Prophet's Training Job Profiler: when each gradient of an iteration becomes ready, and how large
// and urgent it is. Learnt from a few iterations, refined by all later ones, thrown away and learnt
// again when it no longer holds.
//
// An iteration begins with the first gradient and ends when one comes for the second time. Times
// are medians over the last iterations, so that single ones that were held up do not count.
//
// Thread-safety: none; no clock, and `now_us` may jump. Invariants: in_backward() only if known();
// what is due is never a gradient that is ready.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/status.h"
#include "policy/prophet/prefix_minimum.h"

namespace mercury {

struct ProfiledGradient {
  uint64_t key = 0;
  uint64_t bytes = 0;
  int32_t priority = 0;
  int64_t produced_us = 0;  // after the iteration's first
};

// What an iteration was like, for the live figures.
struct ProphetFigures {
  bool known = false;  // there is a profile that holds
  uint64_t iterations = 0;
  uint64_t profiles = 0;            // how often one was learnt or loaded
  int64_t production_error_us = 0;  // of the last iteration's gradients, the median
  uint64_t waits = 0;               // iterations of which the following is known, without pauses
  uint64_t wait_first_us = 0;       // all together: until the most urgent sum was in
  uint64_t wait_later_us = 0;       // and then, beyond the shortest forward pass seen
};

// Of a process's lanes, the one whose part of the most urgent tensor took longest knows what
// training waited for; a lane without such a part counted nothing.
bool WaitedLonger(const ProphetFigures& figures, const ProphetFigures& than);

// What to say of a profile that Load refused.
std::string ProfileRefused(const Status& status);

class ProphetProfile {
 public:
  // Learns from at most so many iterations; from fewer if they are alike.
  explicit ProphetProfile(int steps_max) : steps_max_(steps_max) {}

  // What Text() gave in an earlier run.
  Status Load(const std::string& text);
  // Lines `key bytes priority microseconds name`, the most urgent first, under a heading that gives
  // the shortest forward pass, too. Empty unless known().
  using NameOf = std::function<std::string(uint64_t key)>;
  std::string Text(const NameOf& name_of) const;

  void Ready(uint64_t key, uint64_t bytes, int32_t priority, int64_t now_us);
  // Its sum is in.
  void Done(uint64_t key, int64_t now_us);

  bool known() const { return !gradients_.empty(); }
  // The most urgent first.
  const std::vector<ProfiledGradient>& gradients() const { return gradients_; }
  // The backward pass is on: the most urgent gradient is still to come.
  bool in_backward() const { return known() && under_way_ && !spoiled_ && !is_ready_[0]; }
  // When the first of the more urgent gradients is due that are not ready; kNotDue: there is none.
  static constexpr int64_t kNotDue = PrefixMinimum::kNone;
  int64_t NextDue(int32_t priority) const;
  // How long that is from now; infinite if there is none.
  double RoomUs(int32_t priority, int64_t now_us) const;
  // The longest time in which none is due, from now to when the most urgent one is.
  int64_t LongestGapUs(int64_t now_us) const;

  const ProphetFigures& figures() const { return figures_; }
  // What the user should know, since the last call.
  std::vector<std::string> TakeNotices() { return std::exchange(notices_, {}); }

 private:
  void Begin(int64_t now_us);
  void CountWaits(int64_t now_us);
  void Finish();
  void Learn();
  void Compare();
  void Adopt();
  void Drop(const std::string& why);
  bool Alike() const;
  void Remember();
  void SetDues();

  const int steps_max_;
  std::vector<ProfiledGradient> gradients_;
  std::unordered_map<uint64_t, size_t> index_;  // in gradients_, by key
  // When each gradient appeared in the last iterations, by key.
  std::unordered_map<uint64_t, std::deque<int64_t>> produced_us_;
  std::unordered_map<uint64_t, ProfiledGradient> learning_;  // the set, while it is learnt
  int steps_ = 0;
  bool loaded_ = false;
  int strange_in_a_row_ = 0, late_in_a_row_ = 0;

  // The iteration that is under way.
  bool under_way_ = false;
  bool spoiled_ = false;  // by a clock that went back
  int64_t start_us_ = 0, last_us_ = 0;
  std::unordered_map<uint64_t, ProfiledGradient> ready_;
  std::vector<bool> is_ready_;                        // by index
  PrefixMinimum dues_;                                // of those that are not ready, by index
  std::vector<size_t> as_produced_;                   // indices, the first to appear first
  int64_t first_ready_us_ = -1, first_done_us_ = -1;  // the most urgent one's moments
  int64_t shortest_forward_us_ = -1;
  std::deque<int64_t> forwards_us_;  // the last iterations', with what they waited

  ProphetFigures figures_;
  std::vector<std::string> notices_;
};

}  // namespace mercury
