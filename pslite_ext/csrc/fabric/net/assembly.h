// Models that come from several servers, each of which sends its stripe: one vector, into which all
// of them are received, and an inflow that has what is there of all.
//
//   the first stripe is announced --> coming --the last one is whole--> taken
//                                       \--one is broken--> let go of, and broken for whoever
//                                                           passes it on
//
// An older one that nobody here waits for any more comes to its end, too: others may, to whom it is
// passed on.
//
// Thread-safety: none; the lane owns it. Invariants: a model is of stripes of one version, for one
// wish; it is given once; no more than `kTransfersMost` come at once.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "fabric/live/letters.h"
#include "fabric/net/dock.h"
#include "fabric/net/spare_vectors.h"

namespace mercury::fabric {

class Assembly {
 public:
  // Of models of so many elements, from so many servers.
  Assembly(size_t elements, size_t servers, SpareVectors spares)
      : elements_(elements), servers_(servers), spares_(std::move(spares)) {}

  // Where the stripe of that server's which `letter` announces is to be put.
  Landing Into(size_t server, const ModelLetter& letter);
  // What comes of it. The model's inflow, if this is the first of it; null: it is not.
  std::shared_ptr<const Inflow> Comes(size_t server, const ModelLetter& letter,
                                      const std::shared_ptr<const Inflow>& stripe);
  // A stripe is whole. The model, if all of them are now; else nothing.
  Cargo Take(const ModelLetter& letter);
  // None of those that come is wanted any more.
  void Clear();

 private:
  using Key = std::pair<int64_t, int64_t>;  // wish, version
  static Key KeyOf(const ModelLetter& letter) { return {letter.wish, letter.version}; }

  const size_t elements_;
  const size_t servers_;
  const SpareVectors spares_;
  std::map<Key, std::shared_ptr<Inflow>> coming_;
};

}  // namespace mercury::fabric
