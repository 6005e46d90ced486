#include "fabric/net/dock.h"

#include <utility>

#include "base/check.h"

namespace mercury::fabric {
namespace {

bool IsPart(const Header& header) {
  return header.kind == PacketKind::kPart || header.kind == PacketKind::kCodedPart;
}

}  // namespace

Status Dock::OnHeader(const Header& header, int64_t now_us, char** target) {
  if (header.kind == PacketKind::kGoodbye) return Status::Ok();
  if (IsPart(header)) return BeginPart(header, now_us, target);
  if (header.kind != PacketKind::kLetter) {
    return Status::Corrupt("a packet that MLfabric does not know");
  }
  return letters_.OnHeader(header, target);
}

Status Dock::BeginPart(const Header& header, int64_t now_us, char** target) {
  const bool coded = header.kind == PacketKind::kCodedPart;
  if (coded && expected_.codec == nullptr) {
    return Status::Corrupt("a coded part, where nothing is coded");
  }
  const Codec* codec = coded ? expected_.codec : nullptr;
  const size_t vector_bytes = TransferBytes(codec, expected_.elements);
  const size_t element_bytes = TransferBytes(codec, 1);
  const size_t most = expected_.two_vectors ? 2 * vector_bytes : vector_bytes;
  const auto found = transfers_.find(header.tensor);
  const size_t have = found == transfers_.end() ? 0 : found->second.bytes;
  if (header.length == 0 || header.length % element_bytes != 0 || header.offset != have ||
      have >= most || have % vector_bytes + header.length > vector_bytes ||
      (have != 0 && found->second.codec != codec)) {
    return Status::Corrupt("a part of a transfer that does not fit a model");
  }
  if (found == transfers_.end() && transfers_.size() >= kTransfersMost) {
    return Status::Corrupt("more than " + std::to_string(kTransfersMost) + " transfers at once");
  }
  Incoming& transfer = transfers_[header.tensor];
  if (have == 0) transfer.first_us = now_us;
  transfer.codec = codec;
  std::shared_ptr<Vector>& vector = transfer.vectors[have / vector_bytes];
  if (vector == nullptr) vector = spares_.Get(expected_.elements);
  if (coded) {
    coded_.resize(header.length);
    *target = coded_.data();
  } else {
    *target = reinterpret_cast<char*>(vector->data()) + have % vector_bytes;
  }
  return Status::Ok();
}

void Dock::EndPart(const Header& header, int64_t now_us) {
  Incoming& transfer = transfers_.at(header.tensor);
  if (const Codec* codec = transfer.codec) {
    const size_t vector_bytes = TransferBytes(codec, expected_.elements);
    const size_t element_bytes = TransferBytes(codec, 1);
    Vector& vector = *transfer.vectors[transfer.bytes / vector_bytes];
    float* values = vector.data() + transfer.bytes % vector_bytes / element_bytes;
    codec->add(0, coded_.data(), header.length / element_bytes, reinterpret_cast<char*>(values),
               Into::kRoom);
  }
  transfer.bytes += header.length;
  MERCURY_CHECK(transfers_.size() <= kTransfersMost);
  transfer.last_us = now_us;
}

Status Dock::OnPacket(const Header& header, int64_t now_us, std::optional<Letter>* letter) {
  if (IsPart(header)) {
    EndPart(header, now_us);
    return Status::Ok();
  }
  if (header.kind != PacketKind::kLetter) return Status::Ok();
  std::optional<std::string> bytes;
  letters_.OnPacket(header, &bytes);
  return bytes ? Decode(*bytes, &letter->emplace()) : Status::Ok();
}

Status Dock::Take(int64_t number, Haul* haul) {
  const auto found = transfers_.find(number);
  const bool begun = found != transfers_.end();
  const size_t bytes = begun ? found->second.bytes : 0;
  const size_t vector_bytes = begun ? TransferBytes(found->second.codec, expected_.elements) : 0;
  if (!begun || (bytes != vector_bytes && bytes != 2 * vector_bytes)) {
    return Status::Corrupt("a transfer that is said to be whole, and is not");
  }
  haul->cargo = {std::move(found->second.vectors[0]), std::move(found->second.vectors[1]),
                 found->second.codec};
  haul->first_us = found->second.first_us;
  haul->last_us = found->second.last_us;
  transfers_.erase(found);
  return Status::Ok();
}

}  // namespace mercury::fabric
