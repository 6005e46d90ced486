// A node's half of the classic path (messages/), which carries tensors in zmq mode, for who makes
// nodes: a build may leave that room out, and then has none (no_classic_path.cc).
//
// Thread-safety: Prepare and Begin once, one after the other; the rest from any thread. Invariant:
// that of Transport.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/node_name.h"
#include "base/status.h"
#include "transport/server_shares.h"
#include "transport/stall_times.h"
#include "transport/transport.h"

namespace mercury {

class TraceRing;
struct ZmqVanOptions;

struct ClassicOptions {
  int rank = 0;  // this worker's
  ServerShares shares;
  uint64_t split_bytes = 4000000;
  // Short, so that the first of a tensor's sums are on their way back while its last bytes leave.
  uint64_t piece_bytes_max = uint64_t{2} << 20;
  uint64_t message_bytes_max = uint64_t{64} << 20;  // for sets of rows
  // Gradients go through prophet's queue; otherwise at once.
  bool prophet = false;
  int profile_steps = 50;
  std::string profile_text;
  StallTimes stall{0};
  Stalled stalled;                     // null: nobody ends the job for that
  DispatchNumbers* numbers = nullptr;  // null: operations are not numbered
  TraceRing* trace = nullptr;          // null: nothing is traced
  // A server's:
  int workers = 1;
  uint64_t server_bytes_max = 0;
  bool deterministic = false;
};

class ClassicPath {
 public:
  virtual ~ClassicPath() = default;
  // The van's options, before it is made.
  virtual void Prepare(ZmqVanOptions* van) = 0;
  // All nodes agree, and messages may come.
  virtual void Begin(Role role, const ClassicOptions& options) = 0;
  // A worker's, once it has begun; null otherwise.
  virtual Transport* worker() = 0;
  // The same, of a server's: this worker pushes no more.
  virtual void Departed(int worker) = 0;
};

// kInvalidArgument: this build has none.
Status MakeClassicPath(std::unique_ptr<ClassicPath>* path);

}  // namespace mercury
