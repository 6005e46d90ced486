// What workers and servers say to each other beside tensors: a letter of a job over packets.
//
// Thread-safety: plain values and pure functions. Invariants: Decode(Encode(x)) gives x; Decode
// accepts nothing that Encode cannot have made. A letter names neither sender nor receiver: the
// link it comes on tells.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"
#include "transport/claim.h"

namespace mercury {

// `ticket` is the asking worker's name for what it awaits; the answer has it again.
struct ClaimLetter {  // answered when all workers have said the same, or have not
  uint64_t ticket = 0;
  Claim claim;
};
struct MissingLetter {  // who has not said this claim, or not sent this piece of a tensor?
  enum class Kind : uint8_t { kClaim = 0, kPiece = 1 };
  uint64_t ticket = 0;
  Kind of = Kind::kClaim;
  uint64_t key = 0;     // the claim's subject, or the tensor's
  uint64_t offset = 0;  // of the piece
};
struct CommandLetter {  // of the script, or the trace's switch
  uint64_t ticket = 0;
  int head = 0;
  std::string body;
};
struct AnswerLetter {  // a server's
  uint64_t ticket = 0;
  std::string failure;       // as base/status.h has it; empty: all is well
  std::vector<int> missing;  // ranks, to a MissingLetter
};
using JobLetter = std::variant<ClaimLetter, MissingLetter, CommandLetter, AnswerLetter>;

constexpr size_t kJobLetterBytesMax = kClaimTextBytesMax + 64;

std::string Encode(const JobLetter& letter);
Status Decode(std::string_view bytes, JobLetter* letter);

}  // namespace mercury
