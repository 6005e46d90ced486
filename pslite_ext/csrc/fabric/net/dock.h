// One link of an MLfabric node: its letters, and the transfers that arrive: parts -> cargos, until
// a letter says what they were. Letters go before transfers.
//
// Thread-safety: none; its lane owns it. No I/O; `now_us` is passed in. Invariants: no memory is
// allocated for a transfer longer than a model, for parts of more than `kTransfersMost` transfers,
// nor for any transfer before `Expect`; parts are contiguous.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "fabric/live/letters.h"
#include "fabric/net/spare_vectors.h"
#include "letters/mailbox.h"

namespace mercury::fabric {

constexpr size_t kTransfersMost = 16;  // under way on one link

// A transfer that has come.
struct Haul {
  Cargo cargo;
  int64_t first_us = 0;
  int64_t last_us = 0;
};

// Transfers that may come: of models with so many elements, perhaps of two vectors, and perhaps
// coded.
struct Expected {
  size_t elements = 0;
  bool two_vectors = false;
  const Codec* codec = nullptr;
};

class Dock {
 public:
  explicit Dock(size_t packet_bytes, SpareVectors spares = {})
      : spares_(std::move(spares)), letters_(packet_bytes, kLetterBytesMax) {}

  void Expect(const Expected& expected) { expected_ = expected; }

  void Post(const Letter& letter) { letters_.Post(Encode(letter)); }
  bool Next(OutPacket* out) { return letters_.Next(out); }
  bool empty() const { return letters_.empty(); }

  // As PacketSink's. A letter that is whole is put into `letter`.
  Status OnHeader(const Header& header, int64_t now_us, char** target);
  Status OnPacket(const Header& header, int64_t now_us, std::optional<Letter>* letter);

  // All that has come of a transfer: one vector or two.
  Status Take(int64_t number, Haul* haul);
  void Forget(int64_t number) { transfers_.erase(number); }

 private:
  struct Incoming {
    const Codec* codec = nullptr;
    std::shared_ptr<Vector> vectors[2];
    size_t bytes = 0;
    int64_t first_us = 0;
    int64_t last_us = 0;
  };
  Status BeginPart(const Header& header, int64_t now_us, char** target);
  void EndPart(const Header& header, int64_t now_us);

  const SpareVectors spares_;
  Mailbox letters_;
  Expected expected_;
  std::vector<char> coded_;  // the packet that comes now
  std::map<int64_t, Incoming> transfers_;
};

}  // namespace mercury::fabric
