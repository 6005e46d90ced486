#include "control/roster.h"

#include <algorithm>

namespace mercury {

bool Roster::CanLose(const std::set<int>& nodes) const {
  if (!elastic()) return false;
  int fewer = 0, servers_out = ServersOut();
  for (const int node : nodes) {
    if (IsOut(node)) continue;
    const bool worker = RoleOf(node) == Role::kWorker;
    if (!worker && (RoleOf(node) != Role::kServer || ++servers_out >= servers_)) return false;
    fewer += worker ? 1 : 0;
  }
  return WorkersThatCount() - fewer >= least_;
}

int Roster::ServersOut() const {
  return static_cast<int>(std::count_if(lost_.begin(), lost_.end(),
                                        [](int node) { return RoleOf(node) == Role::kServer; }));
}

int Roster::WorkersThatCount() const {
  const auto done = std::count_if(left_.begin(), left_.end(),
                                  [](int node) { return RoleOf(node) == Role::kWorker; });
  return workers() + static_cast<int>(done);
}

std::string Roster::Shortage() const {
  const int count = WorkersThatCount();
  if (count >= least_) return {};
  return "; " + std::to_string(count) + (count == 1 ? " worker is" : " workers are") +
         " left, fewer than MERCURY_MIN_WORKERS=" + std::to_string(least_);
}

bool Roster::Lose(int node) {
  if (IsOut(node)) return false;
  lost_.insert(node);
  if (RoleOf(node) == Role::kWorker) ++out_;
  return true;
}

bool Roster::Leave(int node) {
  if (IsOut(node)) return false;
  left_.insert(node);
  if (RoleOf(node) == Role::kWorker) ++out_;
  return true;
}

}  // namespace mercury
