// One connection that carries packets: reads them into place, writes what its endpoint offers.
//
// Thread-safety: none; one lane owns it. Ownership: the channel; packets being written keep their
// memory. Invariants: a packet that has begun is written to its end before any other; after the
// first error nothing is read or written.
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "links/channel.h"
#include "links/endpoint.h"
#include "links/link_counters.h"
#include "links/link_progress.h"
#include "links/packet_reader.h"
#include "trace/trace_ring.h"

namespace mercury {

// How a link says goodbye.
enum class Parting : uint8_t {
  kDone,    // nothing new is sent before it
  kFailed,  // the same; the job has failed
  kServed,  // what its endpoint still has for the peer goes first
};

struct LinkOptions {
  size_t packet_bytes_max = 64 << 10;
  bool checksum = false;
  int64_t silence_us = 12000000;  // after which a link that is in use is broken
  TraceRing* trace = nullptr;     // null: nothing is traced
  int first_peer = 0;             // that a lane serves first: not the same for all nodes
  int links_beside = 0;           // of the other lanes on this host
  bool take_turns = false;        // the lane's links do, as somebody plans
  std::shared_ptr<LentMemory> lends = nullptr;  // to peers on this host; null: nothing
  size_t ring_bytes = kRingBytes;               // of memory that is shared with such a peer
};

class Link : private PacketSink {
 public:
  Link(std::unique_ptr<Channel> channel, int peer, Endpoint* endpoint, const LinkOptions& options);
  ~Link() override;

  // Reads what is there, but not forever; kClosed: the peer has said goodbye and hung up.
  Status Read(int64_t now_us);
  // Writes until there is nothing to write, the socket is full, or it has as much as it should have
  // unsent; `blocked` until it can be written to again. Not forever either: then it `has_more`.
  Status Write(int64_t now_us);
  // Whether what is sent arrives: to be called when `progress_at_us` is over.
  Status CheckProgress(int64_t now_us);
  int64_t progress_at_us() const { return progress_.tick_at_us(); }
  // What the peer, and we, should have under way here.
  void SetShare(uint64_t in_bytes, uint64_t out_bytes);
  void SayGoodbye(Parting parting) {
    leaving_ = true;
    parting_ = parting;
  }
  bool said_goodbye() const { return leaving_ && goodbye_written_ && pieces_.empty(); }

  bool blocked() const { return blocked_since_us_ >= 0; }
  bool has_more() const { return has_more_; }
  Channel& channel() { return *channel_; }
  int fd() const { return channel_->fd(); }
  int peer() const { return peer_; }
  const LinkCounters& counters() const { return counters_; }

  // The lane's notes:
  bool watched_for_writing = false;
  TcpPath path;
  bool shares = false;  // the host's way in and out with other links

 private:
  Status OnHeader(const Header& header, char** target) override;
  Status OnPacket(const Header& header) override;
  void Gather(int64_t now_us, size_t most);
  ssize_t Send(size_t most, int64_t* at_us);
  void Block(int64_t now_us);
  void HoldTail(bool hold);
  void WakeWhenWhole();
  Status Broken(const std::string& how) const;
  void Append(const OutPacket& packet);
  void TraceSent(int64_t at_us, size_t begun);

  const std::unique_ptr<Channel> channel_;
  const int peer_;
  Endpoint* const endpoint_;
  const LinkOptions options_;
  PacketReader reader_;
  LinkProgress progress_;
  int64_t now_us_ = 0;  // of the read under way
  bool goodbye_read_ = false;
  bool news_ = false;  // the read under way has brought more than reports

  // What is being written: pieces of headers, payloads, checksums. Room for all headers of a batch
  // is reserved at once, so that they stay where they are.
  std::vector<iovec> pieces_;
  size_t next_piece_ = 0;
  std::vector<HeaderBytes> headers_;
  std::vector<uint32_t> checksums_;
  std::vector<std::shared_ptr<const void>> kept_;
  struct Marked {
    size_t first_piece, end_piece;
    TraceMark mark;
  };
  std::vector<Marked> marked_;  // packets of this batch that the trace has still to hear of
  bool leaving_ = false, goodbye_written_ = false;
  Parting parting_ = Parting::kDone;
  size_t unsent_bytes_ = kUnsentBytesMax;  // handed over at once, at most
  int64_t blocked_since_us_ = -1;
  bool has_more_ = false;    // to write, perhaps: its turn was over
  bool holds_tail_ = false;  // as the socket knows it
  LinkCounters counters_;
};

}  // namespace mercury
