// How far each worker has come with sending a tensor to a server, and which of them are behind.
//
// Workers send the same tensors, but are never quite level: when a more urgent one comes, one has
// sent more of the tensor before than the other. What only one has sent has used the server's way
// in and gives nothing to send back, and that time is lost for its way out; it is lost anew at each
// such turn, unless who is behind catches up. So each is told, once it has turned to another
// tensor, how far others have come with the one that it has left. If such a word is lost, no harm
// is done.
//
// Thread-safety: none; an aggregator owns it. Places are elements of the server's share of the
// tensor, in the order in which they are sent.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace mercury {

class Levels {
 public:
  explicit Levels(size_t workers) : of_(workers) {}

  // A packet of the worker's has come, with all before `place`. A round begins only when all have
  // sent all of the one before.
  void Came(size_t worker, uint8_t round, uint64_t place) {
    if (round != round_) {
      std::fill(of_.begin(), of_.end(), Level());
      front_ = 0;
      round_ = round;
    }
    of_[worker].place = std::max(of_[worker].place, place);
    front_ = std::max(front_, place);
  }

  // Up to where others have come, if the worker is behind and has not been told so; else 0.
  uint64_t Tell(size_t worker) {
    Level& its = of_[worker];
    if (its.place >= front_ || its.told >= front_) return 0;
    return its.told = front_;
  }

  uint8_t round() const { return round_; }

 private:
  struct Level {
    uint64_t place = 0, told = 0;
  };
  std::vector<Level> of_;
  uint64_t front_ = 0;  // of the one that has come furthest
  uint8_t round_ = 0;
};

}  // namespace mercury
