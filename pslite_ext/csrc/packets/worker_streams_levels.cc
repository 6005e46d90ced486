// How a worker catches up with others (levels.h): their server says how far they have come.
#include <algorithm>
#include <utility>

#include "packets/worker_stream.h"

namespace mercury {

// It may come before this worker has begun the same.
void WorkerStreams::TakeBehind(int server, const Header& header) {
  Stream* tensor = servers_[static_cast<size_t>(server)]->tensors[header.tensor];
  ServerStream& part = tensor->parts[static_cast<size_t>(server)];
  part.front = header.offset;
  part.front_round = header.round;
  CatchUp(server, *tensor, &part);
}

void WorkerStreams::CatchUp(int server, const Stream& tensor, ServerStream* part) {
  if (tensor.op == nullptr || part->front_round != RoundAt(tensor, server) || part->picks) return;
  const Begun& begun = part->begun[0];
  const uint64_t slot = begun.at != 0 ? begun.mine : part->next;
  const uint64_t place = slot * part->share.of.slot_elements + begun.at;
  const uint64_t front = std::min(std::exchange(part->front, 0), part->share.Elements());
  if (front <= place) return;
  const Codec& codec = *CodedFor(tensor, server).codec;
  servers_[static_cast<size_t>(server)]->policy->Behind(part->portion, codec.bytes(front - place));
}

}  // namespace mercury
