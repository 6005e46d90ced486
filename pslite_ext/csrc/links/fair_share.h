// What each link of a lane may have under way, so that all of them together fill the host's way in
// (or out), and hardly more.
//
// TCP looks for its share by filling the queue until something is dropped. With many links into one
// host each has a few segments there, is hit at random, and all of them progress unequally, while a
// sum waits for the slowest copy. So the rate is measured over all links, the best of what lately
// came without a pause (but not right after one: a way that has been idle lets a burst pass), and
// each link that is used gets an equal part of what that rate carries in
//
//     1.25 round trips + min(1 ms + 20 ms / links, 6 ms)
//
// The constant covers both ends' delays, and a queue that does not run dry when flows come
// unevenly. Of many links each has little time to spare: they are to stay level. A link that
// carries nothing for a while gives its part back.
//
// Windows are whole segments, of which there are few: where one link has eight and its neighbour
// seven, every sum waits for the neighbour. So a share between the two is now eight, now seven, as
// often as it takes for it to be the share on average.
//
// Where other lanes of the job share the host, a rate of one's own would not do: who has carried
// more would get the larger windows and carry more still. So while something comes beside one's
// own, the host's whole rate counts, and it is divided among the links of all these lanes.
//
// Thread-safety: none; no clock, `now_us` never goes back. Invariants: a window is within the
// limits; while no rate is known, it is an equal part of `first_bytes`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <unordered_map>
#include <utility>

namespace mercury {

struct ShareLimits {
  uint64_t first_bytes = 256 << 10;  // of all links, while no rate is known
  // With one, the sender would wait for a delayed acknowledgement; with two, a short segment beside
  // a full one would leave no room for the next full one.
  uint64_t segments_min = 3;
  uint64_t bytes_max = 64 << 20;
  int links_beside = 0;  // of the other lanes on this host, in one direction
  // Something else sees to it that links carry one after the other: each has the whole way.
  bool take_turns = false;
};

class FairShare {
 public:
  // What the host's way has carried in all, whoever it was for; 0: that is not known.
  using HostBytes = std::function<uint64_t()>;

  explicit FairShare(const ShareLimits& limits = {}, HostBytes host_bytes = nullptr)
      : limits_(limits), host_bytes_(std::move(host_bytes)) {}

  void Add(int link);
  void Remove(int link);
  // The link has carried so much since it was last said.
  void Carried(int link, uint64_t bytes, int64_t now_us);

  // From now on windows are rounded otherwise; every few round trips.
  void NextTurn();
  // For a link whose path takes so long, there and back, without queues, and whose segments are so
  // large. On average over the turns, half a segment more than its share.
  uint64_t window_bytes(int64_t round_trip_us, uint64_t segment_bytes) const;
  // What each link carries in `seconds`; no less than `least`, nor than two segments: what fills
  // none is held back while more is to come, and would never make room for that.
  uint64_t carries_bytes(double seconds, uint64_t least, uint64_t segment_bytes) const;
  double bytes_per_second() const { return rate_; }  // of all that share it; 0: not known
  int links() const;                                 // that share it

 private:
  struct Stretch {
    int64_t end_us;
    double rate;
  };
  void Measure(uint64_t bytes, int64_t now_us);
  void CountUsed(int64_t now_us);
  void Begin(int64_t now_us, uint64_t host_bytes);
  double OfTheJob() const;

  const ShareLimits limits_;
  const HostBytes host_bytes_;
  std::unordered_map<int, int64_t> used_at_us_;
  int used_ = 0;
  int64_t count_at_us_ = 0;  // when links may have fallen idle
  double rate_ = 0;
  std::deque<Stretch> stretches_;
  // The stretch under way.
  int64_t start_us_ = -1, last_us_ = 0;
  uint64_t bytes_ = 0, host_start_ = 0;
  size_t stretch_ = 0;            // since the last pause
  int64_t shared_until_us_ = -1;  // something came beside ours
  bool shared_ = false;
  double turn_ = 0;  // of a segment
};

}  // namespace mercury
