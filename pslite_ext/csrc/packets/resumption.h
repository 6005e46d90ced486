// Where the workers stand with one slot whose server is lost, as the server hears that sums it from
// now on. Workers are at most one round apart: nobody begins a round of a tensor before the last
// one is in.
//
//   all stand alike          that round is done; the next one is summed, of copies that come anew
//   some are a round ahead   the round is done; those behind get the sum from one who has it
//
// Thread-safety: none; an aggregator owns it. No I/O. Invariants: it is decided once all who are in
// the job have said where they stand; no two workers ever use different sums of one round.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mercury {

// What a worker says beside the round, in its packet's priority.
struct Standing {
  static constexpr int32_t kHasSum = 1;  // of that round, and can give it
  static constexpr int32_t kWantsSum =
      2;  // of the round under way, not only to hear that it is made
  static constexpr int32_t kGaveFirst = 4;  // no first value will come of it
};

class Resumption {
 public:
  explicit Resumption(size_t workers) : said_(workers) {}

  // False: it has said so before.
  bool Stands(size_t worker, uint8_t round, int32_t standing);
  // It is not in the job any more; it is again, as another.
  void Drop(size_t worker) { said_[worker].out = true; }
  void Expect(size_t worker) { said_[worker] = Said(); }
  bool over() const { return over_; }
  void End();

  // Whether all have said where they stand.
  bool Known() const;
  bool HasSaid(size_t worker) const { return said_[worker].known; }
  // Once known. False: they are further apart than they can be.
  bool Consistent() const;
  uint8_t round() const;  // the last one that is done; as it was when this ended
  // Who is a round behind.
  bool Behind(size_t worker) const;
  bool AnyBehind() const;
  // Who is a round ahead of others.
  std::vector<int> Ahead() const;
  bool Wants(size_t worker) const { return (said_[worker].standing & Standing::kWantsSum) != 0; }
  // Who can give the sum of the last round; -1: nobody.
  int Giver() const;
  // Whether a worker may still give the first value.
  bool AwaitsFirst() const;

  int asked = -1;  // who is to give it

 private:
  struct Said {
    bool known = false, out = false;
    uint8_t round = 0;
    int32_t standing = 0;
  };
  // How many rounds ahead of the first worker's: -1, 0 or 1, if they are consistent.
  int RoundsAhead(const Said& of) const;
  const Said& First() const;

  std::vector<Said> said_;  // by worker
  bool over_ = false;
  uint8_t last_ = 0;  // once it is over, whoever is in the job by then
};

}  // namespace mercury
