// What a replica does with what goes to the server through it.
#include <memory>
#include <variant>

#include "fabric/net/model_part.h"

namespace mercury::fabric {

// Whole, it is heard of as what is for the replica itself (TakeGroup).
void ModelPart::Relay(int peer, const Letter& letter, const std::shared_ptr<const Inflow>& inflow) {
  const auto* updates = std::get_if<UpdatesLetter>(&letter);
  const bool replica = options_.role == Role::kReplica && !options_.follows() && !is_server();
  if (updates == nullptr || updates->goal != Goal::kServer || !replica || stopped()) return;
  if (NodeOf(peer) >= 0) sender_.PassOn(server_peer_, *updates, inflow);
}

}  // namespace mercury::fabric
