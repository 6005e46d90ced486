// In which order, and how far ahead, a worker sends its tensors over one link: a policy is one
// small class, without I/O and without a clock.
//
//   priority       packets, always the most urgent next, within the link's credit
//   fifo           packets, in the order in which tensors became ready (no preemption)
//   wfbp           whole tensors in that order; a server answers when it has the whole
//   p3             slices of fixed size, the most urgent next, one at a time (stop and wait)
//   bytescheduler  partitions of fixed size, the most urgent next, within a fixed credit
//   prophet        as priority, but during the backward pass in blocks that nothing interrupts and
//                  that just finish before a more urgent tensor is due (prophet_blocks.h)
//
// A *portion* is one tensor's share of one link for one round: so many slots, sent in order. A
// *unit* is so many slots of a portion that nothing can overtake and that the server answers as a
// whole.
//
// Thread-safety: none. Invariants: Next names a portion that has slots which are ready and
// were not sent; if nothing is under way, Next names one whenever there is one, or will at WakeAt.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "policy/credit.h"
#include "policy/policy_list.h"
#include "policy/prophet/block_record.h"
#include "policy/prophet/prophet_profile.h"
#include "policy/urgency_queue.h"

namespace mercury {

enum class PolicyKind : uint8_t {
#define MERCURY_KIND(kind, number, ...) kind = number,
  MERCURY_POLICIES(MERCURY_KIND)
#undef MERCURY_KIND
};
Status ParsePolicy(const std::string& name, PolicyKind* kind);
// "priority, fifo, ...": what users may choose from.
std::string PolicyNames();
const char* Name(PolicyKind kind);

struct PolicyOptions {
  PolicyKind kind = PolicyKind::kPriority;
  uint64_t packet_bytes = 64 << 10;  // largest packet
  bool adapt_packets = true;         // smaller ones on slow links
  int links = 1;                     // that share this host's rate: one for each server
  uint64_t unit_bytes = 0;           // p3: slice; bytescheduler: partition; 0: the policy's default
  uint64_t window_bytes = 0;         // bytescheduler: credit; 0: four partitions
  size_t levels_max = kPriorityLevelsMax;
  CreditLimits credit;
  // prophet:
  int profile_steps = 50;                         // iterations to learn from, at most
  std::string profile_text;                       // of an earlier run; empty: there is none
  std::shared_ptr<const ProphetProfile> profile;  // that of all links of one worker
};

// How many slots of a tensor are one unit: workers and servers must come to the same.
uint64_t UnitSlots(PolicyKind kind, uint64_t unit_bytes, uint64_t slot_bytes, uint64_t slots);

// Whether servers tell that a unit has arrived.
bool Acknowledges(PolicyKind kind);
// Whether the server answers units of several slots, each as a whole.
bool AnswersUnits(PolicyKind kind);
// Whether a more urgent tensor goes before the rest of another.
bool Preempts(PolicyKind kind);
// The largest packet that takes a host's link of so many bytes a second no longer than an urgent
// one should have to wait; 4 KiB at least.
uint64_t PacketBytes(double bytes_per_second, uint64_t most);
// What 0 stands for.
uint64_t DefaultUnitBytes(PolicyKind kind);

struct Portion {
  uint64_t id = 0;  // never used twice on a link
  int32_t priority = 0;
  uint64_t slots = 0;
  uint64_t unit_slots = 1;
  uint64_t bytes = 0;
  uint64_t missing = 0;      // slots that are not ready yet
  bool whole_slots = false;  // the server answers no part of one
};

class Policy {
 public:
  virtual ~Policy() = default;
  virtual void Ready(const Portion& portion, int64_t now_us) = 0;
  // So many more of its slots are ready.
  virtual void More(uint64_t portion, uint64_t slots, int64_t now_us) = 0;
  // Which portion's next packet to send now; false: none may be sent now.
  virtual bool Next(int64_t now_us, uint64_t* portion) = 0;
  // The same, of the portions that who asks `may` send: Next has named one whose last slots others
  // have begun, and are to end. False: there is none, or the policy keeps to its order.
  using May = std::function<bool(uint64_t portion)>;
  virtual bool NextOf(const May& /*may*/, int64_t /*now_us*/, uint64_t* /*portion*/) {
    return false;
  }
  // A packet of the portion that Next named has been handed to the link; `slot_done`: its slot's
  // last.
  virtual void Sent(uint64_t portion, uint64_t bytes, bool slot_done, int64_t now_us) = 0;
  // So many bytes of its sum have come back.
  virtual void Returned(uint64_t portion, uint64_t bytes, int64_t now_us) = 0;
  // The server has so many bytes of it (it says so only where Acknowledges).
  virtual void Acknowledged(uint64_t portion, uint64_t bytes) = 0;
  // Another worker has sent so many bytes of it that are still to be sent here (only where
  // Preempts).
  virtual void Behind(uint64_t /*portion*/, uint64_t /*bytes*/) {}
  // The portion is over, well or not.
  virtual void Forget(uint64_t portion) = 0;
  // When Next may change its mind by time alone.
  virtual int64_t WakeAt() const { return kNever; }
  virtual uint64_t packet_bytes() const = 0;
  // What the server orders this portion's sums by.
  virtual int32_t WirePriority(int32_t priority) const = 0;

  // What the network takes there and back, without queues.
  virtual void SetRoundTrip(int64_t /*us*/) {}

  // For the live figures.
  virtual uint64_t preemptions() const { return 0; }
  virtual const Credit* credit() const { return nullptr; }
  virtual BlockFigures blocks() const { return {}; }
  // What the user should know, since the last call; mostly nothing.
  virtual std::string TakeNotice() { return {}; }
  virtual std::vector<std::pair<int32_t, size_t>> Depths() const = 0;
};

std::unique_ptr<Policy> MakePolicy(const PolicyOptions& options);
// Each is defined by its policy's own file; several lines of the list may name one.
#define MERCURY_FACTORY(kind, number, name, make, ...) \
  std::unique_ptr<Policy> make(const PolicyOptions& options);
MERCURY_POLICIES(MERCURY_FACTORY)
#undef MERCURY_FACTORY

}  // namespace mercury
