// How many links other processes and lanes of the job have on a node's host.
//
// Thread-safety: a pure function.
#pragma once

#include <vector>

#include "control/membership.h"

namespace mercury {

// For one lane of the node `me`: each worker has a link to each server in each lane, but those
// within a host use no network, and where a host's workers are summed (`host_sums`) only its
// leader's carry something.
int LinksBeside(const std::vector<Member>& members, int me, int lanes, bool host_sums = false);

}  // namespace mercury
