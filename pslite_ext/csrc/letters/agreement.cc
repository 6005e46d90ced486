#include "letters/agreement.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "base/node_name.h"

namespace mercury {
namespace {

using Keys = std::map<std::string, std::string>;  // of a model, with their names

Keys KeysOf(const std::string& text) {
  Keys keys;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const size_t tab = std::min(text.find('\t', at), end);
    keys.emplace(text.substr(at, tab - at),
                 tab == end ? std::string() : text.substr(tab + 1, end - tab - 1));
    at = end + 1;
  }
  return keys;
}

// What `worker` has and `other` has not; empty if there is nothing.
std::string More(int worker, const Keys& keys, int other, const Keys& others) {
  std::string first;
  size_t count = 0;
  for (const auto& [key, name] : keys) {
    if (others.count(key) != 0) continue;
    if (count++ == 0) first.append("key ").append(key).append(" ('").append(name).append("')");
  }
  if (count == 0) return {};
  const std::string rest = count == 1 ? "" : " and " + std::to_string(count - 1) + " more";
  return NodeName(Role::kWorker, worker) + " has " + first + rest + ", which " +
         NodeName(Role::kWorker, other) + " does not have";
}

Status Compare(const Claim& ours, int us, const Claim& theirs, int them) {
  if (ours.of == theirs.of && ours.text == theirs.text) return Status::Ok();
  if (ours.of == Claim::Kind::kTensor) {
    return Status::InvalidArgument(NodeName(Role::kWorker, us) + " has " + ours.text + ", " +
                                   NodeName(Role::kWorker, them) + " has " + theirs.text +
                                   ": all workers must use the same shape and type");
  }
  if (ours.of == Claim::Kind::kSums) {
    return Status::InvalidArgument(NodeName(Role::kWorker, us) + " pushes " + ours.text + ", " +
                                   NodeName(Role::kWorker, them) + " pushes " + theirs.text +
                                   ": all workers must push the same kind, compressed alike, "
                                   "and have the same optimizer");
  }
  if (ours.of == Claim::Kind::kSteps) {
    return Status::InvalidArgument(NodeName(Role::kWorker, us) + " has " + ours.text + "; " +
                                   NodeName(Role::kWorker, them) + " has " + theirs.text +
                                   ": all workers' optimizers must be told the same at each step");
  }
  const Keys our_keys = KeysOf(ours.text), their_keys = KeysOf(theirs.text);
  std::string what = More(us, our_keys, them, their_keys);
  if (what.empty()) what = More(them, their_keys, us, our_keys);
  // Names may differ, for gluon numbers them by what each process has made before.
  if (what.empty()) return Status::Ok();
  return Status::InvalidArgument(what + ": all workers must train the same model");
}

}  // namespace

void Agreement::Hear(int worker, const Claim& claim, uint64_t ticket,
                     std::vector<Verdict>* verdicts) {
  if (worker < 0 || static_cast<size_t>(worker) >= departed_.size()) {
    return verdicts->push_back({ticket, Status::Corrupt("a claim of nobody's")});
  }
  if (released_.count(claim.subject) != 0) return verdicts->push_back({ticket, Status::Ok()});
  if (subjects_.size() >= kSubjectsMax && subjects_.count(claim.subject) == 0) {
    return verdicts->push_back(
        {ticket, Status::Exhausted("more than " + std::to_string(kSubjectsMax) + " tensors")});
  }
  const auto [it, fresh] = subjects_.try_emplace(claim.subject);
  ClaimState& subject = it->second;
  if (fresh) {
    subject.claim = claim;
    subject.first_worker = worker;
    subject.heard.resize(departed_.size());
  }
  if (!subject.refused.ok()) return verdicts->push_back({ticket, subject.refused});
  subject.heard[static_cast<size_t>(worker)] = true;
  subject.waiting.push_back(ticket);
  Status why = Compare(subject.claim, subject.first_worker, claim, worker);
  if (why.ok()) why = WaitsForDeparted(subject);
  if (!why.ok()) return Refuse(&subject, std::move(why), verdicts);
  if (!Silent(subject).empty()) return;
  Agree(&subject, verdicts);
  if (IsForOnce(subject)) subjects_.erase(it);
}

std::vector<int> Agreement::Silent(const ClaimState& subject) const {
  std::vector<int> silent;
  for (size_t w = 0; w < departed_.size(); ++w) {
    const bool owes = !DoesWithout(subject) || !departed_[w];
    if (owes && !subject.heard[w]) silent.push_back(static_cast<int>(w));
  }
  return silent;
}

std::vector<int> Agreement::Missing(uint64_t subject) const {
  const auto it = subjects_.find(subject);
  return it == subjects_.end() ? std::vector<int>() : Silent(it->second);
}

void Agreement::Agree(ClaimState* subject, std::vector<Verdict>* verdicts) {
  subject->agreed = true;
  for (const uint64_t waiting : subject->waiting) verdicts->push_back({waiting, Status::Ok()});
  subject->waiting.clear();
}

void Agreement::Refuse(ClaimState* subject, Status why, std::vector<Verdict>* verdicts) {
  subject->refused = std::move(why);
  for (const uint64_t ticket : subject->waiting) verdicts->push_back({ticket, subject->refused});
  subject->waiting.clear();
}

Status Agreement::WaitsForDeparted(const ClaimState& subject) const {
  if (DoesWithout(subject)) return Status::Ok();
  for (size_t w = 0; w < departed_.size(); ++w) {
    if (!departed_[w] || subject.heard[w]) continue;
    const std::string who = NodeName(Role::kWorker, static_cast<int>(w));
    return Status::InvalidArgument(NodeName(Role::kWorker, subject.first_worker) + " has it, " +
                                   who + " does not have it and has finished");
  }
  return Status::Ok();
}

void Agreement::Release(uint64_t subject, std::vector<Verdict>* verdicts) {
  const auto it = subjects_.find(subject);
  if (it != subjects_.end()) {
    Agree(&it->second, verdicts);
    subjects_.erase(it);
  }
  if (!released_.insert(subject).second) return;
  in_order_.push_back(subject);
  if (in_order_.size() <= kReleasedMax) return;
  released_.erase(in_order_.front());
  in_order_.pop_front();
}

void Agreement::Comes(int worker) {
  if (worker < 0 || static_cast<size_t>(worker) >= departed_.size()) return;
  if (!departed_[static_cast<size_t>(worker)]) return;
  departed_[static_cast<size_t>(worker)] = false;
  for (auto& [number, subject] : subjects_) subject.heard[static_cast<size_t>(worker)] = false;
}

void Agreement::Departed(int worker, std::vector<Verdict>* verdicts) {
  if (worker < 0 || static_cast<size_t>(worker) >= departed_.size()) return;
  departed_[static_cast<size_t>(worker)] = true;
  for (auto it = subjects_.begin(); it != subjects_.end();) {
    ClaimState& subject = it->second;
    if (subject.agreed || !subject.refused.ok()) {
      ++it;
      continue;
    }
    Status why = WaitsForDeparted(subject);
    if (!why.ok()) Refuse(&subject, std::move(why), verdicts);
    const bool agrees = DoesWithout(subject) && Silent(subject).empty();
    if (agrees) Agree(&subject, verdicts);
    const bool forgets = agrees && IsForOnce(subject);
    it = forgets ? subjects_.erase(it) : std::next(it);
  }
}

}  // namespace mercury
