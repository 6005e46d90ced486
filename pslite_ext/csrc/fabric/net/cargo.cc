#include "fabric/net/cargo.h"

#include <algorithm>

namespace mercury::fabric {

OutPacket PartOf(const Cargo& cargo, int64_t number, size_t offset, size_t most) {
  const size_t vector_bytes = cargo.sum->size() * sizeof(float);
  const std::shared_ptr<const Vector>& vector = offset < vector_bytes ? cargo.sum : cargo.step;
  const size_t within = offset % vector_bytes;
  const size_t whole = std::max(most / sizeof(float), size_t{1}) * sizeof(float);
  OutPacket out;
  out.header.kind = PacketKind::kPart;
  out.header.tensor = static_cast<uint32_t>(number);
  out.header.offset = offset;
  out.header.length = static_cast<uint32_t>(std::min(whole, vector_bytes - within));
  out.payload = reinterpret_cast<const char*>(vector->data()) + within;
  out.keep = vector;
  return out;
}

}  // namespace mercury::fabric
