// Tells workers that are behind with a tensor which they have left for a more urgent one
// (levels.h).
#include <utility>

#include "packets/summed_tensor.h"

namespace mercury {
namespace {

constexpr size_t kHintsMax = 64;  // that wait to be sent, or anything else does; more are left out

}  // namespace

// What goes over several lanes goes by whole slots; a host's own workers share its memory; and a
// worker beside the server has something to send meanwhile.
bool Aggregator::LevelsWorkers(const AggregatorOptions& options) {
  return options.lanes == 1 && options.ranks.empty() && Preempts(options.policy) &&
         options.hosts.WorkersBeside(options.server, options.num_workers) == 0;
}

void Aggregator::Level(SummedTensor* tensor, int worker, const Receiving& link,
                       const Header& header) {
  if (!levels_workers_) return;
  const auto w = static_cast<size_t>(worker);
  const uint64_t place = link.mine * tensor->share.of.slot_elements + link.at + link.count;
  tensor->levels.Came(w, header.round, place);
  SummedTensor* left = std::exchange(peers_[w]->sends, tensor);
  if (left == nullptr || left == tensor || !left->failed.ok()) return;
  for (size_t v = 0; v < peers_.size(); ++v) {
    const Peer& peer = *peers_[v];
    if (peer.out || peer.sends == nullptr || peer.sends == left) continue;
    if (left->number_of[v] < 0 || peer.first.size() > kHintsMax) continue;
    const uint64_t front = left->levels.Tell(v);
    if (front == 0) continue;
    const auto number = static_cast<uint32_t>(left->number_of[v]);
    OutPacket behind = TextPacket(PacketKind::kBehind, number, front, "");
    behind.header.round = left->levels.round();
    Send(static_cast<int>(v), std::move(behind));
  }
}

}  // namespace mercury
