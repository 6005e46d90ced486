// What workers say that they have: the input, cut at each 0xff, is what one after another sends.
// Its first byte says how many there are. A worker whose claim is empty has finished.
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "fuzz.h"
#include "messages/agreement.h"
#include "messages/stall_question.h"

using namespace mercury;

namespace {

void Take(std::vector<Agreement::Verdict>* verdicts, std::set<uint64_t>* open) {
  for (const Agreement::Verdict& verdict : *verdicts) {
    FUZZ_REQUIRE(open->erase(verdict.ticket) == 1);
  }
  verdicts->clear();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const int workers = 1 + data[0] % 4;
  Agreement agreement(workers);
  std::set<uint64_t> open;
  std::vector<Agreement::Verdict> verdicts;
  uint64_t ticket = 0;
  int worker = 0;
  for (const uint8_t *at = data + 1, *end = data + size; at <= end; ++worker) {
    const auto* cut =
        at == end
            ? end
            : static_cast<const uint8_t*>(std::memchr(at, 0xff, static_cast<size_t>(end - at)));
    if (cut == nullptr) cut = end;
    const std::string body(reinterpret_cast<const char*>(at), static_cast<size_t>(cut - at));
    at = cut + 1;
    Status failure, again;  // whatever comes is one
    Decode(body, &failure);
    FUZZ_REQUIRE(!failure.ok());
    Decode(Encode(failure, 1 << 20), &again);
    FUZZ_REQUIRE(again.code() == failure.code() && again.subject().Is(failure.subject()));
    FUZZ_REQUIRE(again.blame().parties.size() == failure.blame().parties.size());
    StallQuestion question, asked;
    if (Decode(body, &question).ok()) {
      FUZZ_REQUIRE(Decode(Encode(question), &asked).ok());
      FUZZ_REQUIRE(asked.of == question.of && asked.key == question.key);
      FUZZ_REQUIRE(asked.offset == question.offset);
      for (const int w : agreement.Missing(question.key)) FUZZ_REQUIRE(w >= 0 && w < workers);
    }
    Claim claim;
    if (body.empty()) {
      agreement.Departed(worker % workers, &verdicts);
    } else if (Decode(body, &claim).ok()) {
      Claim same;
      FUZZ_REQUIRE(Decode(Encode(claim), &same).ok());
      FUZZ_REQUIRE(same.subject == claim.subject && same.of == claim.of);
      FUZZ_REQUIRE(same.text == claim.text);
      open.insert(++ticket);
      // One that there is not, too.
      agreement.Hear(worker % (workers + 1), claim, ticket, &verdicts);
    }
    Take(&verdicts, &open);
  }
  for (int w = 0; w < workers; ++w) agreement.Departed(w, &verdicts);
  Take(&verdicts, &open);
  FUZZ_REQUIRE(open.empty() || workers == 1);
  return 0;
}
