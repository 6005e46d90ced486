#include "fabric/net/mailbox.h"

#include <algorithm>
#include <utility>

namespace mercury::fabric {

void Mailbox::Expect(size_t elements, bool two_vectors) {
  vector_bytes_ = elements * sizeof(float);
  transfer_bytes_most_ = vector_bytes_ * (two_vectors ? 2 : 1);
}

void Mailbox::Post(const Letter& letter) {
  letters_.push_back(std::make_shared<const std::string>(Encode(letter)));
}

bool Mailbox::Next(OutPacket* out) {
  if (letters_.empty()) return false;
  const std::shared_ptr<const std::string> letter = letters_.front();
  out->header.kind = mercury::Kind::kLetter;
  out->header.tensor = static_cast<uint32_t>(letter->size());
  out->header.offset = sent_;
  out->header.length = static_cast<uint32_t>(std::min(packet_bytes_, letter->size() - sent_));
  out->payload = letter->data() + sent_;
  out->keep = letter;
  sent_ += out->header.length;
  if (sent_ == letter->size()) {
    letters_.pop_front();
    sent_ = 0;
  }
  return true;
}

Status Mailbox::OnHeader(const Header& header, int64_t now_us, char** target) {
  if (header.kind == mercury::Kind::kGoodbye) return Status::Ok();
  if (header.kind == mercury::Kind::kPart) return BeginPart(header, now_us, target);
  if (header.kind != mercury::Kind::kLetter) {
    return Status::Corrupt("a packet that MLfabric does not know");
  }
  const size_t size = header.tensor;
  if (size > kLetterBytesMax || header.length == 0 || header.offset != come_ ||
      header.length > size - std::min(size, come_) || (come_ != 0 && size != coming_.size())) {
    return Status::Corrupt("a piece of a letter that does not fit");
  }
  if (come_ == 0) coming_.assign(size, '\0');
  *target = coming_.data() + come_;
  return Status::Ok();
}

Status Mailbox::BeginPart(const Header& header, int64_t now_us, char** target) {
  const auto found = transfers_.find(header.tensor);
  const size_t have = found == transfers_.end() ? 0 : found->second.bytes;
  if (header.length == 0 || header.length % sizeof(float) != 0 || header.offset != have ||
      have >= transfer_bytes_most_ || have % vector_bytes_ + header.length > vector_bytes_) {
    return Status::Corrupt("a part of a transfer that does not fit a model");
  }
  if (found == transfers_.end() && transfers_.size() >= kTransfersMost) {
    return Status::Corrupt("more than " + std::to_string(kTransfersMost) + " transfers at once");
  }
  Transfer& transfer = transfers_[header.tensor];
  if (have == 0) transfer.first_us = now_us;
  std::shared_ptr<Vector>& vector = transfer.vectors[have / vector_bytes_];
  if (vector == nullptr) vector = std::make_shared<Vector>(vector_bytes_ / sizeof(float));
  *target = reinterpret_cast<char*>(vector->data()) + have % vector_bytes_;
  return Status::Ok();
}

Status Mailbox::OnPacket(const Header& header, int64_t now_us, std::optional<Letter>* letter) {
  if (header.kind == mercury::Kind::kPart) {
    Transfer& transfer = transfers_[header.tensor];
    transfer.bytes += header.length;
    transfer.last_us = now_us;
    return Status::Ok();
  }
  if (header.kind != mercury::Kind::kLetter) return Status::Ok();
  come_ += header.length;
  if (come_ < coming_.size()) return Status::Ok();
  come_ = 0;
  const std::string bytes = std::move(coming_);
  coming_.clear();
  return Decode(bytes, &letter->emplace());
}

Status Mailbox::Take(int64_t number, Haul* haul) {
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
