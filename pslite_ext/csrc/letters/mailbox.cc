#include "letters/mailbox.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace mercury {

bool Mailbox::Next(OutPacket* out) {
  if (letters_.empty()) return false;
  const std::shared_ptr<const std::string> letter = letters_.front();
  MERCURY_CHECK(sent_ < letter->size());
  out->header.kind = PacketKind::kLetter;
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

Status Mailbox::OnHeader(const Header& header, char** target) {
  const size_t size = header.tensor;
  if (size > letter_bytes_max_ || header.length == 0 || header.offset != come_ ||
      header.length > size - std::min(size, come_) || (come_ != 0 && size != coming_.size())) {
    return Status::Corrupt("a piece of a letter that does not fit");
  }
  if (come_ == 0) coming_.assign(size, '\0');
  *target = coming_.data() + come_;
  return Status::Ok();
}

void Mailbox::OnPacket(const Header& header, std::optional<std::string>* letter) {
  come_ += header.length;
  MERCURY_CHECK(come_ <= coming_.size() && coming_.size() <= letter_bytes_max_);
  if (come_ < coming_.size()) return;
  come_ = 0;
  *letter = std::exchange(coming_, {});
}

}  // namespace mercury
