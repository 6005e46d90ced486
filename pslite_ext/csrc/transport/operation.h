// Whatever a worker asks of a transport, once: what, with whose memory, how urgent, and whom to
// tell when it is over.
//
// Thread-safety: Finish, FailWhenDropped and `ready` from any thread; the rest does not change once
// submitted. Ownership: what sends from an operation's memory, or receives into it, holds the
// operation, which holds the memory by `keep`. Invariants: `done` is called exactly once; unless
// the job has failed, nobody uses the memory any more when it is.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/buffer.h"
#include "base/status.h"
#include "transport/claim.h"
#include "transport/tensor.h"

namespace mercury {

// The command by which a worker's script switches the servers' recording.
constexpr int kTraceSwitchHead = -0x74726163;
// Of the worker that lets a newcomer in: its rank. Of a newcomer: keys whose values it has.
constexpr int kLetInHead = -0x6c657469, kReleaseHead = -0x72656c65;

// Made beforehand: there is no memory when it is needed.
inline const Status kDropped = Status::Exhausted("no memory to carry a tensor");

struct Operation {
  enum class Kind : uint8_t {
    kSum = 0,         // src is summed over all workers into dst, which may be the same memory
    kPush = 1,        // src is summed; a pull asks for the sum
    kPull = 2,        // the servers' value into dst: the last sum, or the first value
    kFirstValue = 4,  // src becomes the value, before anything is summed
    kRows = 5,        // `rows` are summed over all workers into `answers`
    kCommand = 6,     // `command` to the servers; done when all that were asked have answered
  };
  // Ascending, unique; read before Submit returns.
  struct Rows {
    const int64_t* numbers = nullptr;
    size_t count = 0;
    const char* values = nullptr;
    uint32_t row_bytes = 0;
  };
  struct Command {
    int head = 0;
    std::string body;
    std::optional<Claim> claim;  // instead; to the server that its subject begins at
    Subject about;               // of its failure
  };
  using Done = std::function<void(const Status&)>;
  static constexpr uint64_t kWhole = ~uint64_t{0};

  Operation() = default;
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;
  // Nobody holds it any more: it has failed, or whoever dropped it could not even fail it.
  ~Operation() {
    if (over_ || !done) return;
    if (failing_) {
      Finish(dropped_as_);
    } else if (fail_if_dropped) {
      Finish(kDropped);
    }
  }

  Kind kind = Kind::kSum;
  std::shared_ptr<Tensor> tensor;  // null for a command
  const char* src = nullptr;
  char* dst = nullptr;
  int32_t priority = 0;
  const Codec* codec = nullptr;  // of src, on its way; null: the plain one
  float parameter = 0.5F;
  std::string use;  // what the sum is for
  Rows rows;
  Command command;
  // Of src, what may be read: so many elements from the first on. It grows, and the transport is
  // told (Transport::More); only where it takes chunks.
  std::atomic<uint64_t> ready{kWhole};
  // Elements of the sum that are in dst: each once. Called on a lane's thread; what another lane
  // brings may come at the same time as `done`.
  std::function<void(uint64_t begin, uint64_t count)> arrived;
  std::shared_ptr<void> keep;
  Done done;
  bool fail_if_dropped = false;  // it has been submitted

  // The transport's:
  int32_t number = 0;           // in the order of dispatch, for traces; its pull has the next one
  int64_t handed_us = 0;        // when it was handed over, if it is traced
  std::vector<Buffer> sets;     // of rows, by part: what is sent (sums/sparse_sum.h)
  std::vector<Buffer> answers;  // the same: what comes back, ascending

  // What it does to the arrays that it is given.
  static bool Reads(Kind kind) {
    return kind == Kind::kSum || kind == Kind::kPush || kind == Kind::kFirstValue;
  }
  static bool Writes(Kind kind) { return kind == Kind::kSum || kind == Kind::kPull; }
  bool reads() const { return Reads(kind); }
  bool writes() const { return Writes(kind); }
  bool fetches() const { return kind == Kind::kPull; }
  bool gives_first() const { return kind == Kind::kFirstValue; }
  // Whether a pull follows the push.
  bool pulls_sum() const { return kind == Kind::kSum || kind == Kind::kRows; }
  void Finish(const Status& status) {
    if (over_.exchange(true)) return;
    const Done call = std::move(done);
    call(status);
  }
  // Finishes it with this once nobody holds it any more. What was handed over before it failed may
  // still leave from its memory, with a checksum that is known already, and whoever hears of the
  // end may write there at once. Finish may still come first.
  void FailWhenDropped(const Status& status) {
    Status kept = status;
    if (!failing_.exchange(true)) dropped_as_ = std::move(kept);
  }
  bool over() const { return over_; }

 private:
  std::atomic<bool> over_{false}, failing_{false};
  Status dropped_as_;
};

}  // namespace mercury
