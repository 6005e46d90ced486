// Which workers share a host, and who of them sends their copies to a server.
//
// Where a copy leaves its host, the host's workers are summed first: the first of them, the leader,
// adds the others' to its own, sends one copy that stands for all, and gives them the sum when it
// comes back. To a server on their own host each worker sends its own: that costs no link anything.
//
// Thread-safety: immutable. Invariant: for each server, every worker's copy is in exactly one that
// it gets.
#pragma once

#include <vector>

#include "control/membership.h"

namespace mercury {

class Hosts {
 public:
  // Everybody sends for itself.
  Hosts() = default;
  // By rank: numbers of the hosts that they are on. Not `summed`: all the same, everybody sends for
  // itself.
  Hosts(std::vector<int> of_workers, std::vector<int> of_servers, bool summed = true);
  static Hosts Of(const std::vector<Member>& members, bool summed = true);

  // Whether it is known who is where.
  bool known() const { return !of_workers_.empty(); }
  // How many workers are on the server's host, of so many; all, if it is not known who is where.
  int WorkersBeside(int server, int workers) const;
  // Who sends the worker's copies to the server.
  int Sender(int worker, int server) const;
  // How many workers the worker's copies stand for there; 0: it sends none.
  int StandsFor(int worker, int server) const;
  // Whether that server is on the worker's host.
  bool Beside(int worker, int server) const;
  // Whether the worker sums for others, or another does for it.
  bool Leads(int worker) const { return Sums(worker) && LeaderOf(worker) == worker; }
  bool Follows(int worker) const { return Sums(worker) && LeaderOf(worker) != worker; }
  // The first worker of its host.
  int LeaderOf(int worker) const;
  // All workers on the host of that one, ascending: the leader is the first.
  std::vector<int> Workers(int worker) const;
  std::vector<int> Leaders() const;
  // The rank that the sums of the leader's host have among servers, where they are called one: in
  // traces.
  int AsServer(int leader) const;
  // Which of the workers send copies to the server.
  std::vector<int> Senders(int server, int workers) const;

 private:
  bool Sums(int worker) const;

  std::vector<int> of_workers_, of_servers_;
  std::vector<int> leaders_, sizes_;  // by worker: the first of its host, and how many are there
  std::vector<bool> sums_;            // by worker: whether something leaves its host in one copy
};

}  // namespace mercury
