// How many rounds of each tensor there have been, told by a worker that is in to one that is let
// in, as lines: key, whether it is summed by rows, rounds (modulo 256).
#include <algorithm>
#include <sstream>

#include "packets/worker_stream.h"

namespace mercury {

std::string WorkerStreams::Rounds() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::map<std::pair<uint64_t, bool>, uint8_t> rounds = rounds_;
  for (const auto& [name, stream] : tensors_) rounds[name] = stream->round;
  std::ostringstream lines;
  for (const auto& [name, round] : rounds) {
    lines << name.first << ' ' << name.second << ' ' << static_cast<int>(round) << '\n';
  }
  return lines.str();
}

Status WorkerStreams::TakeRounds(const std::string& text) {
  std::map<std::pair<uint64_t, bool>, uint8_t> rounds;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    uint64_t key = 0;
    bool rows = false;
    int round = -1;
    if (!(words >> key >> rows >> round) || round < 0 || round > 255) {
      return Status::Corrupt("how many rounds there have been makes no sense: '" + line + "'");
    }
    rounds[{key, rows}] = static_cast<uint8_t>(round);
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  rounds_ = std::move(rounds);
  for (auto& [name, stream] : tensors_) {
    for (ServerStream& part : stream->parts) {  // of an earlier round, or of what it was given
      std::fill(part.kept.begin(), part.kept.end(), KeptSum());
    }
    const auto found = rounds_.find(name);
    if (found != rounds_.end()) stream->round = found->second;
  }
  return Status::Ok();
}

}  // namespace mercury
