// What a worker's end knows of a tensor under way, and of a link.
//
// Thread-safety: none; worker streams own them.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "packets/declaration.h"
#include "packets/worker_streams.h"

namespace mercury {

// What a number on a link stands for, beside the tensor.
struct WorkerStreams::Number {
  const Codec* codec = nullptr;
  float parameter = 0;
  uint32_t number = 0;

  bool Is(const Number& other) const {
    return codec == other.codec && (parameter == other.parameter || !codec->has_parameter);
  }
};

// What one link has to do with one tensor.
struct WorkerStreams::Part {
  Share share;
  std::vector<Number> numbers;     // on this link, so far
  std::vector<uint64_t> received;  // of each slot's sum: elements, or bytes of rows; kOver: all
  // The operation under way:
  uint32_t number = 0;
  uint64_t portion = 0;
  uint64_t next = 0;     // slot to send
  uint64_t at = 0;       // elements of it that have been sent, or bytes of rows
  uint64_t waiting = 0;  // slots whose sums are not in

  static constexpr uint64_t kOver = ~uint64_t{0};
  // Of a slot, how much has been sent.
  uint64_t sent(uint64_t mine) const { return mine < next ? kOver : mine == next ? at : 0; }
};

struct WorkerStreams::Stream {
  std::shared_ptr<Tensor> shared;
  uint64_t row_elements = 0;  // > 0: it is summed by rows
  std::vector<Part> parts;    // by server
  std::shared_ptr<Operation> op;
  uint64_t waiting = 0;  // slots of this lane whose sums are not in
  uint64_t start = 0;    // its place in active_
  uint8_t round = 0;
  int64_t since_us = 0, moved_us = 0, ask_at_us = 0;

  const Codec& plain() const { return PlainCodec(shared->traits.dtype); }
};

struct WorkerStreams::Link {
  explicit Link(const PolicyOptions& options) : policy(MakePolicy(options)) {}
  std::unique_ptr<Policy> policy;
  std::vector<Stream*> tensors;  // by number
  std::unordered_map<uint64_t, Stream*> portions;
  std::deque<OutPacket> first;  // goes out before any data
  // The packet that is being received.
  std::string text;
  Stream* tensor = nullptr;
  std::shared_ptr<Operation> op;
  uint64_t mine = 0;
  uint64_t count = 0;  // elements of it
};

}  // namespace mercury
