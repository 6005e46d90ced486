#include "fabric/net/dock.h"

#include <utility>

#include "base/check.h"

namespace mercury::fabric {

void Dock::Expect(size_t elements, bool two_vectors) {
  vector_bytes_ = elements * sizeof(float);
  transfer_bytes_most_ = vector_bytes_ * (two_vectors ? 2 : 1);
}

Status Dock::OnHeader(const Header& header, int64_t now_us, char** target) {
  if (header.kind == PacketKind::kGoodbye) return Status::Ok();
  if (header.kind == PacketKind::kPart) return BeginPart(header, now_us, target);
  if (header.kind != PacketKind::kLetter) {
    return Status::Corrupt("a packet that MLfabric does not know");
  }
  return letters_.OnHeader(header, target);
}

Status Dock::BeginPart(const Header& header, int64_t now_us, char** target) {
  const auto found = transfers_.find(header.tensor);
  const size_t have = found == transfers_.end() ? 0 : found->second.bytes;
  if (header.length == 0 || header.length % sizeof(float) != 0 || header.offset != have ||
      have >= transfer_bytes_most_ || have % vector_bytes_ + header.length > vector_bytes_) {
    return Status::Corrupt("a part of a transfer that does not fit a model");
  }
  if (found == transfers_.end() && transfers_.size() >= kTransfersMost) {
    return Status::Corrupt("more than " + std::to_string(kTransfersMost) + " transfers at once");
  }
  Incoming& transfer = transfers_[header.tensor];
  if (have == 0) transfer.first_us = now_us;
  std::shared_ptr<Vector>& vector = transfer.vectors[have / vector_bytes_];
  if (vector == nullptr) vector = spares_.Get(vector_bytes_ / sizeof(float));
  *target = reinterpret_cast<char*>(vector->data()) + have % vector_bytes_;
  return Status::Ok();
}

Status Dock::OnPacket(const Header& header, int64_t now_us, std::optional<Letter>* letter) {
  if (header.kind == PacketKind::kPart) {
    Incoming& transfer = transfers_.at(header.tensor);
    transfer.bytes += header.length;
    MERCURY_CHECK(transfer.bytes <= transfer_bytes_most_ && transfers_.size() <= kTransfersMost);
    transfer.last_us = now_us;
    return Status::Ok();
  }
  if (header.kind != PacketKind::kLetter) return Status::Ok();
  std::optional<std::string> bytes;
  letters_.OnPacket(header, &bytes);
  return bytes ? Decode(*bytes, &letter->emplace()) : Status::Ok();
}

Status Dock::Take(int64_t number, Haul* haul) {
  const auto found = transfers_.find(number);
  if (found == transfers_.end() ||
      (found->second.bytes != vector_bytes_ && found->second.bytes != 2 * vector_bytes_)) {
    return Status::Corrupt("a transfer that is said to be whole, and is not");
  }
  haul->cargo = {std::move(found->second.vectors[0]), std::move(found->second.vectors[1])};
  haul->first_us = found->second.first_us;
  haul->last_us = found->second.last_us;
  transfers_.erase(found);
  return Status::Ok();
}

}  // namespace mercury::fabric
