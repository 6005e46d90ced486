// Asks a policy for its next packets, as tests of policies do.
#pragma once

#include <string>

#include "policy/policy.h"

// The portions of which the next packets are, as digits; each is one whole slot.
inline std::string Order(mercury::Policy* policy, int packets, uint64_t bytes = 100) {
  std::string order;
  uint64_t portion;
  for (int i = 0; i < packets && policy->Next(0, &portion); ++i) {
    order += std::to_string(portion);
    policy->Sent(portion, bytes, true, 0);
  }
  return order;
}
