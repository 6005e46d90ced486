// A server's end of letters: hears claims until all workers have said the same, and carries out
// commands.
//
// Thread-safety: none; one lane owns it. No I/O, no clock. Invariants: every letter that asks is
// answered once, now or later; what waits for a worker, or to be sent to it, is bounded.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "letters/agreement.h"
#include "letters/job_letters.h"

namespace mercury {

// What a command tells a server itself: to record, or no more.
Status Obey(int head, const std::string& body);

class Clerk {
 public:
  using Send = std::function<void(int worker, const JobLetter& letter)>;
  using Unsent = std::function<size_t(int worker)>;
  using Obeys = std::function<Status(int head, const std::string& body)>;

  // Of a worker's answers that wait to be sent, and of its claims that wait for others: one that
  // keeps to the rules has far fewer.
  static constexpr size_t kUnsentMax = 1 << 16, kOpenMax = Agreement::kSubjectsMax;

  // `of_piece`: which workers a piece waits for, where pieces are not packets; else null.
  // `elastic`: the job goes on without those that go. `unsent`: how many letters still wait to be
  // sent to a worker; null: nobody knows.
  using OfPiece = std::function<std::vector<int>(uint64_t key, uint64_t offset)>;
  Clerk(int num_workers, Send send, Obeys obeys, OfPiece of_piece = nullptr, bool elastic = false,
        Unsent unsent = nullptr)
      : agreement_(num_workers, elastic),
        send_(std::move(send)),
        obeys_(std::move(obeys)),
        of_piece_(std::move(of_piece)),
        unsent_(std::move(unsent)) {}

  Status Hear(int worker, const std::string& bytes);
  void Departed(int worker);
  // Of a tensor that nobody uses any more.
  void Release(uint64_t subject);
  // Whoever takes its place has asked nothing yet.
  void Forget(int worker);
  // Another has come in its place.
  void Comes(int worker) { agreement_.Comes(worker); }

 private:
  void Answer(const std::vector<Agreement::Verdict>& verdicts);

  Agreement agreement_;
  const Send send_;
  const Obeys obeys_;
  const OfPiece of_piece_;
  const Unsent unsent_;
  uint64_t next_ = 1;
  std::unordered_map<uint64_t, std::pair<int, uint64_t>> open_;  // claims: whose, its ticket
  std::unordered_map<int, size_t> open_of_;                      // how many, by worker
};

}  // namespace mercury
