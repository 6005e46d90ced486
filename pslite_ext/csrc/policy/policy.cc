#include "policy/policy.h"

#include <algorithm>

#include "base/packet_alignment.h"

namespace mercury {
namespace {

struct Named {
  const char* name;
  PolicyKind kind;
};
constexpr Named kPolicies[] = {{"mercury", PolicyKind::kMercury},
                               {"fifo", PolicyKind::kFifo},
                               {"wfbp", PolicyKind::kWfbp},
                               {"p3", PolicyKind::kP3},
                               {"bytescheduler", PolicyKind::kByteScheduler},
                               {"prophet", PolicyKind::kProphet}};

}  // namespace

Status ParsePolicy(const std::string& name, PolicyKind* kind) {
  std::string all;
  for (const Named& policy : kPolicies) {
    if (name == policy.name) {
      *kind = policy.kind;
      return Status::Ok();
    }
    all += std::string(all.empty() ? "" : ", ") + policy.name;
  }
  return Status::InvalidArgument("there is no policy '" + name + "'; there are " + all);
}

const char* Name(PolicyKind kind) {
  for (const Named& policy : kPolicies) {
    if (policy.kind == kind) return policy.name;
  }
  return "unknown";
}

bool Acknowledges(PolicyKind kind) {
  return kind == PolicyKind::kP3 || kind == PolicyKind::kByteScheduler;
}

uint64_t DefaultUnitBytes(PolicyKind kind) {
  if (kind == PolicyKind::kP3) return 200000;  // 50,000 parameters
  if (kind == PolicyKind::kByteScheduler) return 4 << 20;
  return 0;
}

uint64_t UnitSlots(PolicyKind kind, uint64_t unit_bytes, uint64_t slot_bytes, uint64_t slots) {
  if (unit_bytes == 0) unit_bytes = DefaultUnitBytes(kind);
  switch (kind) {
    case PolicyKind::kMercury:
    case PolicyKind::kFifo:
    case PolicyKind::kProphet:
      return 1;
    case PolicyKind::kWfbp:
      return std::max<uint64_t>(slots, 1);
    case PolicyKind::kP3:
    case PolicyKind::kByteScheduler:
      return std::max<uint64_t>(unit_bytes / std::max<uint64_t>(slot_bytes, 1), 1);
  }
  return 1;
}

uint64_t PacketBytes(double bytes_per_second, uint64_t most) {
  constexpr double kPacketSeconds = 0.8e-3;
  constexpr uint64_t kLeast = 16 << 10;
  uint64_t bytes = most;
  while (bytes / 2 >= kLeast && static_cast<double>(bytes) > bytes_per_second * kPacketSeconds) {
    bytes /= 2;
  }
  return std::max(bytes / kPacketAlignment * kPacketAlignment, kPacketAlignment);
}

std::unique_ptr<Policy> MakePolicy(const PolicyOptions& options) {
  switch (options.kind) {
    case PolicyKind::kMercury:
    case PolicyKind::kFifo:
      return MakePacketPolicy(options);
    case PolicyKind::kProphet:
      return MakeProphetPolicy(options);
    default:
      return MakeUnitPolicy(options);
  }
}

}  // namespace mercury
