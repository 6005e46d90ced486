#include "control/roster.h"

#include <algorithm>

namespace mercury {

Roster::Roster(int workers) {
  for (int w = 0; w < workers; ++w) in_.insert(NodeId(Role::kWorker, w));
}

void Roster::Restore(uint64_t generation, const std::map<int, Place>& nodes) {
  generation_ = generation;
  in_.clear();
  for (const auto& [node, place] : nodes) {
    const Presence presence = place.presence;
    changed_[node] = place.changed;
    if (presence == Presence::kLeft) left_.insert(node);
    if (presence == Presence::kLost) lost_.insert(node);
    if (presence == Presence::kNew) new_.insert(node);
    if (presence == Presence::kIn && RoleOf(node) == Role::kWorker) in_.insert(node);
  }
}

Presence Roster::PresenceOf(int node) const {
  if (HasLeft(node)) return Presence::kLeft;
  if (IsLost(node)) return Presence::kLost;
  return IsNew(node) ? Presence::kNew : Presence::kIn;
}

uint64_t Roster::ChangedAt(int node) const {
  const auto found = changed_.find(node);
  return found != changed_.end() ? found->second : 1;
}

void Roster::GoOnWith(int least, int servers, int places) {
  least_ = least;
  servers_ = servers;
  places_ = places;
}

bool Roster::IsOut(int node) const {
  if (RoleOf(node) == Role::kWorker) return in_.count(node) == 0;
  return HasLeft(node) || IsLost(node) || IsNew(node);
}

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
  int out = 0;
  for (int s = 0; s < servers_; ++s) out += IsOut(NodeId(Role::kServer, s)) ? 1 : 0;
  return out;
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
  if (IsOut(node) && !IsNew(node)) return false;
  if (new_.erase(node) == 0) Changes(node);
  in_.erase(node);
  lost_.insert(node);
  return true;
}

bool Roster::Leave(int node) {
  if (IsOut(node)) return false;
  in_.erase(node);
  left_.insert(node);
  Changes(node);
  return true;
}

// A server's is free only once it is lost: there are no others than at first.
bool Roster::IsFree(int node) const {
  if (RoleOf(node) == Role::kServer) return IsLost(node);
  return in_.count(node) + left_.count(node) + new_.count(node) == 0;
}

int Roster::PlaceFor(Role role, int number) const {
  const int places = role == Role::kServer ? servers_ : places_;
  for (int place = std::max(number, 0); elastic() && place < places; ++place) {
    if (IsFree(NodeId(role, place))) return place;
    if (number >= 0) break;
  }
  return -1;
}

int Roster::StandIn(int server) const {
  for (int i = 1; i < servers_; ++i) {
    const int node = NodeId(Role::kServer, (server + i) % servers_);
    if (!IsOut(node)) return node;
  }
  return -1;
}

void Roster::Expect(int node) {
  lost_.erase(node);
  new_.insert(node);
}

void Roster::LetIn(int node) {
  if (new_.erase(node) == 0) return;
  if (RoleOf(node) == Role::kWorker) in_.insert(node);
  Changes(node);
}

}  // namespace mercury
