// What went wrong, as data: core functions return a Status, they neither throw nor abort. Programs
// look at the code, at who is to blame and at what it is about; people read `text`, which is made
// of them in one place (status_text.cc) and may say anything.
//
// Thread-safety: a plain value; copies share what they say, which never changes. Invariants: what
// is derived from a failure (`By`, `About`, ...) has its number, so two operations that failed of
// one thing can be told from two that failed alike; where there is no memory, a Status is made all
// the same, and says less.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/node_name.h"

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
constexpr int kCodes = 8;

// A node that a failure names.
struct Party {
  Role role = Role::kWorker;
  int rank = kOnlyOne;
  std::string address = {};  // where it is, or was; may be empty

  bool Is(const Party& other) const {
    return role == other.role && (role == Role::kScheduler || rank == other.rank);
  }
};

// Who is to blame, and for what.
struct Blame {
  enum Fault : uint8_t {
    kNobody = 0,
    kNamed = 1,      // the first party, which the detail names
    kDid = 2,        // "worker 1: ..."
    kLost = 3,       // "lost worker 1 (10.0.0.5:40123), server 0: ..."
    kEnded = 4,      // "worker 1 ended: ..."
    kApart = 5,      // two and two of the parties cannot reach each other
    kUnreached = 6,  // "worker 1 at 10.0.0.5:40123: ...": this node could not connect to it
  };
  Fault fault = kNobody;
  std::vector<Party> parties;

  Blame() = default;
  Blame(Fault its, Party party) : fault(its), parties{std::move(party)} {}
  Blame(Fault its, int node_id) : Blame(its, Party{RoleOf(node_id), RankOf(node_id), ""}) {}
  Blame(Fault its, std::vector<Party> those) : fault(its), parties(std::move(those)) {}
};
constexpr int kFaults = 7;

// What it is about.
struct Subject {
  enum Kind : uint8_t { kNothing = 0, kTensor = 1, kModel = 2 };
  Kind of = kNothing;
  uint64_t key = 0;   // of a tensor or its parameter; of a model a number of the same kind
  std::string label;  // "tensor 'fc1_weight' (key 3)"; empty: the detail has it

  bool Is(const Subject& other) const { return of == other.of && key == other.key; }
};
constexpr int kSubjects = 3;

class [[nodiscard]] Status {
 public:
  Status() = default;  // all is well
  // `code` is not kOk.
  Status(Code code, std::string detail);

  static Status Ok() { return {}; }
  static Status InvalidArgument(std::string d) { return {Code::kInvalidArgument, std::move(d)}; }
  static Status Corrupt(std::string d) { return {Code::kCorrupt, std::move(d)}; }
  static Status PeerLost(std::string d) { return {Code::kPeerLost, std::move(d)}; }
  static Status Timeout(std::string d) { return {Code::kTimeout, std::move(d)}; }
  static Status Exhausted(std::string d) { return {Code::kExhausted, std::move(d)}; }
  static Status Closed(std::string d) { return {Code::kClosed, std::move(d)}; }
  static Status Internal(std::string d) { return {Code::kInternal, std::move(d)}; }

  // The same failure, with more known of it. Of kOk, kOk.
  Status By(Blame blame) const;
  Status About(Subject subject) const;
  Status Of(Code cause) const;
  Status As(Code code) const;
  Status Saying(std::string detail) const;

  bool ok() const { return failure_ == nullptr; }
  Code code() const { return ok() ? Code::kOk : failure_->code; }
  const Blame& blame() const { return seen().blame; }
  const Subject& subject() const { return seen().subject; }
  // What the one to blame has ended of, if that is known.
  Code cause() const { return seen().cause; }
  // What happened: a part of `text`.
  const std::string& detail() const { return seen().detail; }
  // 0 of kOk; else no other failure of this process has it.
  uint64_t number() const { return seen().number; }
  // For people; empty if all is well.
  std::string text() const;

 private:
  struct Failure {
    uint64_t number = 0;
    Code code = Code::kOk;
    Code cause = Code::kOk;
    Blame blame;
    Subject subject;
    std::string detail;
  };
  struct Spares;
  const Failure& seen() const;
  template <typename F>
  Status Changed(F&& change) const;

  std::shared_ptr<const Failure> failure_;
};

// As it travels, whatever carries it. What does not fit is left out: parties beyond the first, and
// the end of the detail.
constexpr size_t kFailureBytesMax = 1024;
std::string Encode(const Status& status, size_t bytes_max = kFailureBytesMax);
// kCorrupt in `status` itself if it cannot be read; trailing blanks are no part of it.
void Decode(const std::string& text, Status* status);

// How `text` is made; null: in English. For tests, which show that nobody reads it but people.
using Wording = std::string (*)(const Status& status);
void SetWording(Wording wording);

}  // namespace mercury
