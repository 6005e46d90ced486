#include "policy/policy_packets.h"

#include "base/packet_alignment.h"

namespace mercury {
PacketPolicy::PacketPolicy(const PolicyOptions& options)
    : waiting_(options.levels_max),
      credit_(options.credit),
      by_priority_(options.kind != PolicyKind::kFifo),
      packet_bytes_max_(
          std::max(options.packet_bytes / kPacketAlignment * kPacketAlignment, kPacketAlignment)),
      adapt_packets_(options.adapt_packets),
      links_(options.links) {}

void PacketPolicy::Ready(const Run& run, int64_t /*now_us*/) {
  runs_[run.id] = {WirePriority(run.priority), run.slots, run.bytes};
  if (run.slots != 0) waiting_.Push(WirePriority(run.priority), run.id);
}

bool PacketPolicy::MaySend(int32_t urgency, int64_t now_us) {
  blocked_ = !credit_.MaySend(urgency, now_us);
  return !blocked_;
}

bool PacketPolicy::Next(int64_t now_us, uint64_t* run) {
  blocked_ = false;
  if (waiting_.empty()) return false;
  const uint64_t first = waiting_.Front();
  if (!MaySend(waiting_.FrontPriority(), now_us)) return false;
  *run = first;
  return true;
}

void PacketPolicy::Sent(uint64_t run, uint64_t bytes, bool slot_done, int64_t now_us) {
  const auto it = runs_.find(run);
  if (it == runs_.end()) return;
  credit_.Sent(run, it->second.urgency, bytes, now_us);
  if (run != last_run_) {
    const auto last = runs_.find(last_run_);
    if (last != runs_.end() && last->second.slots_left != 0) ++preemptions_;
    last_run_ = run;
  }
  it->second.bytes_left -= std::min(bytes, it->second.bytes_left);
  if (!slot_done || --it->second.slots_left != 0) return;
  if (!waiting_.empty() && waiting_.Front() == run) {
    waiting_.Pop();
  } else {
    waiting_.Remove([run](uint64_t other) { return other == run; });
  }
}

void PacketPolicy::Returned(uint64_t run, uint64_t bytes, int64_t now_us) {
  credit_.Returned(run, bytes, now_us);
}

void PacketPolicy::Forget(uint64_t run) {
  const auto it = runs_.find(run);
  if (it == runs_.end()) return;
  if (it->second.slots_left != 0) waiting_.Remove([run](uint64_t other) { return other == run; });
  runs_.erase(it);
  credit_.Forget(run);
}

uint64_t PacketPolicy::packet_bytes() const {
  const double rate = credit_.bytes_per_second();
  if (!adapt_packets_ || rate == 0) return packet_bytes_max_;
  return PacketBytes(rate * links_, packet_bytes_max_);
}

std::unique_ptr<Policy> MakePacketPolicy(const PolicyOptions& options) {
  return std::make_unique<PacketPolicy>(options);
}

}  // namespace mercury
