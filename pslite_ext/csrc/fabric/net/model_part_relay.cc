// What a replica does with what goes to the server through it.
#include <algorithm>
#include <memory>
#include <variant>
#include <vector>

#include "fabric/live/places.h"
#include "fabric/net/model_part.h"

namespace mercury::fabric {

// Whole, it is heard of as what is for the replica itself (TakeGroup). What that would refuse goes
// no further.
void ModelPart::Relay(int peer, const Letter& letter, const std::shared_ptr<const Inflow>& inflow) {
  const auto* updates = std::get_if<UpdatesLetter>(&letter);
  const bool replica = options_.role == Role::kReplica && !options_.follows() && !is_server();
  if (updates == nullptr || updates->goal != Goal::kServer || !replica || stopped()) return;
  const size_t least = updates->two ? 2 : 1;
  if (NodeOf(peer) < 0 || updates->places.size() < least) return;
  sender_.PassOn(server_peer_, *updates, inflow);
}

// What the server would discard is not sent to its end.
void ModelPart::RelayNoMore(const std::vector<int64_t>& places) {
  sender_.Drop([&](const UpdatesLetter& its) {
    return std::any_of(its.places.begin(), its.places.end(),
                       [&](int64_t place) { return Contains(places, place); });
  });
}

}  // namespace mercury::fabric
