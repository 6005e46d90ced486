// Prophet's Algorithm 1: which gradients are sent in one go, so that they just finish before a more
// urgent one appears.
//
// AssembleBlock is the step that senders take while they train; PlanIteration takes it again and
// again for an iteration that is known beforehand, as the model does.
//
// Thread-safety: pure functions, no clock. Times may be of any unit, if it is the same one.
// Invariants: a block is a prefix of the candidates; the first that does not fit as a whole closes
// it; its transfers end within the room of each of its candidates.
#pragma once

#include <cstdint>
#include <vector>

namespace mercury {

// A gradient that is ready. It is cut into units, or is one.
struct BlockCandidate {
  double unit_us = 0;  // on the wire
  uint64_t units = 1;  // that are left of it
  double room_us = 0;  // until a more urgent gradient is due
};

// How many units of each candidate are the block to send now, the most urgent candidate first.
// `startup_us` is paid once a block.
std::vector<uint64_t> AssembleBlock(const std::vector<BlockCandidate>& candidates,
                                    double startup_us);

// A gradient of an iteration; its index is its urgency, 0 being the most urgent.
struct PlannedGradient {
  double produced_us = 0;
  double wire_us = 0;
};

// When each gradient's transfer starts: in blocks until gradient 0 is there, then one after another
// by urgency. Only what the link idled before pays the startup time: the rest could be foreseen.
std::vector<double> PlanIteration(const std::vector<PlannedGradient>& gradients, double startup_us);

}  // namespace mercury
