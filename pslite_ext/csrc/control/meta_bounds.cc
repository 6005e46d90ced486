#include "control/meta_bounds.h"

#include <cstddef>
#include <cstring>

#include "meta.h"
#include "ps/internal/message.h"

namespace mercury {

Status CheckMeta(const char* meta, size_t bytes) {
  ps::RawMeta raw;
  if (bytes < sizeof(raw)) return Status::Corrupt("meta shorter than its fixed part");
  // A bool that is neither 0 nor 1 is undefined behaviour the moment it is read.
  for (size_t at : {offsetof(ps::RawMeta, request), offsetof(ps::RawMeta, push),
                    offsetof(ps::RawMeta, simple_app)}) {
    if ((meta[at] & ~1) != 0) return Status::Corrupt("meta with a flag that is neither 0 nor 1");
  }
  std::memcpy(&raw, meta, sizeof(raw));
  if (raw.body_size < 0 || static_cast<size_t>(raw.body_size) > kMetaBodyBytesMax) {
    return Status::Corrupt("meta with a body of " + std::to_string(raw.body_size) + " bytes");
  }
  if (raw.data_type_size < 0 || raw.data_type_size > 16) {
    return Status::Corrupt("meta with " + std::to_string(raw.data_type_size) + " data types");
  }
  const int nodes = raw.control.node_size;
  if (nodes < 0 || nodes > kMetaNodesMax) {
    return Status::Corrupt("meta with " + std::to_string(nodes) + " nodes");
  }
  if (raw.control.cmd < ps::Control::EMPTY || raw.control.cmd > ps::Control::ADDR_RESOLVED) {
    return Status::Corrupt("meta with control command " + std::to_string(raw.control.cmd));
  }
  const size_t body = static_cast<size_t>(raw.body_size);
  const size_t types = static_cast<size_t>(raw.data_type_size) * sizeof(int);
  // UnpackMeta reads types and nodes where they lie, so they have to lie aligned.
  if (types != 0 && body % sizeof(int) != 0) return Status::Corrupt("meta out of alignment");
  if (nodes != 0 && (body + types) % alignof(ps::RawNode) != 0) {
    return Status::Corrupt("meta out of alignment");
  }
  if (bytes != sizeof(raw) + body + types + static_cast<size_t>(nodes) * sizeof(ps::RawNode)) {
    return Status::Corrupt("meta whose counts and length disagree");
  }
  const char* types_at = meta + sizeof(raw) + body;
  for (int i = 0; i < raw.data_type_size; ++i) {
    int type;
    std::memcpy(&type, types_at + static_cast<size_t>(i) * sizeof(int), sizeof(type));
    if (type < ps::CHAR || type > ps::OTHER) return Status::Corrupt("meta with an unknown type");
  }
  for (int i = 0; i < nodes; ++i) {
    ps::RawNode node;
    const char* node_at = types_at + types + static_cast<size_t>(i) * sizeof(node);
    if ((node_at[offsetof(ps::RawNode, is_recovery)] & ~1) != 0) {
      return Status::Corrupt("meta with a flag that is neither 0 nor 1");
    }
    std::memcpy(&node, node_at, sizeof(node));
    if (node.role < ps::Node::SERVER || node.role > ps::Node::SCHEDULER) {
      return Status::Corrupt("meta with a node of role " + std::to_string(node.role));
    }
    if (std::memchr(node.hostname, 0, sizeof(node.hostname)) == nullptr) {
      return Status::Corrupt("meta with an endless host name");
    }
    if (node.endpoint_name_len > sizeof(node.endpoint_name)) {
      return Status::Corrupt("meta with an endless endpoint name");
    }
  }
  return Status::Ok();
}

}  // namespace mercury
