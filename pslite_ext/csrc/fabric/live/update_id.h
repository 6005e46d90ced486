// How the live system names an update, and its place among all others.
//
// A worker numbers its updates. The scheduler gives each update it plans a *place*: a number that
// rises over the whole job, in the order in which updates are to be applied. An update that is
// planned again gets a new place, so a late message about the old one is recognized. Places of
// updates that are never applied stay empty.
//
// Updates of a *round* are applied at once, by their sum, and make one version. A round of an
// all-reduce makes none: its sum goes to the workers, and the model does not change.
//
// Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <tuple>

namespace mercury::fabric {

struct UpdateId {
  int worker = 0;
  int64_t number = 0;

  bool operator==(const UpdateId& other) const {
    return worker == other.worker && number == other.number;
  }
  bool operator<(const UpdateId& other) const {
    return std::tie(worker, number) < std::tie(other.worker, other.number);
  }
};

struct Placed {
  int64_t place = 0;
  UpdateId id;
  int64_t version = 0;  // that it was computed from
  int64_t round = 0;    // the first place of its round; 0: it is applied by itself
  bool reduce = false;  // its round is an all-reduce
};

// Which model: that version, of the server after so many replicas have become it. A version that
// died with its server may have the number of another.
struct Edition {
  int64_t version = 0;
  int64_t reign = 0;
};

}  // namespace mercury::fabric
