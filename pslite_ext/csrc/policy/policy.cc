#include "policy/policy.h"

#include <algorithm>

#include "base/packet_alignment.h"

namespace mercury {
namespace {

// What is sent, and answered by a server, as a whole.
enum class Unit { kSlot, kTensor, kPartition };

struct Row {
  PolicyKind kind;
  const char* name;
  std::unique_ptr<Policy> (*make)(const PolicyOptions& options);
  Unit unit;
  uint64_t unit_bytes;
  bool acknowledges;
};
constexpr Row kPolicies[] = {
#define MERCURY_ROW(kind, number, name, make, unit, bytes, acknowledges) \
  {PolicyKind::kind, name, make, Unit::unit, bytes, acknowledges},
    MERCURY_POLICIES(MERCURY_ROW)
#undef MERCURY_ROW
};

const Row* Find(PolicyKind kind) {
  for (const Row& row : kPolicies) {
    if (row.kind == kind) return &row;
  }
  return nullptr;
}

}  // namespace

Status ParsePolicy(const std::string& name, PolicyKind* kind) {
  for (const Row& row : kPolicies) {
    if (name != row.name) continue;
    *kind = row.kind;
    return Status::Ok();
  }
  return Status::InvalidArgument("MERCURY_POLICY is '" + name + "'; allowed: " + PolicyNames());
}

std::string PolicyNames() {
  std::string all;
  for (const Row& row : kPolicies) all += std::string(all.empty() ? "" : ", ") + row.name;
  return all;
}

const char* Name(PolicyKind kind) {
  const Row* row = Find(kind);
  return row == nullptr ? "unknown" : row->name;
}

bool Acknowledges(PolicyKind kind) {
  const Row* row = Find(kind);
  return row != nullptr && row->acknowledges;
}

bool AnswersUnits(PolicyKind kind) {
  const Row* row = Find(kind);
  return row != nullptr && row->unit != Unit::kSlot;
}

bool Preempts(PolicyKind kind) { return kind != PolicyKind::kFifo && !AnswersUnits(kind); }

uint64_t DefaultUnitBytes(PolicyKind kind) {
  const Row* row = Find(kind);
  return row == nullptr ? 0 : row->unit_bytes;
}

uint64_t UnitSlots(PolicyKind kind, uint64_t unit_bytes, uint64_t slot_bytes, uint64_t slots) {
  const Row* row = Find(kind);
  if (row == nullptr || row->unit == Unit::kSlot) return 1;
  if (row->unit == Unit::kTensor) return std::max<uint64_t>(slots, 1);
  if (unit_bytes == 0) unit_bytes = row->unit_bytes;
  return std::max<uint64_t>(unit_bytes / std::max<uint64_t>(slot_bytes, 1), 1);
}

uint64_t PacketBytes(double bytes_per_second, uint64_t most) {
  constexpr double kPacketSeconds = 0.6e-3;
  constexpr uint64_t kLeast = 4 << 10;
  uint64_t bytes = most;
  while (bytes / 2 >= kLeast && static_cast<double>(bytes) > bytes_per_second * kPacketSeconds) {
    bytes /= 2;
  }
  return std::max(bytes / kPacketAlignment * kPacketAlignment, kPacketAlignment);
}

std::unique_ptr<Policy> MakePolicy(const PolicyOptions& options) {
  const Row* row = Find(options.kind);
  return (row == nullptr ? kPolicies[0] : *row).make(options);
}

}  // namespace mercury
