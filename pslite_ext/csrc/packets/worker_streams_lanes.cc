// Which of a worker's lanes has something to send, and which others are called for it.
#include "packets/worker_stream.h"

namespace mercury {

void WorkerStreams::OnFull(int number, int64_t now_us) {
  if (options_.lanes == 1) return;
  const int server = number / options_.lanes, lane = number % options_.lanes;
  const LaneTurn turn(&mutex_, &torn_);
  calls_.Full(server, lane);
  uint64_t more;
  Policy* policy = servers_[static_cast<size_t>(server)]->policy.get();
  if (failure_.ok() && policy->Next(now_us, &more)) calls_.Offer(server, lane);
}

// What is left of it may be slots that other lanes have begun: they are called, as this one may
// have been in their stead.
bool WorkerStreams::MaySend(const Stream& stream, int server, int lane) {
  if (stream.Has(server, lane)) return true;
  const std::vector<Begun>& begun = stream.parts[static_cast<size_t>(server)].begun;
  for (int other = 0; other < options_.lanes; ++other) {
    if (begun[static_cast<size_t>(other)].at != 0) calls_.OfferTo(server, other);
  }
  return false;
}

}  // namespace mercury
