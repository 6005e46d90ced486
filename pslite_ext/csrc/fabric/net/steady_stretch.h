// What came of a transfer without a pause, which shows how fast its way is. A node that is stopped
// for a while, or busy with something else, says nothing about that.
//
//   packets:    | | | | |               | | | | | | | |
//   stretches:  *-------*               *-------------*  the longest
//
// A pause is a packet that takes long, and many times as long as those before it do.
//
// Thread-safety: plain values; `now_us` is passed in.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mercury::fabric {

constexpr int64_t kPause_us = 100'000;
constexpr double kPauseTimes = 8;

struct SteadyStretch {
  size_t bytes = 0;
  int64_t first_us = 0;
  int64_t last_us = 0;
};

class SteadyStretches {
 public:
  // The first packet begins to come.
  void Begin(int64_t now_us) { now_.first_us = now_.last_us = now_us; }
  // A packet of so many bytes is there.
  void Came(size_t bytes, int64_t now_us) {
    if (Paused(bytes, now_us))
      now_ = {0, now_us, now_us};
    else
      now_.bytes += bytes;
    now_.last_us = now_us;
    if (now_.bytes >= longest_.bytes) longest_ = now_;
  }
  // That brought the most.
  const SteadyStretch& longest() const { return longest_; }

 private:
  bool Paused(size_t bytes, int64_t now_us) const {
    const int64_t took_us = now_us - now_.last_us;
    const auto so_far_us = static_cast<double>(now_.last_us - now_.first_us);
    const double usual_us =
        so_far_us * static_cast<double>(bytes) / static_cast<double>(now_.bytes);
    return now_.bytes > 0 && took_us > kPause_us &&
           static_cast<double>(took_us) > kPauseTimes * usual_us;
  }

  SteadyStretch now_;
  SteadyStretch longest_;
};

}  // namespace mercury::fabric
