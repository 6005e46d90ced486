// A node's end of all its links in an MLfabric job: docks, the clock, and the node's part.
//
// Letters about the start and failure of the job go to the node itself (`control`). Questions about
// the time are answered here. Everything else goes to the part. Transfers that arrive are timed,
// and their rates reported to the scheduler.
//
// Thread-safety: none; the lane owns it and calls it on its own thread. No clock: `now_us` is
// passed in. Ownership: the part is the caller's, and lives until the end. Invariants: the part
// hears nothing of a peer after Gone; nothing is accepted from, or sent to, a peer that was not
// opened.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "fabric/net/dock.h"
#include "fabric/net/part.h"
#include "links/endpoint.h"
#include "trace/clock_offset.h"

namespace mercury::fabric {

class NodeEndpoint : public Endpoint, public Outbox {
 public:
  using Control = std::function<Status(int peer, const Letter& letter)>;
  NodeEndpoint(int node, size_t packet_bytes, Control control, SpareVectors spares = {})
      : node_(node),
        packet_bytes_(packet_bytes),
        control_(std::move(control)),
        spares_(std::move(spares)) {}

  // From now on, such transfers may come, and the part hears what is said.
  void Play(Part* part, const Expected& expected);
  void Open(int peer);
  void Close(int peer, int64_t now_us);
  void Turn(int64_t now_us);
  // Asks the scheduler.
  void AskTime(int64_t now_us);
  // Whether all letters are handed over.
  bool all_said() const;
  double SchedulerTime(int64_t now_us) const;

  Status OnHeader(int peer, const Header& header, int64_t now_us, char** target) override;
  Status OnPacket(int peer, const Header& header, int64_t now_us) override;
  bool Next(int peer, int64_t now_us, OutPacket* out) override;
  int64_t WakeAt(int peer) const override;

  void Post(int peer, const Letter& letter) override;
  bool Linked(int peer) const override { return docks_.count(peer) != 0; }

 private:
  Expected ExpectedOf(int peer) const;
  Status Hear(int peer, const Letter& letter, int64_t now_us);
  Status TakeTime(int peer, const TimeLetter& time, int64_t now_us);
  void SayCarried(int peer, const Haul& haul, bool passed_on);

  const int node_;
  const size_t packet_bytes_;
  const Control control_;
  const SpareVectors spares_;
  Part* part_ = nullptr;
  Expected expected_;
  std::map<int, std::unique_ptr<Dock>> docks_;
  ClockOffset clock_;
  int64_t add_us_ = 0;  // gives the scheduler's time
  bool timed_ = false;
  int64_t now_us_ = 0;
};

}  // namespace mercury::fabric
