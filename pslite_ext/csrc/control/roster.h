// Who is in the job once it has begun: everybody, at first. A worker may be lost, or leave, a
// server may be lost, and the others go on, as long as enough of them are left. Each change begins
// a generation, by which nothing that came before it is mistaken for what comes after.
//
//   worker:  in --leaves--> left
//            in --lost--> lost          as long as as many are left as the job needs
//   server:  in --lost--> lost          as long as one is left, if others can take its place
//
// Thread-safety: none; no I/O, no clock. Invariants: who is out never comes back under its rank; a
// generation differs from the one before in exactly one node; without `least`, nobody may be lost.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "base/node_name.h"

namespace mercury {

class Roster {
 public:
  explicit Roster(int workers) : workers_(workers) {}
  // With `least` workers at least; 0: only with all of them, as at first. `servers`: of which all
  // but one may be lost; 0: none.
  void GoOnWith(int least, int servers = 0) {
    least_ = least;
    servers_ = servers;
  }

  uint64_t generation() const { return 1 + left_.size() + lost_.size(); }
  int workers() const { return workers_ - out_; }
  bool HasLeft(int node) const { return left_.count(node) != 0; }
  bool IsLost(int node) const { return lost_.count(node) != 0; }
  bool IsOut(int node) const { return HasLeft(node) || IsLost(node); }
  const std::set<int>& lost() const { return lost_; }

  // Whether the job goes on if workers are lost at all.
  bool elastic() const { return least_ != 0; }
  // Whether it does if these nodes are, together. Those that are out already count as nothing.
  bool CanLose(const std::set<int>& nodes) const;
  // Why the job does not go on with those that are left; empty: it could.
  std::string Shortage() const;
  // What is lost ends the job, unless CanLose said otherwise. False: it was out.
  bool Lose(int node);
  // False: it was out.
  bool Leave(int node);

 private:
  // Those that have finished are missed by nobody.
  int WorkersThatCount() const;
  int ServersOut() const;

  const int workers_;
  int least_ = 0, servers_ = 0;
  int out_ = 0;  // workers that are
  std::set<int> left_, lost_;
};

}  // namespace mercury
