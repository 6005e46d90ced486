#include "control/envelope.h"

#include <cstring>

#include "base/little_endian.h"

namespace mercury {
namespace {

constexpr char kMagic[4] = {'M', 'P', 'S', '1'};
constexpr size_t kSignedBytes = 48;
constexpr uint8_t kChecked = 16;
constexpr size_t kMacBytes = kEnvelopeBytes - kSignedBytes;

Digest Mac(const HmacKey& key, const uint8_t* header, const void* meta, size_t meta_bytes) {
  HmacKey::MacStream stream(key);
  stream.Update(header, kSignedBytes);
  stream.Update(meta, meta_bytes);
  return stream.Finish();
}

}  // namespace

void Seal(const HmacKey& key, const Envelope& envelope, const void* meta, size_t meta_bytes,
          uint8_t* out) {
  std::memset(out, 0, kEnvelopeBytes);
  std::memcpy(out, kMagic, sizeof(kMagic));
  Store<uint16_t>(out + 4, kControlVersion);
  out[6] = static_cast<uint8_t>(envelope.data_frames);
  out[7] =
      static_cast<uint8_t>(static_cast<uint8_t>(envelope.kind) | (envelope.checked ? kChecked : 0));
  Store<int32_t>(out + 8, envelope.sender);
  Store<int32_t>(out + 12, envelope.receiver);
  Store<uint64_t>(out + 16, envelope.life);
  Store<uint64_t>(out + 24, envelope.sequence);
  Store<uint32_t>(out + 32, static_cast<uint32_t>(meta_bytes));
  Store<uint32_t>(out + 36, envelope.data_sum);
  Store<uint64_t>(out + 40, envelope.data_bytes);
  const Digest mac = Mac(key, out, meta, meta_bytes);
  std::memcpy(out + kSignedBytes, mac.data(), kMacBytes);
}

Status Open(const HmacKey& key, const void* frame, size_t frame_bytes, Envelope* envelope) {
  const auto* in = static_cast<const uint8_t*>(frame);
  if (frame_bytes < kEnvelopeBytes) return Status::Corrupt("shorter than its header");
  if (std::memcmp(in, kMagic, sizeof(kMagic)) != 0) return Status::Corrupt("not one of ours");
  const auto version = Load<uint16_t>(in + 4);
  if (version != kControlVersion) {
    return Status::Corrupt("control protocol version " + std::to_string(version) + ", this is " +
                           std::to_string(kControlVersion) +
                           ": install the same mercury-ps on all nodes");
  }
  const size_t meta_bytes = frame_bytes - kEnvelopeBytes;
  if (Load<uint32_t>(in + 32) != meta_bytes) return Status::Corrupt("its meta has another length");
  const Digest mac = Mac(key, in, in + kEnvelopeBytes, meta_bytes);
  if (!EqualConstantTime(mac.data(), in + kSignedBytes, kMacBytes)) {
    return Status::Corrupt("its sender does not know this job's token, or is of another job");
  }
  envelope->data_frames = in[6];
  envelope->kind = static_cast<EnvelopeKind>(in[7] & ~kChecked);
  envelope->checked = (in[7] & kChecked) != 0;
  envelope->sender = Load<int32_t>(in + 8);
  envelope->receiver = Load<int32_t>(in + 12);
  envelope->life = Load<uint64_t>(in + 16);
  envelope->sequence = Load<uint64_t>(in + 24);
  envelope->data_sum = Load<uint32_t>(in + 36);
  envelope->data_bytes = Load<uint64_t>(in + 40);
  if (envelope->data_frames > kDataFramesMax) return Status::Corrupt("too many frames");
  if (envelope->kind > EnvelopeKind::kAcknowledgement) return Status::Corrupt("of no known kind");
  if (envelope->kind != EnvelopeKind::kMessage && frame_bytes != kEnvelopeBytes) {
    return Status::Corrupt("a question or an acknowledgement that says more");
  }
  return Status::Ok();
}

Status SequenceCheck::Accept(uint64_t life, uint64_t sequence) {
  uint64_t& last = last_[life];
  if (sequence <= last) return Status::Corrupt("a message seen before");
  const bool anew = sequence >> kReturnShift > last >> kReturnShift;
  const bool gap = sequence != (anew ? sequence >> kReturnShift << kReturnShift : last) + 1;
  last = sequence;
  if (gap) return Status::PeerLost("messages were lost on the way");
  return Status::Ok();
}

}  // namespace mercury
