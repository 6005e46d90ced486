// One link of an MLfabric node: its letters, and the transfers that arrive: a letter says what will
// come, then come its parts, and with the last one it is a cargo. Letters go before transfers.
//
//   announced --parts--> coming --last--> whole: the letter that announced it, and its cargo
//        \________________/---aborted, the link is no more--> broken: whoever reads it sees that
//
// Thread-safety: none; its lane owns it. No I/O; `now_us` is passed in. Invariants: no memory is
// allocated for a transfer that is not announced, for more than `kTransfersMost` at once, nor for
// any before `Expect`; parts are contiguous, and no longer than announced.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "fabric/live/letters.h"
#include "fabric/net/inflow.h"
#include "fabric/net/spare_vectors.h"
#include "letters/mailbox.h"

namespace mercury::fabric {

constexpr size_t kTransfersMost = 16;  // under way on one link

// What a transfer has brought, and how fast.
struct Haul {
  Cargo cargo;
  SteadyStretch longest;
};

// Transfers that may come: of models with so many elements, perhaps of two vectors, and perhaps
// coded.
struct Expected {
  size_t elements = 0;
  bool two_vectors = false;
  const Codec* codec = nullptr;
  // From each of several servers: its stripe of the whole model.
  size_t servers = 1;
  size_t whole = 0;
};

// Where a transfer is put; null: into memory of its own.
struct Landing {
  std::shared_ptr<Vector> sum, step;
  Stripe stripe;  // that it brings of them
};

// A letter that has come; or the one that announced a transfer which is now whole.
struct Come {
  Letter letter;
  std::optional<Haul> haul;
};

class Dock {
 public:
  explicit Dock(size_t packet_bytes, SpareVectors spares = {})
      : spares_(std::move(spares)), letters_(packet_bytes, kLetterBytesMax) {}
  ~Dock();
  Dock(const Dock&) = delete;
  Dock& operator=(const Dock&) = delete;

  void Expect(const Expected& expected) { expected_ = expected; }

  void Post(const Letter& letter) { letters_.Post(Encode(letter)); }
  bool Next(OutPacket* out) { return letters_.Next(out); }
  bool empty() const { return letters_.empty(); }

  // As PacketSink's.
  Status OnHeader(const Header& header, int64_t now_us, char** target);
  Status OnPacket(const Header& header, int64_t now_us, std::optional<Come>* arrived);

  // `letter` has come, and says that transfer `number` is next, of one vector or two.
  Status Announce(int64_t number, const Letter& letter, bool two, const Landing& landing,
                  std::shared_ptr<const Inflow>* inflow);
  // The rest will not come.
  void Forget(int64_t number);

 private:
  struct Announced {
    Letter letter;
    std::shared_ptr<Inflow> inflow;
  };
  Status BeginPart(const Header& header, int64_t now_us, char** target);
  void EndPart(const Header& header, int64_t now_us, std::optional<Come>* arrived);

  const SpareVectors spares_;
  Mailbox letters_;
  Expected expected_;
  std::vector<char> coded_;  // the packet that comes now
  std::map<int64_t, Announced> transfers_;
};

}  // namespace mercury::fabric
