// The least of the first so many of some numbers, which change one by one. A tree of minima: both
// take time that grows with the logarithm of how many there are.
//
//   numbers of 5:      tree_:  [1]
//                         [2]       [3]
//                      [4]  [5]   [6]  [7]     a node is the lesser of the two below it
//                     [8][9]                   the numbers are the last five, [5] to [9]
//
// Thread-safety: none. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace mercury {

class PrefixMinimum {
 public:
  static constexpr int64_t kNone = std::numeric_limits<int64_t>::max();

  void Assign(const std::vector<int64_t>& numbers) {
    tree_.assign(numbers.size(), kNone);
    tree_.insert(tree_.end(), numbers.begin(), numbers.end());
    for (size_t at = numbers.size(); at-- > 1;) Renew(at);
  }

  void Set(size_t index, int64_t number) {
    size_t at = size() + index;
    tree_[at] = number;
    while ((at /= 2) >= 1) Renew(at);
  }

  // kNone of no numbers. Of all, if there are fewer.
  int64_t OfFirst(size_t count) const {
    int64_t least = kNone;
    for (size_t from = size(), to = size() + std::min(count, size()); from < to;
         from /= 2, to /= 2) {
      if (from % 2 == 1) least = std::min(least, tree_[from++]);
      if (to % 2 == 1) least = std::min(least, tree_[--to]);
    }
    return least;
  }

 private:
  size_t size() const { return tree_.size() / 2; }
  void Renew(size_t at) { tree_[at] = std::min(tree_[2 * at], tree_[2 * at + 1]); }

  std::vector<int64_t> tree_;
};

}  // namespace mercury
