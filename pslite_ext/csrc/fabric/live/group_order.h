// A group on its way through an aggregator: which of its members are added now, and when it is
// complete.
//
// Members are added in the order of their places, because momentum weighs them by it
// (sums/momentum_sum.h). A member that arrives before its predecessor waits; one that cannot arrive
// is skipped. It alone decides what is skipped; the group carries the decision when it goes on to
// the server.
//
// Thread-safety: none, one owner; no clock. Invariants: members are added in rising order, each
// once; in the end each member is either added or skipped, never both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

namespace mercury::fabric {

class GroupOrder {
 public:
  // `places` rise; there is one at least.
  explicit GroupOrder(std::vector<int64_t> places) : places_(std::move(places)) {}

  // A member is here. Those that are added now, in order: it, and who waited for it. Nothing if it
  // is no member, is here already or was skipped.
  std::vector<int64_t> Arrive(int64_t place);
  // A member will not come; nothing happens if it is here. Those that are added now.
  std::vector<int64_t> Skip(int64_t place);

  // Whether it is a member that is neither here nor skipped.
  bool Awaits(int64_t place) const;
  bool whole() const { return next_ == places_.size(); }
  const std::vector<int64_t>& added() const { return added_; }
  const std::vector<int64_t>& skipped() const { return skipped_; }

 private:
  std::vector<int64_t> Advance();

  std::vector<int64_t> places_;
  size_t next_ = 0;  // the first member that is neither added nor skipped
  std::set<int64_t> here_;
  std::set<int64_t> absent_;
  std::vector<int64_t> added_;
  std::vector<int64_t> skipped_;
};

}  // namespace mercury::fabric
