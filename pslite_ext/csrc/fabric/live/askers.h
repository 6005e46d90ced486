// Which workers have asked for the model, or for the sum of an all-reduce, and who brings it.
//
//   Ask ──▶ waits ── Ready: may have it ── Take: a tree serves it ──▶ from the server: a grant
//             ▲                                                  \──▶ from a worker: by way of it
//             \──────────── that worker is gone: once more ───────────────┘
//
// Nobody reports whether a model sent by way of workers has arrived. If one of them is gone, it is
// sent again, perhaps for nothing: a receiver that already has it knows by the wish's number.
//
// Thread-safety: none, one owner; no clock. Invariants: each worker has at most one wish that waits
// or is under way; the one that has waited longest is ready first.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "fabric/live/model_tree.h"

namespace mercury::fabric {

// What a worker asks the server for: a model with so many updates of each worker in it, or the sum
// of an all-reduce.
struct Wish {
  int64_t updates = 0;
  int64_t reduce = 0;  // the number of this worker's part; 0: the model
  int64_t number = 0;  // of this worker's wishes; it rises
};

struct Asker {
  int worker = 0;
  Wish wish;
};

// `by` passes a model on to `worker`, whose wish of that number it grants.
struct Onward {
  int by = 0;
  int worker = 0;
  int64_t wish = 0;
};

// What the server sends to a worker, and how it goes on from there.
struct Grant {
  Asker to;
  std::vector<Onward> onward;
};

class Askers {
 public:
  void Ask(const Asker& asker);
  void Gone(int worker);
  bool Waits(int worker) const;

  using May = std::function<bool(const Asker&)>;
  // Of those that wait and may have what they want, all that want the same as the first.
  std::vector<int> Ready(const May& may) const;
  // Who gets it down this tree, in its order. Whoever does not wait any more is left out, as is who
  // has asked for something else since; what would go by way of such a one waits on.
  std::vector<Grant> Take(const std::vector<Edge>& tree, const May& may);

 private:
  struct Way {
    int by = 0;
    Wish wish;
  };

  void Withdraw(int worker);

  std::deque<Asker> waiting_;
  std::map<int, Way> under_way_;  // by worker: what goes by way of another
};

}  // namespace mercury::fabric
