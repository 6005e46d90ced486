// What Prophet notes of its blocks, over packets and on the classic path alike.
//
// Thread-safety: none; no clock, and `now_us` may jump.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace mercury {

// What prophet did on a link.
struct BlockFigures {
  uint64_t blocks = 0;
  uint64_t bytes = 0;             // in blocks
  uint64_t held_us = 0;           // nothing was sent, as nothing fitted
  int64_t transfer_error_us = 0;  // of blocks' times, on average lately
  double bytes_per_second = 0;    // what it counts with; 0: not known

  BlockFigures& operator+=(const BlockFigures& other) {
    blocks += other.blocks;
    bytes += other.bytes;
    held_us += other.held_us;
    transfer_error_us = std::max(transfer_error_us, other.transfer_error_us);
    bytes_per_second += other.bytes_per_second;
    return *this;
  }
};

class BlockRecord {
 public:
  void Began() { ++figures_.blocks; }
  void Sent(uint64_t bytes) { figures_.bytes += bytes; }
  // A planned block took so much more or less time than predicted.
  void Ended(double error_us) {
    transfer_error_us_ += kErrorMemory * (std::abs(error_us) - transfer_error_us_);
  }

  // Nothing is sent, as nothing fits: since when.
  int64_t Hold(int64_t now_us) {
    if (held_since_us_ < 0 || now_us < held_since_us_) held_since_us_ = now_us;
    return held_since_us_;
  }
  void EndHold(int64_t now_us) {
    if (held_since_us_ >= 0 && now_us > held_since_us_) {
      figures_.held_us += static_cast<uint64_t>(now_us - held_since_us_);
    }
    held_since_us_ = -1;
  }

  // `bytes_per_second`: what blocks are made for.
  BlockFigures Figures(double bytes_per_second) const {
    BlockFigures figures = figures_;
    figures.transfer_error_us = std::llround(transfer_error_us_);
    figures.bytes_per_second = bytes_per_second;
    return figures;
  }

 private:
  static constexpr double kErrorMemory = 0.125;  // what the newest block counts in the mean error

  BlockFigures figures_;
  double transfer_error_us_ = 0;
  int64_t held_since_us_ = -1;
};

}  // namespace mercury
