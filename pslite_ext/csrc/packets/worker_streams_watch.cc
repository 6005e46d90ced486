// What a worker's streams tell of themselves, and whom they ask when something waits for long.
#include <utility>

#include "base/node_name.h"
#include "packets/worker_stream.h"

namespace mercury {

void WorkerStreams::LoadProfile() {
  if (options_.policy.profile_text.empty()) return;
  const Status status = profile_->Load(options_.policy.profile_text);
  if (!status.ok()) report_(ProfileRefused(status));
}

void WorkerStreams::NoteReady(const Operation& op, int64_t now_us) {
  const TensorTraits& d = op.tensor->traits;
  const uint64_t bytes = op.codec != nullptr ? op.codec->bytes(d.elements()) : d.bytes();
  profile_->Ready(d.key, bytes, op.priority, now_us);
  for (const std::string& notice : profile_->TakeNotices()) report_(notice);
  if (!notes_.Behind(profile_->figures())) return;
  BlockFigures blocks;
  for (const auto& server : servers_) blocks += server->policy->blocks();
  notes_.Tell(profile_->figures(), blocks);
}

std::string WorkerStreams::ProfileText() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (profile_ == nullptr || !profile_->known()) return {};
  return profile_->Text([this](uint64_t key) {
    const auto it = tensors_.find({key, false});
    const bool known =
        it != tensors_.end() && it->second != nullptr && it->second->shared != nullptr;
    return known ? it->second->shared->traits.name : std::string();
  });
}

std::optional<ProphetFigures> WorkerStreams::profile() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (profile_ == nullptr) return std::nullopt;
  return profile_->figures();
}

void WorkerStreams::Describe(int server, LinkFigures* figures) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Policy& policy = *servers_[static_cast<size_t>(server)]->policy;
  figures->preemptions = policy.preemptions();
  figures->depths = policy.Depths();
  if (const Credit* credit = policy.credit(); credit != nullptr) {
    figures->rate = credit->bytes_per_second();
    figures->round_trip_us = credit->round_trip_us();
    figures->window_bytes = credit->window_bytes();
    figures->under_way_bytes = credit->counted_bytes();
  }
  figures->packet_bytes = policy.packet_bytes();
  figures->blocks = policy.blocks();
}

void WorkerStreams::Tick(int64_t now_us) {
  const Turn turn(this);
  const int64_t pause_us = OwnPause_us(std::exchange(ticked_us_, now_us), now_us);
  for (auto& [start, tensor] : active_) {
    LeaveOut(pause_us, now_us, &tensor->moved_us, &tensor->ask_at_us);
  }
  for (size_t s = 0; s < servers_.size(); ++s) {
    const std::string notice = servers_[s]->policy->TakeNotice();
    if (!notice.empty()) report_(PeerName(static_cast<int>(s)) + ": " + notice);
  }
  // What has failed as an array has failed as rows, too, and the other way round: nothing more is
  // taken of it, so that nothing else would end it.
  std::vector<Stream*> failed;
  for (auto& [start, tensor] : active_) {
    if (!tensor->shared->failure().ok()) failed.push_back(tensor);
  }
  for (Stream* tensor : failed) {
    if (tensor->op != nullptr) GiveUp(tensor);
  }
  for (auto& [start, tensor] : active_) {
    if (now_us < tensor->ask_at_us) continue;
    tensor->ask_at_us = options_.stall.NextQuestion(tensor->since_us, tensor->moved_us, now_us);
    for (int s = 0; s < peers(); ++s) {
      const ServerStream& part = tensor->parts[static_cast<size_t>(s)];
      if (part.waiting == 0) continue;
      if (part.ready != part.share.count && !part.picks) {
        const bool for_host = SendsForHost(*tensor, s);
        const std::string missing =
            for_host ? options_.host_sums->Missing(tensor->shared->traits.key) : "";
        SayWhomItWaitsFor(*tensor, s, missing, now_us);
        break;
      }
      LinkState& link = LinkTo(s, 0);
      Declare(&link, *tensor, part);
      link.first.push_back(TextPacket(PacketKind::kAsk, part.number, 0, ""));
      break;  // one answer is enough
    }
  }
}

std::string WorkerStreams::Waiting(int64_t now_us) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::string lines;
  for (const auto& [start, tensor] : active_) {
    uint64_t slots = 0;
    for (const ServerStream& part : tensor->parts) slots += part.share.count;
    lines += "tensor '" + tensor->shared->traits.name + "': for " +
             std::to_string((now_us - tensor->since_us) / 1000000) + " s, " +
             std::to_string(slots - tensor->waiting) + " of " + std::to_string(slots) +
             " sums are in\n";
  }
  return lines;
}

size_t WorkerStreams::under_way() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return active_.size();
}

void WorkerStreams::TakeAnswer(int server, const LinkState& link, const Header& header,
                               int64_t now_us) {
  const Stream* tensor = servers_[static_cast<size_t>(server)]->tensors[header.tensor];
  if (tensor->op != nullptr) SayWhomItWaitsFor(*tensor, server, link.text, now_us);
}

// `missing`: one byte for each worker, 1: it has not sent it all.
void WorkerStreams::SayWhomItWaitsFor(const Stream& tensor, int peer, const std::string& missing,
                                      int64_t now_us) {
  std::string ranks;
  int first = -1;
  for (size_t w = 0; w < missing.size(); ++w) {
    if (missing[w] == 0) continue;
    if (first < 0) first = static_cast<int>(w);
    ranks += (ranks.empty() ? "" : ", ") + std::to_string(w);
  }
  const ServerStream& part = tensor.parts[static_cast<size_t>(peer)];
  const bool several = ranks.find(',') != std::string::npos;
  std::string why = (several ? "workers " : "worker ") + ranks +
                    (several ? " have not sent it all" : " has not sent it all");
  if (ranks.empty()) {
    why = part.next < part.share.count ? "this worker has not sent it all"
                                       : "its sum is on its way from " + PeerName(peer);
  }
  const std::string line = "tensor '" + tensor.shared->traits.name + "' has waited for " +
                           std::to_string((now_us - tensor.since_us) / 1000000) + " s: " + why;
  if (std::exchange(reported_, line) != line) report_(line);  // of pieces with one name, once
  if (first < 0 || !options_.stalled) return;
  // Of another host's workers, they themselves know best who it is; if they are there to say it.
  const Hosts& hosts = options_.hosts;
  const bool others = (hosts.Leads(first) || hosts.Follows(first)) &&
                      hosts.LeaderOf(first) != hosts.LeaderOf(options_.rank);
  const int64_t moved_us = tensor.moved_us + OwnPause_us(ticked_us_, now_us);
  if (options_.stall.Over(moved_us + (others ? options_.stall.end_us : 0), now_us)) {
    options_.stalled(first, line);
  }
}

}  // namespace mercury
