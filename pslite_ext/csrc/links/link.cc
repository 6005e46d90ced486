#include "links/link.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "base/clock.h"
#include "base/crc32c.h"

namespace mercury {
namespace {

constexpr size_t kPacketsAtOnce = 64;      // in one call of the system
constexpr size_t kBytesAtOnce = 64 << 10;  // after which no further packet is added
constexpr size_t kRestBytes = 1 << 10;     // of a batch, which go with it: no call of their own
constexpr size_t kTurnBytes = 512 << 10;   // read, or written, then it is another link's turn

// With less, links would run dry while a busy host's processors are elsewhere.
constexpr uint64_t kUnsentBytesFloor = 4 << 10;

constexpr int kLastTurns = 16;  // of reading, once nothing can be sent any more

}  // namespace

Link::Link(std::unique_ptr<Channel> channel, int peer, Endpoint* endpoint,
           const LinkOptions& options)
    : channel_(std::move(channel)),
      peer_(peer),
      endpoint_(endpoint),
      options_(options),
      reader_(options.packet_bytes_max, options.checksum, this),
      progress_(options.silence_us) {
  pieces_.reserve(3 * kPacketsAtOnce);
  headers_.reserve(kPacketsAtOnce);
  checksums_.reserve(kPacketsAtOnce);
  kept_.reserve(kPacketsAtOnce);
}

// Of a batch that is not written to its end, some may be lent already.
Link::~Link() {
  try {
    channel_->Keep(&kept_);
  } catch (const std::bad_alloc&) {
    kept_.clear();  // the job fails for it: nobody makes use of what is read
  }
}

Status Link::Read(int64_t now_us) {
  now_us_ = now_us;
  for (size_t total = 0; total < kTurnBytes;) {
    iovec pieces[2];
    msghdr message{};
    message.msg_iov = pieces;
    message.msg_iovlen = static_cast<size_t>(reader_.Targets(pieces));
    ++counters_.receive_calls;
    const ssize_t got = channel_->Receive(&message);
    if (got < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) {
        WakeWhenWhole();
        return Status::Ok();
      }
      if (errno == EPROTO) return Status::Corrupt("it breaks the rules of shared memory");
      const std::string why = std::strerror(errno);
      if (errno == ENOMEM || errno == ENOBUFS) return Status::Exhausted("cannot receive: " + why);
      return Broken("its connection broke: " + why);
    }
    if (got == 0) {
      return Broken("its connection was closed");
    }
    if (options_.trace != nullptr) now_us_ = NowUs();
    counters_.bytes_received += static_cast<uint64_t>(got);
    total += static_cast<size_t>(got);
    news_ = reader_.in_packet();
    Status status = reader_.Advance(static_cast<size_t>(got));
    if (!status.ok()) return status;
    progress_.Received(static_cast<uint64_t>(got), news_ || reader_.in_packet(), now_us_);
    // Less than there was room for: that was all.
    size_t room = 0;
    for (size_t i = 0; i < message.msg_iovlen; ++i) room += pieces[i].iov_len;
    if (static_cast<size_t>(got) < room) break;
  }
  // After a turn that was cut short, too: what an earlier one waited for may be more than is left.
  WakeWhenWhole();
  return Status::Ok();
}

// Who has said goodbye may hang up as it likes: what it left unread makes its kernel reset the
// connection.
Status Link::Broken(const std::string& how) const {
  if (goodbye_read_ && !reader_.in_packet()) return Status::Closed("it has left");
  return Status::PeerLost(how);
}

// A part of a packet is of no use: not to be woken for each segment of it saves more than half of
// the processor time on links of 1 Gbit/s.
void Link::WakeWhenWhole() { channel_->WakeFor(reader_.missing()); }

Status Link::OnHeader(const Header& header, char** target) {
  if (header.kind == PacketKind::kReceived) return Status::Ok();
  news_ = true;
  ++counters_.packets_received;
  return endpoint_->OnHeader(peer_, header, now_us_, target);
}

Status Link::OnPacket(const Header& header) {
  if (header.kind == PacketKind::kReceived) return progress_.Heard(header.offset);
  if (header.kind == PacketKind::kGoodbye) goodbye_read_ = true;
  return endpoint_->OnPacket(peer_, header, now_us_);
}

void Link::Append(const OutPacket& packet) {
  headers_.push_back(Encode(packet.header));
  HeaderBytes& header = headers_.back();
  const size_t length = packet.header.length;
  const size_t first_piece = pieces_.size();
  pieces_.push_back({header.data(), header.size()});
  if (length != 0) pieces_.push_back({const_cast<char*>(packet.payload), length});
  if (options_.checksum) {
    const uint32_t of_payload =
        packet.checks != nullptr
            ? packet.checks->Of(packet.payload, packet.at, packet.header.length)
            : Crc32c(0, packet.payload, length);
    checksums_.push_back(PacketCrc(of_payload, header));
    pieces_.push_back({&checksums_.back(), kChecksumBytes});
  }
  kept_.push_back(packet.keep);
  if (packet.trace.first || packet.trace.last) {
    marked_.push_back({first_piece, pieces_.size(), packet.trace});
  }
  if (packet.header.kind != PacketKind::kReceived) ++counters_.packets_sent;
}

void Link::Gather(int64_t now_us, size_t most) {
  size_t bytes = 0;
  OutPacket packet;
  if (progress_.report_due() && !leaving_) {
    packet.header.kind = PacketKind::kReceived;
    packet.header.offset =
        progress_.TakeReport(kHeaderBytes + (options_.checksum ? kChecksumBytes : 0));
    Append(packet);
  }
  while (headers_.size() < kPacketsAtOnce && bytes < std::min(kBytesAtOnce, most)) {
    packet = OutPacket();
    packet.checked = options_.checksum;
    const bool asks = !goodbye_written_ && (!leaving_ || parting_ == Parting::kServed);
    if (!asks || !endpoint_->Next(peer_, now_us, &packet)) {
      if (!leaving_ || goodbye_written_) return;
      goodbye_written_ = true;
      packet = OutPacket();
      packet.header.kind = PacketKind::kGoodbye;
      packet.header.offset = parting_ == Parting::kFailed ? 1 : 0;
    }
    Append(packet);
    bytes += kHeaderBytes + packet.header.length;
  }
}

// First what has come is read, of a packet that is not whole, too: on a slow link that may take a
// while.
Status Link::CheckProgress(int64_t now_us) {
  Status status = Read(now_us);
  return status.ok() ? progress_.Tick(now_us, reader_.in_packet()) : status;
}

// A packet is sent when the call that took its last byte began: nobody can have it earlier.
// `begun`: pieces of which the kernel has taken some.
void Link::TraceSent(int64_t at_us, size_t begun) {
  for (Marked& marked : marked_) {
    TraceEvent event = marked.mark.event;
    event.time_us = at_us;
    if (marked.mark.first && begun > marked.first_piece) {
      marked.mark.first = false;
      event.length = 0;
      options_.trace->Add(event);
    }
    if (marked.mark.last && next_piece_ >= marked.end_piece) {
      marked.mark.last = false;
      event.length = marked.mark.event.length;
      event.operation = marked.mark.last_operation;
      options_.trace->Add(event);
    }
  }
  const auto told = [](const Marked& m) { return !m.mark.first && !m.mark.last; };
  marked_.erase(std::remove_if(marked_.begin(), marked_.end(), told), marked_.end());
}

// As much as there is, about `most` bytes; what the system says.
ssize_t Link::Send(size_t most, int64_t* at_us) {
  size_t end = next_piece_;
  size_t bytes = 0;
  while (end < pieces_.size() && bytes < most) bytes += pieces_[end++].iov_len;
  size_t beyond = bytes - std::min(bytes, most);
  if (end == pieces_.size() && beyond <= kRestBytes) beyond = 0;
  msghdr message{};
  message.msg_iov = &pieces_[next_piece_];
  message.msg_iovlen = end - next_piece_;
  pieces_[end - 1].iov_len -= beyond;
  ++counters_.send_calls;
  *at_us = marked_.empty() ? 0 : NowUs();
  const ssize_t sent = channel_->Send(&message);
  pieces_[end - 1].iov_len += beyond;
  return sent;
}

void Link::SetShare(uint64_t in_bytes, uint64_t out_bytes) {
  // Again and again: the kernel forgets it when it comes to think otherwise of what a buffer holds.
  BoundUnderWay(fd(), in_bytes);
  const uint64_t unsent = std::clamp<uint64_t>(out_bytes, kUnsentBytesFloor, kUnsentBytesMax);
  const uint64_t change = std::max(unsent, unsent_bytes_) - std::min(unsent, unsent_bytes_);
  if (change > unsent_bytes_ / 8) {
    unsent_bytes_ = unsent;
    BoundUnsent(fd(), unsent);
  }
}

// While more waits to be written, what does not fill a segment waits for it: each segment has 66
// bytes of headers, and packets rarely end where one is full.
void Link::HoldTail(bool hold) {
  if (hold == holds_tail_ || !shares) return;
  holds_tail_ = hold;
  SendOnlyFullSegments(fd(), hold);
}

void Link::Block(int64_t now_us) {
  blocked_since_us_ = now_us;
  HoldTail(true);
  endpoint_->OnFull(peer_, now_us);
}

Status Link::Write(int64_t now_us) {
  int64_t at_us = 0;
  if (blocked_since_us_ >= 0) {
    counters_.blocked_us += now_us - blocked_since_us_;
    blocked_since_us_ = -1;
  }
  has_more_ = false;
  for (size_t total = 0; true;) {
    if (total >= kTurnBytes) {
      has_more_ = true;
      return Status::Ok();
    }
    const size_t unsent_max = channel_->UnsentMax(unsent_bytes_);
    const size_t most = unsent_max - std::min(total, unsent_max);
    if (most == 0) {
      // The socket would take more; TCP_NOTSENT_LOWAT counts only when it makes a new buffer.
      Block(now_us);
      return Status::Ok();
    }
    if (pieces_.empty()) Gather(now_us, most);
    if (pieces_.empty()) {
      HoldTail(false);
      return Status::Ok();
    }
    const ssize_t sent = Send(most, &at_us);
    if (sent < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) {
        Block(now_us);
        return Status::Ok();
      }
      const std::string why = std::strerror(errno);
      if (errno == ENOMEM || errno == ENOBUFS) return Status::Exhausted("cannot send: " + why);
      // What the peer said last is still to be read: it may be its goodbye.
      for (int i = 0; i < kLastTurns && !goodbye_read_; ++i) {
        const Status last = Read(now_us);
        if (!last.ok())
          return last.code() == Code::kPeerLost ? Broken("its connection broke: " + why) : last;
      }
      return Broken("its connection broke: " + why);
    }
    counters_.bytes_sent += static_cast<uint64_t>(sent);
    progress_.Sent(static_cast<uint64_t>(sent), now_us);
    total += static_cast<size_t>(sent);
    auto left = static_cast<size_t>(sent);
    while (next_piece_ < pieces_.size() && left >= pieces_[next_piece_].iov_len) {
      left -= pieces_[next_piece_++].iov_len;
    }
    if (!marked_.empty()) TraceSent(at_us, next_piece_ + (left != 0 ? 1 : 0));
    if (next_piece_ < pieces_.size()) {
      iovec& piece = pieces_[next_piece_];
      piece.iov_base = static_cast<char*>(piece.iov_base) + left;
      piece.iov_len -= left;
      continue;
    }
    pieces_.clear();
    headers_.clear();
    checksums_.clear();
    channel_->Keep(&kept_);
    kept_.clear();
    next_piece_ = 0;
  }
}

}  // namespace mercury
