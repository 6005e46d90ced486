#include "fabric/net/cargo.h"

#include <algorithm>
#include <limits>

namespace mercury::fabric {

const Codec* CargoCodec(int64_t number) {
  const bool known = number > 0 && number <= std::numeric_limits<uint8_t>::max();
  const Codec* codec = known ? FindCodec(static_cast<uint8_t>(number)) : nullptr;
  const bool fits = codec != nullptr && !codec->plain && codec->back && !codec->has_parameter &&
                    codec->dtype == DType::kFloat32 && codec->bytes(1) * 2 == codec->bytes(2);
  return fits ? codec : nullptr;
}

OutPacket PartOf(const Cargo& cargo, int64_t number, size_t offset, size_t most) {
  const size_t vector_bytes = TransferBytes(cargo.codec, cargo.sum->size());
  const size_t element_bytes = TransferBytes(cargo.codec, 1);
  const std::shared_ptr<const Vector>& vector = offset < vector_bytes ? cargo.sum : cargo.step;
  const size_t within = offset % vector_bytes;
  const size_t whole = std::max(most / element_bytes, size_t{1}) * element_bytes;
  OutPacket out;
  out.header.tensor = static_cast<uint32_t>(number);
  out.header.offset = offset;
  out.header.length = static_cast<uint32_t>(std::min(whole, vector_bytes - within));
  const auto* values = reinterpret_cast<const char*>(vector->data() + within / element_bytes);
  if (cargo.codec == nullptr) {
    out.header.kind = PacketKind::kPart;
    out.payload = values;
    out.keep = vector;
    return out;
  }
  const std::shared_ptr<char[]> coded(new char[out.header.length]);
  cargo.codec->encode(0, values, nullptr, out.header.length / element_bytes, coded.get());
  out.header.kind = PacketKind::kCodedPart;
  out.payload = coded.get();
  out.keep = coded;
  return out;
}

}  // namespace mercury::fabric
