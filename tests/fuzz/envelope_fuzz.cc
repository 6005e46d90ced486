// A frame from a stranger, and then the same frame from a peer: signed with the right key, so that
// what lies behind the signature is reached as well.
#include <algorithm>
#include <cstring>
#include <vector>

#include "control/envelope.h"
#include "fuzz.h"

using namespace mercury;

namespace {

constexpr size_t kSignedBytes = 48;  // as the layout in envelope.h says

void Check(const HmacKey& key, const std::vector<uint8_t>& frame) {
  Envelope envelope;
  const Status status = Open(key, frame.data(), frame.size(), &envelope);
  FUZZ_REQUIRE(status.ok() == status.text().empty());
  if (!status.ok()) {
    FUZZ_REQUIRE(status.code() == Code::kCorrupt);
    return;
  }
  FUZZ_REQUIRE(envelope.data_frames <= kDataFramesMax);
  // Only what Seal makes is accepted.
  std::vector<uint8_t> sealed(frame);
  const uint8_t* meta = frame.data() + kEnvelopeBytes;
  Seal(key, envelope, meta, frame.size() - kEnvelopeBytes, sealed.data());
  FUZZ_REQUIRE(sealed == frame);
  // And only once; the first of a life, or of a scheduler that goes on in another's place.
  SequenceCheck sequence;
  const Status first = sequence.Accept(envelope.life, envelope.sequence);
  const uint64_t counted = envelope.sequence % (uint64_t{1} << kReturnShift);
  FUZZ_REQUIRE(first.ok() == (counted == 1));
  FUZZ_REQUIRE(sequence.Accept(envelope.life, envelope.sequence).code() == Code::kCorrupt);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const HmacKey key("the token of a job");
  std::vector<uint8_t> frame(data, data + size);
  Check(key, frame);
  if (size < kEnvelopeBytes) return 0;
  HmacKey::MacStream stream(key);
  stream.Update(frame.data(), kSignedBytes);
  stream.Update(frame.data() + kEnvelopeBytes, size - kEnvelopeBytes);
  const Digest mac = stream.Finish();
  std::copy_n(mac.begin(), kEnvelopeBytes - kSignedBytes, frame.begin() + kSignedBytes);
  Check(key, frame);
  return 0;
}
