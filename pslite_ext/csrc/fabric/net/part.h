// The part that a node plays in an MLfabric job: what it does with letters and transfers, and what
// it sends when. There is one for workers, one for nodes with the model, one for the scheduler.
//
// Thread-safety: none; the node's lane owns the part and its outbox. No I/O, no clock: `now_s` is
// by the scheduler's. Ownership: the outbox outlives the part.
#pragma once

#include <memory>
#include <string>

#include "fabric/live/letters.h"
#include "fabric/net/dock.h"

namespace mercury::fabric {

// Where letters go.
class Outbox {
 public:
  virtual ~Outbox() = default;
  // Nothing happens if there is no link to `peer` any more.
  virtual void Post(int peer, const Letter& letter) = 0;
  virtual bool Linked(int peer) const = 0;
};

class Part {
 public:
  virtual ~Part() = default;
  // `haul`: of a letter that announced a transfer, which is now whole. An error ends the link to
  // `peer`.
  virtual Status Hear(int peer, const Letter& letter, const Haul& haul, double now_s) = 0;
  // Where a transfer that a letter announces is to be put.
  virtual Landing Land(int /*peer*/, const Letter& /*letter*/) { return {}; }
  // A letter announces a transfer. It may be read while it comes, and is heard of again when whole.
  virtual void Coming(int /*peer*/, const Letter& /*letter*/,
                      const std::shared_ptr<const Inflow>& /*inflow*/) {}
  // The link to `peer` is no more, and nothing comes from it.
  virtual void Gone(int /*peer*/, double /*now_s*/) {}
  // Time has gone on.
  virtual void Turn(double /*now_s*/) {}
  // The next packet of a transfer to `peer`; false: none now. The letter that announces a transfer
  // is posted first, and none of its packets is given before it has gone.
  virtual bool Next(int /*peer*/, double /*now_s*/, OutPacket* /*out*/) { return false; }
  // When Turn, or Next for `peer`, has something to do by time alone.
  virtual double WakeAt(int /*peer*/, double /*now_s*/) const { return kNever; }
  // What has happened, as the members of a JSON object.
  virtual std::string Figures() const { return ""; }
};

}  // namespace mercury::fabric
