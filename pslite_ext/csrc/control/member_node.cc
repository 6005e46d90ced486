#include "control/member_node.h"

#include <cstring>

namespace mercury {
namespace {

// ps-lite's node has no field for what follows: it travels as the endpoint's name.
constexpr size_t kDataPlaneBytes = 4;

struct DataPlane {
  uint16_t port;
  uint8_t asynchronous, entry;
};
static_assert(sizeof(DataPlane) == kDataPlaneBytes);

void GetDataPlane(const ps::Node& node, Member* member) {
  if (node.endpoint_name_len != kDataPlaneBytes) return;
  DataPlane plane;
  std::memcpy(&plane, node.endpoint_name, sizeof(plane));
  member->data_port = plane.port;
  member->asynchronous = plane.asynchronous != 0;
  member->entry = plane.entry;
}

}  // namespace

void SetDataPlane(ps::Node* node, const Member& member) {
  const DataPlane plane{static_cast<uint16_t>(member.data_port), member.asynchronous, member.entry};
  std::memset(node->endpoint_name, 0, sizeof(node->endpoint_name));
  std::memcpy(node->endpoint_name, &plane, sizeof(plane));
  node->endpoint_name_len = kDataPlaneBytes;
}

ps::Node ToNode(const Member& m) {
  ps::Node node;
  node.role = static_cast<ps::Node::Role>(m.role);
  node.id = m.id;
  node.customer_id = 0;
  node.hostname = m.host;
  node.port = m.port;
  node.aux_id = m.rank_hint;
  SetDataPlane(&node, m);
  return node;
}

Member ToMember(const ps::Node& node, uint64_t life, int id) {
  Member m;
  m.role = static_cast<Role>(node.role);
  m.host = node.hostname;
  m.port = node.port;
  m.rank_hint = node.aux_id;
  m.life = life;
  m.id = id;
  GetDataPlane(node, &m);
  return m;
}

}  // namespace mercury
