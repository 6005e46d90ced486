// A member of the job as ps-lite's node, which is what travels, and back.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>

#include "control/membership.h"
#include "ps/internal/message.h"

namespace mercury {

// Where a node takes tensors as packets, and whether its training is asynchronous.
void SetDataPlane(ps::Node* node, const Member& member);
ps::Node ToNode(const Member& member);
Member ToMember(const ps::Node& node, uint64_t life, int id);

}  // namespace mercury
