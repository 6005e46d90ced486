#include "letters/errands.h"

#include <algorithm>
#include <utility>

#include "base/node_name.h"

namespace mercury {
namespace {

constexpr size_t kQuestionsMax = 1024;  // that servers have still to answer

// A parameter has a sum under way as a whole, and one by rows, at most: each waits for what was
// said before it.
constexpr size_t kMannersKept = 2;
// A thread of a script waits for each before its next step. With several stores in threads of their
// own, one may go on for so long while another has not heard.
constexpr size_t kStepsKept = 256;

std::string WhatIs(const Operation& op) {
  const auto& claim = op.command.claim;
  if (!claim) return "a command";
  if (claim->of == Claim::Kind::kModel) return "the list of the model's parameters";
  if (claim->of == Claim::Kind::kSteps) return "what optimizers have been told";
  return op.command.about.label;
}

const char* OwesWhat(const Claim& claim) {
  switch (claim.of) {
    case Claim::Kind::kModel:
      return "has not said which it has";
    case Claim::Kind::kSums:
      return "has not sent it all";
    case Claim::Kind::kSteps:
      return "has not come to that step";
    case Claim::Kind::kTensor:
      break;
  }
  return "has not said that it has it";
}

std::string Ranks(const std::vector<int>& ranks) {
  std::string text;
  for (const int rank : ranks) text += (text.empty() ? "" : ", ") + std::to_string(rank);
  return text;
}

}  // namespace

void Errands::Begin(const std::shared_ptr<Operation>& op, int64_t now_us, std::vector<Over>* over) {
  const Operation::Command& command = op->command;
  if (command.body.size() > kClaimTextBytesMax) {
    return over->push_back(
        {op, Status::InvalidArgument("a command of " + std::to_string(command.body.size()) +
                                     " bytes for the servers, more than " +
                                     std::to_string(kClaimTextBytesMax))});
  }
  const uint64_t ticket = next_++;
  Errand& errand = open_[ticket];
  errand.op = op;
  errand.since_us = now_us;
  errand.ask_at_us = options_.stall.FirstQuestion(now_us);
  errand.awaits.assign(static_cast<size_t>(options_.shares.servers()), !command.claim.has_value());
  if (command.claim) {
    const int home = HomeOf(*command.claim);
    errand.awaits[static_cast<size_t>(home)] = true;
    return send_(home, ClaimLetter{ticket, *command.claim});
  }
  const CommandLetter letter{ticket, command.head, command.body};
  const size_t bytes = Encode(letter).size();
  for (int s = 0; s < options_.shares.servers(); ++s) {
    Trace(kTraceCommand, *op, s, bytes, now_us);
    send_(s, letter);
  }
}

// The script's own commands are events.
void Errands::Trace(uint8_t operation, const Operation& op, int server, size_t bytes,
                    int64_t now_us) const {
  const Operation::Command& command = op.command;
  if (options_.trace == nullptr || command.claim || command.head == kTraceSwitchHead) return;
  TraceEvent event;
  event.operation = operation;
  event.node = TraceNode(TraceRole::kServer, static_cast<uint32_t>(server));
  event.time_us = now_us;
  event.length = static_cast<int64_t>(bytes);
  options_.trace->Add(event);
}

Status Errands::Hear(int server, const std::string& bytes, int64_t now_us,
                     std::vector<Over>* over) {
  JobLetter letter;
  Status read = Decode(bytes, &letter);
  if (!read.ok()) return read;
  const auto* answer = std::get_if<AnswerLetter>(&letter);
  if (answer == nullptr) return Status::Corrupt("a letter that only workers send");
  if (const auto asked = asked_.extract(answer->ticket); !asked.empty()) {
    TakeMissing(server, asked.mapped(), answer->missing);
    return Status::Ok();
  }
  const auto it = open_.find(answer->ticket);
  if (it == open_.end()) return Status::Ok();  // it has failed
  Errand& errand = it->second;
  if (!errand.awaits[static_cast<size_t>(server)]) {
    return Status::Corrupt("an answer that nobody has asked it for");
  }
  errand.awaits[static_cast<size_t>(server)] = false;
  Trace(kTraceReply, *errand.op, server, bytes.size(), now_us);
  if (!answer->failure.empty() && errand.status.ok()) Decode(answer->failure, &errand.status);
  const bool more =
      std::find(errand.awaits.begin(), errand.awaits.end(), true) != errand.awaits.end();
  if (more && errand.status.ok()) return Status::Ok();
  const auto& claim = errand.op->command.claim;
  if (options_.servers_may_go && claim) Keep(it->first, *claim, errand.op->command.about);
  over->push_back({errand.op, errand.status.About(errand.op->command.about)});
  open_.erase(it);
  return Status::Ok();
}

// Answers of several servers may come in another order than tickets have.
void Errands::Keep(uint64_t ticket, const Claim& claim, const Subject& about) {
  uint64_t of = claim.subject;
  size_t most = 1;
  if (claim.of == Claim::Kind::kSums) {
    of = about.key;
    most = kMannersKept;
  } else if (claim.of == Claim::Kind::kSteps) {
    of = 0;
    most = kStepsKept;
  }
  auto& last = said_[{claim.of, of}];
  last[ticket] = claim;
  if (last.size() > most) last.erase(last.begin());
}

void Errands::Moved(int server) {
  for (const auto& [of, claims] : said_) {
    for (const auto& [ticket, claim] : claims) {
      if (HomeOf(claim) == server) send_(server, ClaimLetter{next_++, claim});
    }
  }
  for (const auto& [ticket, errand] : open_) {
    if (!errand.awaits[static_cast<size_t>(server)]) continue;
    const Operation::Command& command = errand.op->command;
    if (command.claim) {
      send_(server, ClaimLetter{ticket, *command.claim});
    } else {
      send_(server, CommandLetter{ticket, command.head, command.body});
    }
  }
}

void Errands::Tick(int64_t now_us) {
  const int64_t pause_us = OwnPause_us(std::exchange(ticked_us_, now_us), now_us);
  for (auto& [ticket, errand] : open_) {
    LeaveOut(pause_us, now_us, &errand.since_us, &errand.ask_at_us);
    const auto& claim = errand.op->command.claim;
    if (now_us < errand.ask_at_us || !claim) continue;
    errand.ask_at_us = options_.stall.NextQuestion(errand.since_us, errand.since_us, now_us);
    AskAbout(HomeOf(*claim), {0, MissingLetter::Kind::kClaim, claim->subject, 0},
             WhatIs(*errand.op), OwesWhat(*claim), errand.since_us, errand.since_us, now_us);
  }
}

void Errands::AskAbout(int server, MissingLetter letter, const std::string& what, const char* owes,
                       int64_t since_us, int64_t moved_us, int64_t now_us) {
  if (asked_.size() >= kQuestionsMax) return;
  letter.ticket = next_++;
  const bool over = options_.stalled && options_.stall.Over(moved_us, now_us);
  asked_[letter.ticket] = {what, owes, (now_us - since_us) / 1000000, over};
  send_(server, letter);
}

void Errands::TakeMissing(int server, const Question& question,
                          const std::vector<int>& missing) const {
  std::string why = "its answer is on its way from " + NodeName(Role::kServer, server);
  if (!missing.empty()) why = "worker " + Ranks(missing) + " " + question.owes;
  const std::string line =
      question.what + " has waited for " + std::to_string(question.seconds) + " s: " + why;
  report_(line);
  if (question.over && !missing.empty()) options_.stalled(missing[0], line);
}

void Errands::Fail(const Status& status, std::vector<Over>* over) {
  for (auto& [ticket, errand] : open_) over->push_back({std::move(errand.op), status});
  open_.clear();
  asked_.clear();
}

std::string Errands::Waiting(int64_t now_us) const {
  std::string lines;
  for (const auto& [ticket, errand] : open_) {
    const auto left = std::count(errand.awaits.begin(), errand.awaits.end(), true);
    lines += WhatIs(*errand.op) + ": for " + std::to_string((now_us - errand.since_us) / 1000000) +
             " s, " + std::to_string(left) + " servers have not answered\n";
  }
  return lines;
}

}  // namespace mercury
