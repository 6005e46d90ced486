// What a worker asks of a server about something that has waited for long: which workers have not
// done their part. The answer is their ranks, "1, 3", or nothing if all have.
//
// Thread-safety: pure functions. Invariant: Decode(Encode(x)) == x.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "transport/operation.h"

namespace mercury {

struct StallQuestion {
  enum class Of : char { kPiece = 'p', kClaim = 'c' };
  Of of = Of::kPiece;
  uint64_t key = 0;     // the piece's tensor, or the claim's subject
  uint64_t offset = 0;  // of the piece
};
std::string Encode(const StallQuestion& question);
Status Decode(const std::string& body, StallQuestion* question);

// About an operation on a tensor, whose piece at `offset` is not in, or a claim.
struct Stall {
  StallQuestion question;
  std::string what;  // "tensor 'fc1_weight'"
  std::string owes;  // of whom it waits for: "has not sent it all"
};
Stall StallOf(const Operation& op, uint64_t offset);

std::string EncodeRanks(const std::vector<int>& ranks);
// Whether that is an answer, and so may be shown.
bool AreRanks(const std::string& body);
// The first of them; -1: there is none.
int FirstRank(const std::string& body);

}  // namespace mercury
