#include "policy/policy_packets.h"

#include <algorithm>

#include "base/check.h"
#include "base/packet_alignment.h"

namespace mercury {
PacketPolicy::PacketPolicy(const PolicyOptions& options)
    : waiting_(options.levels_max),
      credit_(options.credit),
      follows_link_(options.credit.fixed_bytes == 0),
      by_priority_(Preempts(options.kind)),
      packet_bytes_max_(
          std::max(options.packet_bytes / kPacketAlignment * kPacketAlignment, kPacketAlignment)),
      adapt_packets_(options.adapt_packets),
      links_(options.links) {}

void PacketPolicy::Ready(const Portion& portion, int64_t /*now_us*/) {
  const int32_t urgency = WirePriority(portion.priority);
  most_urgent_ = std::max(most_urgent_, urgency);
  const uint64_t ready = portion.slots - portion.missing;
  const bool by_slots = portion.whole_slots && portion.slots != 0;
  const uint64_t least = by_slots ? 2 * portion.bytes / portion.slots : 0;
  portions_[portion.id] = {urgency, least, portion.slots, ready, portion.bytes};
  if (ready != 0) waiting_.Push(urgency, portion.id);
}

void PacketPolicy::More(uint64_t portion, uint64_t slots, int64_t /*now_us*/) {
  const auto it = portions_.find(portion);
  if (it == portions_.end() || slots == 0) return;
  State& state = it->second;
  if (state.ready == 0) waiting_.Push(state.urgency, portion);
  state.ready += slots;
  MERCURY_CHECK(state.ready <= state.slots_left);
}

bool PacketPolicy::MaySend(const State& portion, int64_t now_us) {
  // One packet under way could not keep a link busy.
  const uint64_t least = std::max(portion.least, follows_link_ ? 2 * packet_bytes() : 0);
  blocked_ = !credit_.MaySend(portion.urgency, least, now_us);
  return !blocked_;
}

bool PacketPolicy::Next(int64_t now_us, uint64_t* portion) {
  blocked_ = false;
  if (waiting_.empty()) return false;
  const uint64_t first = waiting_.Front();
  const State& state = portions_.at(first);
  MERCURY_CHECK(state.ready != 0);
  // What is behind goes in every other packet, until the most urgent tensor is there: then no other
  // will come in between, and nothing is won by catching up.
  const bool catches_up = gives_way_ && state.urgency != most_urgent_;
  if (catches_up && NextBehind(first, portion)) return true;
  if (!MaySend(state, now_us)) return NextBehind(first, portion);
  *portion = first;
  return true;
}

// What others wait for needs no credit: its sums come back at once.
bool PacketPolicy::NextBehind(uint64_t first, uint64_t* portion) {
  for (const uint64_t each : behind_) {
    if (each == first || portions_.at(each).ready == 0) continue;
    blocked_ = false;
    *portion = each;
    return true;
  }
  return false;
}

// No more than may be under way: who is further behind than that is slower than others.
void PacketPolicy::Behind(uint64_t portion, uint64_t bytes) {
  const auto it = portions_.find(portion);
  if (it == portions_.end() || bytes == 0) return;
  if (it->second.behind == 0) behind_.push_back(portion);
  it->second.behind = std::min(bytes, credit_.window_bytes());
}

bool PacketPolicy::NextOf(const May& may, int64_t now_us, uint64_t* portion) {
  UrgencyQueue<uint64_t>::Position at;
  if (!waiting_.Find(std::cref(may), &at)) return false;
  const uint64_t first = waiting_.At(at);
  if (!MaySend(portions_.at(first), now_us)) return false;
  *portion = first;
  return true;
}

void PacketPolicy::NotBehind(uint64_t portion) {
  behind_.erase(std::find(behind_.begin(), behind_.end(), portion));
}

void PacketPolicy::Sent(uint64_t portion, uint64_t bytes, bool slot_done, int64_t now_us) {
  const auto it = portions_.find(portion);
  if (it == portions_.end()) return;
  credit_.Sent(portion, it->second.urgency, bytes, now_us);
  it->second.bytes_left -= std::min(bytes, it->second.bytes_left);
  gives_way_ = it->second.behind == 0;
  if (gives_way_ && portion != last_portion_) {
    const auto last = portions_.find(last_portion_);
    if (last != portions_.end() && last->second.slots_left != 0) ++preemptions_;
    last_portion_ = portion;
  }
  it->second.behind -= std::min(bytes, it->second.behind);
  if (!gives_way_ && it->second.behind == 0) NotBehind(portion);
  MERCURY_CHECK(it->second.ready != 0);
  if (!slot_done) return;
  --it->second.slots_left;
  if (--it->second.ready != 0) return;
  UrgencyQueue<uint64_t>::Position at;
  const bool waits = waiting_.Find([portion](uint64_t other) { return other == portion; }, &at);
  MERCURY_CHECK(waits);
  waiting_.Erase(at);
}

void PacketPolicy::Returned(uint64_t portion, uint64_t bytes, int64_t now_us) {
  credit_.Returned(portion, bytes, now_us);
}

void PacketPolicy::Forget(uint64_t portion) {
  const auto it = portions_.find(portion);
  if (it == portions_.end()) return;
  if (it->second.ready != 0)
    waiting_.Remove([portion](uint64_t other) { return other == portion; });
  if (it->second.behind != 0) NotBehind(portion);
  portions_.erase(it);
  credit_.Forget(portion);
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
