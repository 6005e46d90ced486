// Who is in the job once it has begun: everybody, at first. A worker may be lost, or leave, a
// server may be lost, and the others go on, as long as enough of them are left. A worker may come,
// in a place that nobody has had or that was lost, and a server in the place of one that was lost.
// Each change begins a generation, by which nothing that came before it is mistaken for what comes
// after.
//
//   worker:  in --leaves--> left
//            in --lost--> lost          as long as as many are left as the job needs
//            free or lost --comes--> newcomer --let in--> in
//            newcomer --lost, leaves--> lost
//   server:  in --lost--> lost          as long as one is left, if others can take its place
//            lost --comes--> newcomer --let in--> in
//            newcomer --lost--> lost
//
// Thread-safety: none; no I/O, no clock. Invariants: a generation differs from the one before in
// exactly one node; without `least`, nobody may be lost, and nobody comes; a newcomer counts for
// nothing.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "base/node_name.h"

namespace mercury {

// Of a node that has a place.
enum class Presence : uint8_t { kIn, kLeft, kLost, kNew };

class Roster {
 public:
  explicit Roster(int workers);
  // As it was written down.
  struct Place {
    Presence presence = Presence::kIn;
    uint64_t changed = 1;
  };
  void Restore(uint64_t generation, const std::map<int, Place>& nodes);
  // With `least` workers at least; 0: only with all of them, as at first. `servers`: of which all
  // but one may be lost; 0: none. `places`: of workers; those beyond the first are free at first;
  // 0: nobody comes.
  void GoOnWith(int least, int servers = 0, int places = 0);

  uint64_t generation() const { return generation_; }
  int workers() const { return static_cast<int>(in_.size()); }
  int places() const { return places_; }
  bool HasLeft(int node) const { return left_.count(node) != 0; }
  bool IsLost(int node) const { return lost_.count(node) != 0; }
  bool IsNew(int node) const { return new_.count(node) != 0; }
  Presence PresenceOf(int node) const;
  // The generation that began when it came in, or was lost, or left.
  uint64_t ChangedAt(int node) const;
  // That it is not one of those that train and serve.
  bool IsOut(int node) const;
  const std::set<int>& lost() const { return lost_; }
  // The first worker that is in; -1: none is.
  int first() const { return in_.empty() ? -1 : *in_.begin(); }

  // Whether the job goes on if workers are lost at all.
  bool elastic() const { return least_ != 0; }
  bool MayLoseServers() const { return servers_ > 1; }
  // Whether it does if these nodes are, together. Those that are out already count as nothing.
  bool CanLose(const std::set<int>& nodes) const;
  // Why the job does not go on with those that are left; empty: it could.
  std::string Shortage() const;
  // What is lost ends the job, unless CanLose said otherwise. False: it was out.
  bool Lose(int node);
  // False: it was out.
  bool Leave(int node);

  // Which place a newcomer has: the one of this number, if it is free, or, if it has none (< 0),
  // the first that is; -1: none.
  int PlaceFor(Role role, int number) const;
  // Of a server that comes, which one has done its work so far: the next by rank that is in.
  int StandIn(int server) const;
  void Expect(int node);
  void LetIn(int node);

 private:
  bool IsFree(int node) const;
  void Changes(int node) { changed_[node] = ++generation_; }
  // Those that have finished are missed by nobody.
  int WorkersThatCount() const;
  int ServersOut() const;

  int places_ = 0, least_ = 0, servers_ = 0;
  uint64_t generation_ = 1;
  std::set<int> in_;  // workers
  std::set<int> left_, lost_, new_;
  std::map<int, uint64_t> changed_;
};

}  // namespace mercury
