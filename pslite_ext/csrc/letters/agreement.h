// What workers have said that they have: a tensor's type and shape, a model's keys, how they sum a
// tensor from now on, or what they have told their optimizers so far. All must have the same;
// nothing is summed before that is known.
//
//   subject:  open --the last worker says the same--> agreed
//             open or agreed --a worker says something else--> refused
//             open --a worker that has not spoken leaves--> refused
//             any --it is of no use any more--> released: who says so still is waited for by nobody
//
// What is released is a newcomer's. The newcomer says so, and the one claim that there is of it, by
// whoever gives it, may still be on its way. So the numbers of the last kReleasedMax are
// remembered, and nothing else: no claim is overtaken by so many.
//
// Each change of how a tensor is summed is a subject of its own, forgotten once all agree, and so
// is each time at which steps are compared. Workers that have left need not agree to it: the sum
// itself will miss them. Where the job goes on without those that go, nobody waits for what they
// have not said.
//
// Thread-safety: none; one thread owns it. No I/O: claims go in, verdicts come out. Ownership:
// texts are kept once for each subject. Invariants: every claim gets exactly one verdict, now or
// later; what is refused stays refused.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/status.h"
#include "transport/claim.h"

namespace mercury {

class Agreement {
 public:
  struct Verdict {
    uint64_t ticket = 0;  // the caller's name for the claim
    Status status;
  };
  static constexpr size_t kSubjectsMax = 1 << 18;  // without those that are released
  static constexpr size_t kReleasedMax = 1 << 16;

  explicit Agreement(int num_workers, bool elastic = false)
      : elastic_(elastic), departed_(static_cast<size_t>(num_workers), false) {}

  void Hear(int worker, const Claim& claim, uint64_t ticket, std::vector<Verdict>* verdicts);
  // `worker` has finished, or is lost, and will say nothing more.
  void Departed(int worker, std::vector<Verdict>* verdicts);
  // Nobody uses it any more, and not all have: what goes to a newcomer alone.
  void Release(uint64_t subject, std::vector<Verdict>* verdicts);
  // Another has come in its place, and says what the others say from now on.
  void Comes(int worker);
  // Who has not spoken, of what is open.
  std::vector<int> Missing(uint64_t subject) const;

 private:
  struct ClaimState {
    Claim claim;           // what the first worker said
    int first_worker = 0;  // who that was
    std::vector<bool> heard;
    std::vector<uint64_t> waiting;
    bool agreed = false;
    Status refused;
  };

  static bool IsForOnce(const ClaimState& subject) {
    return subject.claim.of == Claim::Kind::kSums || subject.claim.of == Claim::Kind::kSteps;
  }
  std::vector<int> Silent(const ClaimState& subject) const;
  static void Agree(ClaimState* subject, std::vector<Verdict>* verdicts);
  static void Refuse(ClaimState* subject, Status why, std::vector<Verdict>* verdicts);
  Status WaitsForDeparted(const ClaimState& subject) const;
  bool DoesWithout(const ClaimState& subject) const { return elastic_ || IsForOnce(subject); }

  const bool elastic_;
  std::vector<bool> departed_;
  std::unordered_map<uint64_t, ClaimState> subjects_;
  std::unordered_set<uint64_t> released_;
  std::deque<uint64_t> in_order_;  // the same
};

}  // namespace mercury
