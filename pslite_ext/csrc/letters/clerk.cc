#include "letters/clerk.h"

#include <iterator>
#include <utility>

#include "trace/trace_log.h"
#include "transport/operation.h"

namespace mercury {

Status Obey(int head, const std::string& body) {
  TraceLog* log = TraceLog::Started();
  if (head == kTraceSwitchHead && log != nullptr) log->Switch(body != "off");
  return Status::Ok();
}

Status Clerk::Hear(int worker, const std::string& bytes) {
  JobLetter letter;
  Status status = Decode(bytes, &letter);
  if (!status.ok()) return status;
  if (unsent_ && unsent_(worker) >= kUnsentMax) {
    return Status::Corrupt("it asks more than it listens");
  }
  if (const auto* claims = std::get_if<ClaimLetter>(&letter)) {
    size_t& open = open_of_[worker];
    if (open >= kOpenMax) return Status::Corrupt("more claims than there can be");
    ++open;
    std::vector<Agreement::Verdict> verdicts;
    open_[next_] = {worker, claims->ticket};
    agreement_.Hear(worker, claims->claim, next_++, &verdicts);
    Answer(verdicts);
  } else if (const auto* asks = std::get_if<MissingLetter>(&letter)) {
    std::vector<int> missing;
    if (asks->of == MissingLetter::Kind::kClaim) {
      missing = agreement_.Missing(asks->key);
    } else if (of_piece_) {
      missing = of_piece_(asks->key, asks->offset);
    }
    send_(worker, AnswerLetter{asks->ticket, "", std::move(missing)});
  } else if (const auto* command = std::get_if<CommandLetter>(&letter)) {
    const Status done = obeys_(command->head, command->body);
    send_(worker, AnswerLetter{command->ticket, done.ok() ? "" : Encode(done), {}});
  } else {
    return Status::Corrupt("a letter that only servers send");
  }
  return Status::Ok();
}

void Clerk::Departed(int worker) {
  std::vector<Agreement::Verdict> verdicts;
  agreement_.Departed(worker, &verdicts);
  Answer(verdicts);
}

void Clerk::Forget(int worker) {
  for (auto it = open_.begin(); it != open_.end();) {
    it = it->second.first == worker ? open_.erase(it) : std::next(it);
  }
  open_of_.erase(worker);
}

void Clerk::Release(uint64_t subject) {
  std::vector<Agreement::Verdict> verdicts;
  agreement_.Release(subject, &verdicts);
  Answer(verdicts);
}

void Clerk::Answer(const std::vector<Agreement::Verdict>& verdicts) {
  for (const Agreement::Verdict& verdict : verdicts) {
    const auto it = open_.find(verdict.ticket);
    if (it == open_.end()) continue;  // whose it was is forgotten
    const auto [worker, ticket] = it->second;
    open_.erase(it);
    --open_of_[worker];
    send_(worker, AnswerLetter{ticket, Encode(verdict.status), {}});
  }
}

}  // namespace mercury
