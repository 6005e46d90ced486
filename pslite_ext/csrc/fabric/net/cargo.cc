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

CargoShape::Spot CargoShape::At(size_t offset) const {
  Spot spot = InStripe(offset);
  if (stripe.count == 1) return spot;
  const size_t element = TransferBytes(codec, 1);
  const size_t at = spot.at / element;
  spot.most = std::min(spot.most, stripe.Run(at) * element - spot.at % element);
  if (!by_itself) spot.at = stripe.In(at) * element + spot.at % element;
  return spot;
}

CargoShape::Spot CargoShape::InStripe(size_t offset) const {
  if (vectors == 1) return {false, offset, vector_bytes() - offset};
  const size_t block = TransferBytes(codec, kBlockElements);
  const size_t begin = offset / (2 * block) * block;  // of the block in its vector
  const size_t within = offset % (2 * block);
  const size_t length = std::min(block, vector_bytes() - begin);
  const bool second = within >= length;
  const size_t in_block = second ? within - length : within;
  return {second, begin + in_block, length - in_block};
}

size_t CargoShape::ElementsIn(size_t from_beginning) const {
  const size_t element = TransferBytes(codec, 1);
  if (vectors == 1) return from_beginning / element;
  const size_t block = TransferBytes(codec, kBlockElements);
  const size_t begin = std::min(from_beginning / (2 * block) * block, vector_bytes());
  const size_t within = from_beginning % (2 * block);
  const size_t length = std::min(block, vector_bytes() - begin);
  return (begin + (within > length ? within - length : 0)) / element;
}

size_t CargoShape::BytesOf(size_t elements_there) const {
  const size_t element = TransferBytes(codec, 1);
  if (vectors == 1) return elements_there * element;
  if (elements_there == elements) return bytes();
  const size_t blocks = elements_there / kBlockElements;
  return 2 * blocks * TransferBytes(codec, kBlockElements) +
         elements_there % kBlockElements * element;
}

size_t CargoShape::BytesUntil(size_t elements_in) const {
  const size_t element = TransferBytes(codec, 1);
  if (vectors == 1) return elements_in * element;
  const size_t begin = (elements_in - 1) / kBlockElements * kBlockElements;
  const size_t block = std::min(kBlockElements, elements - begin);
  return (2 * begin + block + elements_in - begin) * element;
}

size_t CargoShape::ElementsFor(size_t offset) const {
  const size_t element = TransferBytes(codec, 1);
  if (vectors == 1) return offset / element + 1;
  const Spot spot = InStripe(offset);
  const size_t at = spot.at / element;
  return spot.step ? std::min(at / kBlockElements * kBlockElements + kBlockElements, elements)
                   : at + 1;
}

OutPacket PartOf(const Cargo& cargo, int64_t number, size_t offset, size_t most) {
  const size_t element_bytes = TransferBytes(cargo.codec, 1);
  const CargoShape::Spot spot = cargo.shape().At(offset);
  const std::shared_ptr<const Vector>& vector = spot.step ? cargo.step : cargo.sum;
  const size_t whole = std::max(most / element_bytes, size_t{1}) * element_bytes;
  OutPacket out;
  out.header.tensor = static_cast<uint32_t>(number);
  out.header.offset = offset;
  out.header.length = static_cast<uint32_t>(std::min(whole, spot.most));
  const auto* values = reinterpret_cast<const char*>(vector->data() + spot.at / element_bytes);
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
