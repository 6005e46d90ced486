#include "messages/stall_question.h"

#include <algorithm>
#include <charconv>
#include <cinttypes>
#include <cstdio>

#include "messages/agreement.h"

namespace mercury {
namespace {

constexpr size_t kDigits = 16;
constexpr size_t kBytes = 1 + 2 * kDigits;

bool Read(const char* digits, uint64_t* value) {
  const auto [end, error] = std::from_chars(digits, digits + kDigits, *value, 16);
  return error == std::errc() && end == digits + kDigits;
}

}  // namespace

std::string Encode(const StallQuestion& question) {
  char body[kBytes + 1];
  std::snprintf(body, sizeof(body), "%c%016" PRIx64 "%016" PRIx64, static_cast<char>(question.of),
                question.key, question.offset);
  return body;
}

Status Decode(const std::string& body, StallQuestion* question) {
  const bool known = body.size() == kBytes && (body[0] == 'p' || body[0] == 'c');
  if (!known || !Read(&body[1], &question->key) || !Read(&body[1 + kDigits], &question->offset)) {
    return Status::Corrupt("a question that cannot be read");
  }
  question->of = static_cast<StallQuestion::Of>(body[0]);
  return Status::Ok();
}

Stall StallOf(const Operation& op, uint64_t offset) {
  const std::string of_a_sum = "has not sent it all";
  if (op.tensor != nullptr) {
    const TensorTraits& tensor = op.tensor->traits;
    return {
        {StallQuestion::Of::kPiece, tensor.key, offset}, "tensor '" + tensor.name + "'", of_a_sum};
  }
  Claim claim;
  (void)Decode(op.command.body, &claim);  // it is this worker's own
  const StallQuestion question = {StallQuestion::Of::kClaim, claim.subject, 0};
  switch (claim.of) {
    case Claim::Of::kModel:
      return {question, "the list of the model's parameters", "has not said which it has"};
    case Claim::Of::kSums:
      return {question, op.command.about.label, of_a_sum};
    case Claim::Of::kTensor:
      break;
  }
  return {question, op.command.about.label, "has not said that it has it"};
}

std::string EncodeRanks(const std::vector<int>& ranks) {
  std::string text;
  for (const int rank : ranks) text += (text.empty() ? "" : ", ") + std::to_string(rank);
  return text;
}

int FirstRank(const std::string& body) {
  int rank = -1;
  const auto [end, error] = std::from_chars(body.data(), body.data() + body.size(), rank);
  return error == std::errc() && rank >= 0 ? rank : -1;
}

bool AreRanks(const std::string& body) {
  return std::all_of(body.begin(), body.end(),
                     [](char c) { return c == ',' || c == ' ' || (c >= '0' && c <= '9'); });
}

}  // namespace mercury
