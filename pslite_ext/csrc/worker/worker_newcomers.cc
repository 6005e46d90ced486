// A worker that comes while the job runs is told where the others stand: what they have agreed on,
// and how many rounds there have been. Until it is let in, it agrees to nothing and sums nothing.
//
//   manners NUMBER            lines of: key, manners so far, rows, codec's number + 1, parameter,
//                           use, if there is one
//   rounds                    as the transport has them
#include <sstream>

#include "worker/worker.h"

namespace mercury {
namespace {

constexpr char kRounds[] = "rounds\n";

}  // namespace

std::string Worker::Standing() {
  std::ostringstream lines;
  lines.precision(9);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::map<uint64_t, Gate::Agreed> all = agreed_;
    for (const auto& tensor : tensors_.All()) {
      const auto& gate = tensor->gate;
      if (gate != nullptr && gate->open()) all[gate->about().key] = gate->agreed();
    }
    for (const auto& [key, agreed] : all) {
      const Manner& last = agreed.last;
      lines << key << ' ' << agreed.manners << ' ' << last.rows << ' '
            << (last.codec != nullptr ? last.codec->number + 1 : 0) << ' ' << last.parameter << ' '
            << last.use << '\n';
    }
  }
  return lines.str() + kRounds + transport_->Rounds();
}

Status Worker::Enter(const std::string& standing) {
  std::map<uint64_t, Gate::Agreed> agreed;
  size_t at = 0;
  for (; standing.compare(at, sizeof(kRounds) - 1, kRounds) != 0;) {
    const size_t end = standing.find('\n', at);
    if (end == std::string::npos) return Status::Corrupt("where other workers stand: no rounds");
    std::istringstream words(standing.substr(at, end - at));
    at = end + 1;
    uint64_t key = 0;
    int codec = 0;
    Gate::Agreed its;
    if (!(words >> key >> its.manners >> its.last.rows >> codec >> its.last.parameter)) {
      return Status::Corrupt("where other workers stand makes no sense");
    }
    std::getline(words >> std::ws, its.last.use);
    if (codec != 0) its.last.codec = FindCodec(static_cast<uint8_t>(codec - 1));
    agreed[key] = its;
  }
  Status status = transport_->TakeRounds(standing.substr(at + sizeof(kRounds) - 1));
  if (!status.ok()) return status;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    agreed_ = std::move(agreed);
  }
  for (const auto& tensor : tensors_.All()) {
    if (tensor->gate != nullptr) OpenAsAgreed(tensor->gate.get());
  }
  outside_ = false;
  return Status::Ok();
}

// Of what others have agreed on; of a newcomer, it is not known yet what that is.
bool Worker::OpenAsAgreed(Gate* gate) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = agreed_.find(gate->about().key);
  if (found == agreed_.end() && !outside_) return false;
  gate->OpenAs(found != agreed_.end() ? found->second : Gate::Agreed());
  return true;
}

}  // namespace mercury
