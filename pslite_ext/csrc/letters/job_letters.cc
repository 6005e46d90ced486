#include "letters/job_letters.h"

#include "base/fields.h"

namespace mercury {
namespace {

constexpr size_t kRanksMost = 1 << 16;

// Numbers of 64 bits, whatever their sign.
template <typename A, typename N>
bool Number(A* a, N& number) {
  auto value = static_cast<int64_t>(number);
  if (!a->Integer(value)) return false;
  if constexpr (kReads<A>) number = static_cast<uint64_t>(value);
  return true;
}

template <typename A, typename L>
bool Walk(A* a, L& claim, const ClaimLetter* /*its*/) {
  auto of = static_cast<uint8_t>(claim.claim.of);
  if (!Number(a, claim.ticket) || !Number(a, claim.claim.subject) || !a->Byte(of, 0xff)) {
    return false;
  }
  if constexpr (kReads<A>) {
    claim.claim.of = static_cast<Claim::Kind>(of);
    if (claim.claim.of != Claim::Kind::kTensor && claim.claim.of != Claim::Kind::kModel &&
        claim.claim.of != Claim::Kind::kSums) {
      return false;
    }
  }
  return a->Text(claim.claim.text);
}

template <typename A, typename L>
bool Walk(A* a, L& missing, const MissingLetter* /*its*/) {
  return Number(a, missing.ticket) && Choice(a, missing.of, 1) && Number(a, missing.key) &&
         Number(a, missing.offset);
}

template <typename A, typename L>
bool Walk(A* a, L& command, const CommandLetter* /*its*/) {
  return Number(a, command.ticket) && a->Integer(command.head) && a->Text(command.body);
}

template <typename A, typename L>
bool Walk(A* a, L& answer, const AnswerLetter* /*its*/) {
  if (!Number(a, answer.ticket) || !a->Text(answer.failure) || !a->Length(answer.missing)) {
    return false;
  }
  for (auto& rank : answer.missing) {
    if (!a->Integer(rank) || rank < 0) return false;
  }
  return true;
}

template <size_t kIndex>
bool Read(uint8_t kind, FieldReader* reader, JobLetter* letter) {
  if constexpr (kIndex < std::variant_size_v<JobLetter>) {
    if (kind != kIndex) return Read<kIndex + 1>(kind, reader, letter);
    auto& its = letter->emplace<kIndex>();
    return Walk(reader, its, &its) && reader->at_end();
  }
  return false;
}

}  // namespace

std::string Encode(const JobLetter& letter) {
  std::string bytes{static_cast<char>(letter.index())};
  FieldWriter writer(&bytes);
  std::visit([&](const auto& its) { Walk(&writer, its, &its); }, letter);
  return bytes;
}

Status Decode(std::string_view bytes, JobLetter* letter) {
  *letter = JobLetter();
  if (!bytes.empty()) {
    FieldReader reader(bytes.substr(1), kClaimTextBytesMax, kRanksMost);
    if (Read<0>(static_cast<uint8_t>(bytes[0]), &reader, letter)) return Status::Ok();
  }
  *letter = JobLetter();
  return Status::Corrupt("a letter that makes no sense");
}

}  // namespace mercury
