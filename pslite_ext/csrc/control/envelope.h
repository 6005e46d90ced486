// The first bytes of every message between nodes: who sent it, to whom, in which order, and the
// proof that the sender knows the job token, and is of this job.
//
// Layout, little-endian, 64 bytes, then the meta:
//    0  4  magic "MPS1"             24  8  sequence (1, 2, ... per sender's life and receiver)
//    4  2  version                  32  4  meta bytes
//    6  1  data frames              36  4  CRC-32C over the data frames, if they are checked
//    7  1  kind, 16 more: checked   40  8  data bytes, all frames together
//    8  4  sender's node id, or -1  48 16  HMAC-SHA-256 over bytes 0..47 and the meta, truncated
//   12  4  receiver's node id
//   16  8  sender's life: random, drawn once per process
//
// Kinds: 0 a message. 1 a question: what have you received? It has a sequence number as messages
// have, but no meta. 2 the answer, an acknowledgement: its sequence is the last that was received.
//
// When a scheduler is lost, another may go on in its place, under its life. Its messages, and those
// to it, are then counted from n * 2^40 + 1 on, if it is the n-th that does so.
//
// Thread-safety: pure functions. Invariant: Open accepts exactly what Seal made with the same key.
// The data frames are not signed (tensors are as safe as the network is), only their size and their
// CRC are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "base/hmac_sha256.h"
#include "base/status.h"

namespace mercury {

constexpr size_t kEnvelopeBytes = 64;
constexpr uint16_t kControlVersion = 6;
constexpr int32_t kNoNode = -1;
constexpr int kDataFramesMax = 16;
constexpr int kReturnShift = 40;

enum class EnvelopeKind : uint8_t { kMessage, kQuestion, kAcknowledgement };

struct Envelope {
  int32_t sender = kNoNode;
  int32_t receiver = kNoNode;
  uint64_t life = 0;
  uint64_t sequence = 0;
  uint16_t data_frames = 0;
  uint64_t data_bytes = 0;
  EnvelopeKind kind = EnvelopeKind::kMessage;
  bool checked = false;
  uint32_t data_sum = 0;  // zero if they are not checked
};

// Writes kEnvelopeBytes to `out`.
void Seal(const HmacKey& key, const Envelope& envelope, const void* meta, size_t meta_bytes,
          uint8_t* out);

// Reads a whole frame, envelope and meta. kCorrupt says what is wrong with it.
Status Open(const HmacKey& key, const void* frame, size_t frame_bytes, Envelope* envelope);

// Which sequence numbers have been seen: refuses a replay, tells a gap (messages were lost).
// Not thread-safe; owned by the receiving loop.
class SequenceCheck {
 public:
  Status Accept(uint64_t life, uint64_t sequence);
  // What is counted from before was for the one that was lost.
  void CountFrom(uint64_t life, uint64_t sequence) { last_[life] = sequence; }
  bool IsBefore(uint64_t life, uint64_t sequence) const {
    const auto last = last_.find(life);
    return last != last_.end() && sequence >> kReturnShift < last->second >> kReturnShift;
  }
  // Nothing was accepted of this life, and this is not its first message.
  bool IsLate(uint64_t life, uint64_t sequence) const {
    return sequence > 1 && last_.count(life) == 0;
  }

 private:
  std::unordered_map<uint64_t, uint64_t> last_;
};

}  // namespace mercury
