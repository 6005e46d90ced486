#include "letters/job_letters.h"

#include <algorithm>

#include "base/fields.h"
#include "base/variants.h"

namespace mercury {
namespace {

constexpr size_t kRanksMost = 1 << 16;

template <typename A>
class JobWalk : public FieldWalk<A, JobWalk<A>> {
  using Base = FieldWalk<A, JobWalk<A>>;
  using Base::All, Base::Choice, Base::Must;

 public:
  using Base::Base;

  bool Walk(Its<A, ClaimLetter>& its) {
    const Claim::Kind& of = its.claim.of;
    return All(its.ticket, its.claim.subject) && Choice(its.claim.of, 0xff) &&
           Must(of == Claim::Kind::kTensor || of == Claim::Kind::kModel ||
                of == Claim::Kind::kSums || of == Claim::Kind::kSteps) &&
           All(its.claim.text);
  }
  bool Walk(Its<A, MissingLetter>& its) {
    return All(its.ticket) && Choice(its.of, 1) && All(its.key, its.offset);
  }
  bool Walk(Its<A, CommandLetter>& its) { return All(its.ticket, its.head, its.body); }
  bool Walk(Its<A, AnswerLetter>& its) {
    const auto& ranks = its.missing;
    return All(its.ticket, its.failure, its.missing) &&
           Must(std::all_of(ranks.begin(), ranks.end(), [](int rank) { return rank >= 0; }));
  }
};

}  // namespace

std::string Encode(const JobLetter& letter) {
  std::string bytes{static_cast<char>(letter.index())};
  JobWalk<FieldWriter> writer(&bytes);
  std::visit([&](const auto& its) { writer.Walk(its); }, letter);
  return bytes;
}

Status Decode(std::string_view bytes, JobLetter* letter) {
  *letter = JobLetter();
  if (!bytes.empty()) {
    JobWalk<FieldReader> reader(bytes.substr(1), kClaimTextBytesMax, kRanksMost);
    const auto read = [&](auto& its) { return reader.Walk(its) && reader.at_end(); };
    const bool known = BecomeAt(static_cast<uint8_t>(bytes[0]), letter);
    if (known && std::visit(read, *letter)) return Status::Ok();
  }
  *letter = JobLetter();
  return Status::Corrupt("a letter that makes no sense");
}

}  // namespace mercury
