#include "links/packet_reader.h"

#include <algorithm>
#include <cstring>

#include "base/crc32c.h"

namespace mercury {
namespace {

constexpr size_t kDroppedAtOnce = 64 << 10;

}  // namespace

int PacketReader::Targets(iovec* pieces) {
  int count = 0;
  payload_room_ = 0;
  if (header_have_ == kHeaderBytes && payload_left_ != 0) {
    payload_room_ = payload_left_;
    if (target_ == nullptr) {
      payload_room_ = std::min(payload_left_, kDroppedAtOnce);
      dropped_.resize(kDroppedAtOnce);
    }
    pieces[count++] = {target_ != nullptr ? target_ : dropped_.data(), payload_room_};
  }
  ahead_room_ = payload_room_ == payload_left_ ? ahead_.size() : 0;
  if (ahead_room_ != 0) pieces[count++] = {ahead_.data(), ahead_room_};
  return count;
}

size_t PacketReader::missing() const {
  if (header_have_ < kHeaderBytes) return kHeaderBytes - header_have_;
  return payload_left_ + (checksum_ ? kChecksumBytes - checksum_have_ : 0);
}

void PacketReader::CountPayload(size_t bytes) {
  const char* at = target_ != nullptr ? target_ : dropped_.data();
  if (checksum_) crc_ = Crc32c(crc_, at, bytes);
  if (target_ != nullptr) target_ += bytes;
  payload_left_ -= bytes;
}

Status PacketReader::Advance(size_t bytes) {
  const size_t payload = std::min(bytes, payload_room_);
  if (payload != 0) {
    CountPayload(payload);
    if (payload_left_ == 0 && !checksum_) {
      Status status = EndPacket();
      if (!status.ok()) return status;
    }
  }
  return Take(ahead_.data(), std::min(bytes - payload, ahead_room_));
}

Status PacketReader::Take(const char* data, size_t bytes) {
  while (bytes != 0) {
    size_t taken;
    Status status;
    if (header_have_ < kHeaderBytes) {
      taken = std::min(bytes, kHeaderBytes - header_have_);
      std::memcpy(raw_header_.data() + header_have_, data, taken);
      header_have_ += taken;
      if (header_have_ == kHeaderBytes) status = BeginPacket();
    } else if (payload_left_ != 0) {
      taken = std::min(bytes, payload_left_);
      if (checksum_) crc_ = Crc32c(crc_, data, taken);
      if (target_ != nullptr) {
        std::memcpy(target_, data, taken);
        target_ += taken;
      }
      payload_left_ -= taken;
      if (payload_left_ == 0 && !checksum_) status = EndPacket();
    } else {
      taken = std::min(bytes, kChecksumBytes - checksum_have_);
      std::memcpy(raw_checksum_.data() + checksum_have_, data, taken);
      checksum_have_ += taken;
      if (checksum_have_ == kChecksumBytes) status = EndPacket();
    }
    if (!status.ok()) return status;
    data += taken;
    bytes -= taken;
  }
  return Status::Ok();
}

Status PacketReader::BeginPacket() {
  Status status = Decode(raw_header_.data(), packet_bytes_max_, &header_);
  if (!status.ok()) return status;
  target_ = nullptr;
  payload_left_ = header_.length;
  checksum_have_ = 0;
  crc_ = 0;
  status = sink_->OnHeader(header_, &target_);
  if (!status.ok()) return status;
  return payload_left_ == 0 && !checksum_ ? EndPacket() : Status::Ok();
}

Status PacketReader::EndPacket() {
  if (checksum_) {
    uint32_t told = 0;
    for (size_t i = 0; i < kChecksumBytes; ++i) told |= uint32_t{raw_checksum_[i]} << (8 * i);
    if (told != PacketCrc(crc_, raw_header_)) {
      return Status::Corrupt("a packet whose checksum is wrong: bytes were changed on the way");
    }
  }
  header_have_ = 0;
  return sink_->OnPacket(header_);
}

}  // namespace mercury
