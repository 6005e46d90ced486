// What workers say to a server beside tensors: the input, cut at each 0xff, is what one after
// another sends. Its first byte says how many there are. A worker whose letter is empty has
// finished. And each letter as an answer to a worker, and as a failure.
#include <cstring>
#include <string>
#include <vector>

#include "fuzz.h"
#include "letters/clerk.h"
#include "letters/errands.h"

using namespace mercury;

namespace {

void TryAsFailure(const std::string& text) {
  Status failure, again;  // whatever comes is one
  Decode(text, &failure);
  FUZZ_REQUIRE(!failure.ok());
  Decode(Encode(failure, 1 << 20), &again);
  FUZZ_REQUIRE(again.code() == failure.code() && again.subject().Is(failure.subject()));
  FUZZ_REQUIRE(again.blame().parties.size() == failure.blame().parties.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const int workers = 1 + data[0] % 4;
  size_t asked = 0, answered = 0;
  const auto ignore = [](int /*head*/, const std::string& /*body*/) { return Status::Ok(); };
  Clerk clerk(
      workers,
      [&](int worker, const JobLetter& letter) {
        FUZZ_REQUIRE(worker >= 0 && worker < workers);
        FUZZ_REQUIRE(std::holds_alternative<AnswerLetter>(letter));
        for (const int rank : std::get<AnswerLetter>(letter).missing) {
          FUZZ_REQUIRE(rank >= 0 && rank < workers);
        }
        ++answered;
      },
      ignore);
  Errands errands(
      {ServerShares(2), StallTimes{}, nullptr}, [](int, const JobLetter&) {},
      [](const std::string&) {});
  std::vector<Over> over;
  auto op = std::make_shared<Operation>();
  op->kind = Operation::Kind::kCommand;
  errands.Begin(op, 0, &over);
  int worker = 0;
  for (const uint8_t *at = data + 1, *end = data + size; at <= end; ++worker) {
    const auto* cut =
        at == end
            ? end
            : static_cast<const uint8_t*>(std::memchr(at, 0xff, static_cast<size_t>(end - at)));
    if (cut == nullptr) cut = end;
    const std::string bytes(reinterpret_cast<const char*>(at), static_cast<size_t>(cut - at));
    at = cut + 1;
    TryAsFailure(bytes);
    if (bytes.empty()) {
      clerk.Departed(worker % workers);
      continue;
    }
    JobLetter letter, again;
    if (Decode(bytes, &letter).ok()) {
      FUZZ_REQUIRE(Decode(Encode(letter), &again).ok());
      FUZZ_REQUIRE(Encode(again) == Encode(letter) && again.index() == letter.index());
    }
    if (clerk.Hear(worker % workers, bytes).ok()) ++asked;
    (void)errands.Hear(worker % 2, bytes, 0, &over);
  }
  for (int w = 0; w < workers; ++w) clerk.Departed(w);
  FUZZ_REQUIRE(over.size() <= 1 && answered <= asked);
  FUZZ_REQUIRE(answered == asked || workers == 1);
  return 0;
}
