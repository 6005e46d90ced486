#include "letters/letter_endpoint.h"

namespace mercury {

Status LetterEndpoint::OnPacket(int peer, const Header& header, int64_t now_us) {
  if (header.kind == PacketKind::kLetter) {
    std::optional<std::string> letter;
    Of(peer)->OnPacket(header, &letter);
    return letter ? hears_.letter(peer, *letter, now_us) : Status::Ok();
  }
  const Status status = rest_->OnPacket(peer, header, now_us);
  if (header.kind == PacketKind::kGoodbye) hears_.goodbye(peer, header.offset == 0);
  return status;
}

}  // namespace mercury
