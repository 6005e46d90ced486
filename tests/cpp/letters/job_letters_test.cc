#include "letters/job_letters.h"

#include "harness.h"

using namespace mercury;

namespace {

const std::vector<JobLetter>& Samples() {
  static const auto* samples = new std::vector<JobLetter>{
      ClaimLetter{1, {~uint64_t{0}, Claim::Kind::kModel, "0\tw\n"}},
      ClaimLetter{~uint64_t{0}, {0, Claim::Kind::kSums, ""}},
      ClaimLetter{2, {3, Claim::Kind::kSteps, "lr = 1 from update 1 on"}},
      MissingLetter{2, MissingLetter::Kind::kPiece, 7, uint64_t{1} << 60},
      CommandLetter{3, -5, std::string("\0on", 3)},
      AnswerLetter{4, Encode(Status::PeerLost("why")), {0, 3}},
      AnswerLetter{5, "", {}},
  };
  return *samples;
}

}  // namespace

TEST(what_travels_is_read_as_it_was_written) {
  for (const JobLetter& letter : Samples()) {
    JobLetter read;
    REQUIRE_OK(Decode(Encode(letter), &read));
    CHECK_EQ(read.index(), letter.index());
    CHECK_TRUE(Encode(read) == Encode(letter));
  }
}

TEST(what_makes_no_sense_is_refused) {
  JobLetter read;
  for (const JobLetter& letter : Samples()) {
    const std::string bytes = Encode(letter);
    for (size_t size = 0; size < bytes.size(); ++size) {
      CHECK_STATUS(Code::kCorrupt, Decode(bytes.substr(0, size), &read));
    }
    CHECK_STATUS(Code::kCorrupt, Decode(bytes + "x", &read));
    CHECK_STATUS(Code::kCorrupt, Decode("\x04" + bytes.substr(1), &read));
  }
  const ClaimLetter longest{1, {2, Claim::Kind::kModel, std::string(kClaimTextBytesMax, 'x')}};
  CHECK_TRUE(Encode(longest).size() <= kJobLetterBytesMax);
  CHECK_OK(Decode(Encode(longest), &read));
  ClaimLetter longer = longest;
  longer.claim.text += 'x';
  CHECK_STATUS(Code::kCorrupt, Decode(Encode(longer), &read));
  ClaimLetter other = longest;
  other.claim.of = static_cast<Claim::Kind>('z');
  CHECK_STATUS(Code::kCorrupt, Decode(Encode(other), &read));
}
