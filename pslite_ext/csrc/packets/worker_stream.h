// What a worker's end knows of a tensor under way, of a server, and of a link to it.
//
// Thread-safety: none; worker streams own them, and lock.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "packets/declaration.h"
#include "packets/worker_streams.h"

namespace mercury {

// What a number stands for on the links to a server, beside the tensor.
struct WorkerStreams::Number {
  Coded coded;
  uint32_t workers = 1;  // that a copy stands for
  uint32_t number = 0;

  bool Is(const Number& other) const {
    return coded.codec == other.coded.codec && workers == other.workers &&
           (coded.parameter == other.coded.parameter || !coded.codec->has_parameter);
  }
};

// How far a lane has come with a slot that it has begun: the rest of it is that lane's.
struct WorkerStreams::Begun {
  uint64_t mine = 0;
  uint64_t at = 0;      // elements of it that have been sent, or bytes of rows; 0: none is begun
  Block copy;           // the host's, of a leader
  bool wanted = false;  // its sum is
};

// A slot's last sum, as it came.
struct WorkerStreams::KeptSum {
  Block sum;
  const Codec* codec = nullptr;
  int workers = 0;  // whose it is
};

// What one server has to do with one tensor.
struct WorkerStreams::ServerStream {
  Share share;
  std::vector<Number> numbers;     // so far
  std::vector<uint64_t> received;  // of each slot's sum: elements, or bytes of rows; kOver: all
  // The operation under way:
  uint32_t number = 0;
  uint64_t portion = 0;
  uint64_t next = 0;                // slot to begin
  uint64_t ready = 0;               // slots from the first on that can be begun
  std::map<uint64_t, Block> rooms;  // of a leader: where sums of the host's copies come
  std::vector<bool> unwanted;       // the same: slots whose sums nobody of the host wants
  std::vector<Begun> begun;         // by lane
  // Where a server may be lost: its slots' last sums, and those of which a part has come.
  std::vector<KeptSum> kept;
  std::map<uint64_t, KeptSum> coming;
  // Once it has been, and until another has taken on all slots: those that it has. Then slots are
  // sent in the order of `picked`.
  std::vector<bool> stands;
  uint64_t held = 0;  // the others
  bool said = false;  // where this worker stands
  bool picks = false;
  std::vector<uint64_t> picked;
  std::vector<bool> went;      // sent, or not to be sent
  std::vector<uint64_t> told;  // by lane: the portion whose number in traces it has told
  uint64_t waiting = 0;        // slots whose sums are not in
  uint64_t front = 0;          // elements that others had sent before; 0: that is not known
  uint8_t front_round = 0;     // in that round

  static constexpr uint64_t kOver = ~uint64_t{0};
  // Of a slot, how much has been sent.
  uint64_t sent(uint64_t mine) const {
    for (const Begun& lane : begun) {
      if (lane.at != 0 && lane.mine == mine) return lane.at;
    }
    if (picks) return went[mine] || received[mine] == kOver ? kOver : 0;
    return mine < next ? kOver : 0;
  }
  uint64_t Picked(uint64_t i) const { return picks ? picked[i] : i; }
  // Whether a sum of it may come: all of it has been sent, or others had sent theirs before.
  bool Awaits(uint64_t mine) const { return sent(mine) != 0 || (held != 0 && !stands[mine]); }
};

struct WorkerStreams::Stream {
  std::shared_ptr<Tensor> shared;
  uint64_t row_elements = 0;        // > 0: it is summed by rows
  std::vector<ServerStream> parts;  // by server
  std::shared_ptr<Operation> op;
  uint64_t waiting = 0;   // slots whose sums are not in
  uint64_t start = 0;     // its place in active_
  bool together = false;  // the operation's copy leaves the host in one with others
  uint8_t round = 0;      // of its sums, and of those that the host made first
  uint8_t host_round = 0;
  int workers = 0;  // that it is the sum of, by the slots that are in
  int64_t since_us = 0, moved_us = 0, ask_at_us = 0;

  const Codec& plain() const { return PlainCodec(shared->traits.dtype); }
  // Whether there is something that the lane may send: a slot of its own, or one that none has.
  bool Has(int server, int lane) const {
    const ServerStream& part = parts[static_cast<size_t>(server)];
    return part.begun[static_cast<size_t>(lane)].at != 0 || part.next != part.ready;
  }
};

struct WorkerStreams::Server {
  explicit Server(const PolicyOptions& options) : policy(MakePolicy(options)) {}
  std::unique_ptr<Policy> policy;
  std::vector<Stream*> tensors;  // by number
  std::unordered_map<uint64_t, Stream*> portions;
};

struct WorkerStreams::LinkState {
  int lane = 0;
  std::vector<bool> declared;   // by number
  std::deque<OutPacket> first;  // goes out before any data
  // The packet that is being received.
  std::string text;
  Stream* tensor = nullptr;
  std::shared_ptr<Operation> op;
  uint64_t mine = 0;
  uint64_t count = 0;     // elements of it
  uint64_t elements = 0;  // to be decoded with it
  uint64_t before = 0;    // what of the slot had come
  Block room;             // where the sum is put, if that is not the output
  Coded coded;            // what comes, if it is not plain
  Block block;            // it comes to lie there
  char* into = nullptr;   // and is decoded into this
};

// A packet's elements that are still to be coded, once nothing is locked.
struct WorkerStreams::Coding {
  Coded coded;  // null: there is nothing to do
  const char* values = nullptr;
  std::shared_ptr<const void> keep;  // holds them
  float* residual = nullptr;
  uint64_t count = 0;
  Block block;  // what they are coded into

  void Run() const {
    if (coded.codec == nullptr) return;
    coded.codec->encode(coded.parameter, values, residual, count, block.get());
  }
};

class WorkerStreams::Turn {
 public:
  explicit Turn(WorkerStreams* streams) : streams_(streams) {
    lock_.emplace(&streams->mutex_, &streams->torn_);
  }
  ~Turn() {
    const std::vector<SumPart> arrived = std::exchange(streams_->arrived_, {});
    const std::vector<Over> over = std::exchange(streams_->over_, {});
    const auto let_go = std::exchange(streams_->let_go_, {});
    lock_.reset();
    for (const SumPart& part : arrived) part.op->arrived(part.begin, part.count);
    FinishAll(over);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  WorkerStreams* const streams_;
  std::optional<LaneTurn> lock_;
};

}  // namespace mercury
