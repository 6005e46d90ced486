// A worker's end of letters: its claims and commands, until servers have answered; and, when
// something waits for long, the question for whom.
//
//   errand:  open --every server that was asked has answered--> over
//
// Where servers may go, claims are kept: whoever takes a server's place knows of none, and other
// workers may still wait for what this one has said. Of those that come again and again (how a
// parameter is summed, what optimizers have been told), none waits for more than the last ones, for
// it says the next ones only when it has heard of those before.
//
// Thread-safety: none; its user owns it. No I/O, no clock. Ownership: operations under way.
// Invariants: every operation is over once; whoever calls finishes it, so that nothing is called
// back from here but `report` and `stalled`; what is kept does not grow with the steps of a job.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "letters/job_letters.h"
#include "trace/trace_ring.h"
#include "transport/over.h"
#include "transport/server_shares.h"
#include "transport/stall_times.h"

namespace mercury {

struct ErrandsOptions {
  ServerShares shares;
  StallTimes stall;
  Stalled stalled;              // null: nobody ends the job for that
  TraceRing* trace = nullptr;   // null: nothing is traced
  bool servers_may_go = false;  // what they have been told is kept, for those who take their place
};

class Errands {
 public:
  using Send = std::function<void(int server, const JobLetter& letter)>;
  using Report = std::function<void(const std::string& line)>;

  Errands(const ErrandsOptions& options, Send send, Report report)
      : options_(options), send_(std::move(send)), report_(std::move(report)) {}

  // Of kind kCommand.
  void Begin(const std::shared_ptr<Operation>& op, int64_t now_us, std::vector<Over>* over);
  Status Hear(int server, const std::string& bytes, int64_t now_us, std::vector<Over>* over);
  // Asks for whom a claim waits that has waited for long. To be called about once a second.
  void Tick(int64_t now_us);
  // The same for `what`, of which nothing has come since `moved_us`; whom it waits for "has not
  // sent it all".
  void AskAbout(int server, MissingLetter letter, const std::string& what, const char* owes,
                int64_t since_us, int64_t moved_us, int64_t now_us);
  // Another has taken the server's place, and is told all that others may wait for. What has been
  // decided already is said again: other workers may not have heard so.
  void Moved(int server);
  void Fail(const Status& status, std::vector<Over>* over);
  // A line for each that is open.
  std::string Waiting(int64_t now_us) const;

 private:
  struct Errand {
    std::shared_ptr<Operation> op;
    std::vector<bool> awaits;  // by server
    Status status;             // the first bad answer
    int64_t since_us = 0, ask_at_us = 0;
  };
  struct Question {
    std::string what, owes;
    int64_t seconds = 0;
    bool over = false;  // the job ends for it
  };
  void Keep(uint64_t ticket, const Claim& claim, const Subject& about);
  void Trace(uint8_t operation, const Operation& op, int server, size_t bytes,
             int64_t now_us) const;
  void TakeMissing(int server, const Question& question, const std::vector<int>& missing) const;
  int HomeOf(const Claim& claim) const { return options_.shares.Home(claim.subject); }

  const ErrandsOptions options_;
  const Send send_;
  const Report report_;
  uint64_t next_ = 1;
  int64_t ticked_us_ = 0;  // last
  // What was said and is decided, if servers may go: the last of each kind and parameter, by
  // ticket.
  std::map<std::pair<Claim::Kind, uint64_t>, std::map<uint64_t, Claim>> said_;
  std::map<uint64_t, Errand> open_;     // by ticket
  std::map<uint64_t, Question> asked_;  // the same
};

}  // namespace mercury
