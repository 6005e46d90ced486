// What went wrong, as a value: core functions return a Status, they neither throw nor abort.
//
// Thread-safety: a plain value. Invariant: ok() <=> code == kOk <=> message is empty.
#pragma once

#include <string>
#include <utility>

namespace mercury {

// The numbers are part of the C API and of pslite_ext/errors.py; a test holds the two equal.
enum class Code : int {
  kOk = 0,
  kInvalidArgument = 1,
  kCorrupt = 2,
  kPeerLost = 3,
  kTimeout = 4,
  kExhausted = 5,
  kClosed = 6,
  kInternal = 7,
};

struct Status {
  Code code = Code::kOk;
  std::string message;

  bool ok() const { return code == Code::kOk; }

  static Status Ok() { return {}; }
  static Status InvalidArgument(std::string m) { return {Code::kInvalidArgument, std::move(m)}; }
  static Status Corrupt(std::string m) { return {Code::kCorrupt, std::move(m)}; }
  static Status PeerLost(std::string m) { return {Code::kPeerLost, std::move(m)}; }
  static Status Timeout(std::string m) { return {Code::kTimeout, std::move(m)}; }
  static Status Exhausted(std::string m) { return {Code::kExhausted, std::move(m)}; }
  static Status Closed(std::string m) { return {Code::kClosed, std::move(m)}; }
  static Status Internal(std::string m) { return {Code::kInternal, std::move(m)}; }
};

}  // namespace mercury
