// Which worker sums wait for: who is slow, by its copies, whatever the reason.
//
//   slot:   others are in ....waits.... the last copy is in        the next sum
//   share:  all slots' waits for this worker / the time between all slots' sums
//
// It is worked out by windows. A worker is slow if it is waited for longer than kSlowPermille in
// kWindows windows one after another, and no longer if it is less than kFinePermille in one.
//
// Thread-safety: none, one owner; `now_us` is passed in. Invariants: of each worker, slow and fine
// are said by turns; of a job of one worker, nothing is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace mercury {

class Awaited {
 public:
  static constexpr int64_t kWindowUs = 30'000'000;
  static constexpr uint64_t kLeast = 100;  // sums of a window that say something
  static constexpr int kWindows = 2;
  static constexpr int kSlowPermille = 200, kFinePermille = 50;

  // `says`: how many thousandths of a window sums waited for the worker; 0: it is fine again.
  using Says = std::function<void(int worker, int permille)>;
  Awaited(int workers, Says says);

  // The last copy of a sum is in, this worker's. All others were at `others_us`; the sum before
  // was made at `before_us` (0: there was none).
  void Came(int worker, int64_t others_us, int64_t before_us, int64_t now_us);
  // Of the last whole window.
  int permille(int worker) const { return workers_[static_cast<size_t>(worker)].permille; }

 private:
  struct Record {
    int64_t waited_us = 0;  // for it, in this window
    int permille = 0;       // of the last one
    int slow_windows = 0;   // one after another
    bool slow = false;      // and that was said
  };
  void EndWindow();

  const Says says_;
  std::vector<Record> workers_;
  int64_t began_us_ = 0;
  int64_t took_us_ = 0;  // all sums of this window together, from one to the next
  uint64_t sums_ = 0;
};

}  // namespace mercury
