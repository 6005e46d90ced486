// One direction of a simulated link: real bytes of packets, in random pieces, at a rate, after a
// delay, out of a queue that is bounded.
//
// Thread-safety: none. Time is a number. Ownership: what is under way keeps itself.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <string>
#include <utility>

#include "base/crc32c.h"
#include "harness.h"
#include "links/endpoint.h"
#include "links/packet_reader.h"

namespace mercury::testing {

struct LinkShape {
  double bytes_per_us = 100;
  int64_t delay_us = 100;
  size_t queue_bytes = 64 << 10;  // in the sender's kernel, and on the way
};

inline LinkShape RandomShape(Random* random) {
  LinkShape shape;
  shape.bytes_per_us = static_cast<double>(random->Between(1, random->OneIn(2) ? 20 : 400));
  shape.delay_us = random->OneIn(4) ? 0 : random->Between(1, random->OneIn(4) ? 20000 : 500);
  shape.queue_bytes = static_cast<size_t>(random->Between(1, random->OneIn(3) ? 2000 : 200000));
  return shape;
}

// One direction of one link.
class Pipe : private PacketSink {
 public:
  struct End {
    Endpoint* endpoint;
    int peer;  // how this end calls the other one
  };
  Pipe(End from, End to, const LinkShape& shape, size_t packet_bytes_max, bool checksum,
       Random* random)
      : from_(from),
        to_(to),
        shape_(shape),
        checksum_(checksum),
        random_(random),
        reader_(packet_bytes_max, checksum, this) {}

  void Step(int64_t now_us, int64_t elapsed_us) {
    now_us_ = now_us;
    if (!status_.ok() || cut_ || held_) return;
    allowance_ += shape_.bytes_per_us * static_cast<double>(elapsed_us);
    const auto moved = std::min(queued_, static_cast<size_t>(allowance_));
    allowance_ = moved == queued_ ? 0 : allowance_ - static_cast<double>(moved);
    if (moved != 0) flying_.emplace_back(now_us + shape_.delay_us, moved);
    queued_ -= moved;
    Deliver();
    if (status_.ok()) Fill();
  }
  // When the next step makes a difference.
  int64_t NextAt() const {
    if (cut_ || held_ || !status_.ok()) return kNever;
    if (queued_ != 0) return now_us_;
    return flying_.empty() ? kNever : flying_.front().first;
  }
  // What the receiving end said of what it was sent.
  const Status& status() const { return status_; }
  void Cut() { cut_ = true; }
  bool cut() const { return cut_; }
  void Hold(bool held) { held_ = held; }
  uint64_t bytes() const { return bytes_; }
  size_t packets() const { return packets_; }

 private:
  void Fill() {
    while (queued_ < shape_.queue_bytes) {
      if (sent_ == total_ && !Begin()) return;
      // As writev does, from the memory itself.
      const struct {
        const char* data;
        size_t bytes;
      } pieces[] = {{reinterpret_cast<const char*>(head_.data()), head_.size()},
                    {out_.payload, out_.header.length},
                    {tail_, checksum_ ? kChecksumBytes : 0}};
      size_t room = shape_.queue_bytes - queued_;
      size_t begin = 0;
      for (const auto& piece : pieces) {
        const size_t at = sent_ - std::min(sent_, begin);
        const size_t n = at < piece.bytes ? std::min(room, piece.bytes - at) : 0;
        if (n != 0) wire_.append(piece.data + at, n);
        begin += piece.bytes;
        sent_ += n;
        room -= n;
        queued_ += n;
      }
      if (sent_ == total_) out_.keep.reset();
    }
  }
  bool Begin() {
    if (!from_.endpoint->Next(from_.peer, now_us_, &out_)) return false;
    head_ = Encode(out_.header);
    const uint32_t crc = PacketCrc(Crc32c(0, out_.payload, out_.header.length), head_);
    for (size_t i = 0; i < kChecksumBytes; ++i) tail_[i] = static_cast<char>(crc >> (8 * i));
    total_ = head_.size() + out_.header.length + (checksum_ ? kChecksumBytes : 0);
    sent_ = 0;
    ++packets_;
    return true;
  }
  void Deliver() {
    size_t there = 0;
    while (!flying_.empty() && flying_.front().first <= now_us_) {
      there += flying_.front().second;
      flying_.pop_front();
    }
    while (there != 0 && status_.ok()) {
      size_t piece = std::min<size_t>(there, random_->Below(random_->OneIn(2) ? 100 : 20000) + 1);
      there -= piece;
      bytes_ += piece;
      while (piece != 0 && status_.ok()) {
        iovec targets[2];
        const int count = reader_.Targets(targets);
        size_t read = 0;
        for (int i = 0; i < count; ++i) {
          const size_t n = std::min(piece - read, targets[i].iov_len);
          std::memcpy(targets[i].iov_base, wire_.data() + taken_, n);
          taken_ += n;
          read += n;
        }
        piece -= read;
        status_ = reader_.Advance(read);
      }
    }
    if (taken_ > 1 << 20 || taken_ == wire_.size()) {
      wire_.erase(0, taken_);
      taken_ = 0;
    }
  }
  Status OnHeader(const Header& header, char** target) override {
    return to_.endpoint->OnHeader(to_.peer, header, now_us_, target);
  }
  Status OnPacket(const Header& header) override {
    return to_.endpoint->OnPacket(to_.peer, header, now_us_);
  }

  const End from_, to_;
  const LinkShape shape_;
  const bool checksum_;
  Random* const random_;
  PacketReader reader_;
  Status status_;
  bool cut_ = false, held_ = false;
  int64_t now_us_ = 0;
  uint64_t bytes_ = 0;
  size_t packets_ = 0;
  // The packet that is being sent.
  OutPacket out_;
  HeaderBytes head_{};
  char tail_[kChecksumBytes] = {};
  size_t sent_ = 0, total_ = 0;
  // Under way: bytes that were sent and not read, of which the last still queue.
  std::string wire_;
  size_t taken_ = 0, queued_ = 0;
  double allowance_ = 0;
  std::deque<std::pair<int64_t, size_t>> flying_;  // when they arrive, how many
};

}  // namespace mercury::testing
