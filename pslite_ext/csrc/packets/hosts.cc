#include "packets/hosts.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "base/node_name.h"

namespace mercury {

Hosts::Hosts(std::vector<int> of_workers, std::vector<int> of_servers, bool summed)
    : of_workers_(std::move(of_workers)), of_servers_(std::move(of_servers)) {
  if (!summed) {
    leaders_.resize(of_workers_.size());
    std::iota(leaders_.begin(), leaders_.end(), 0);
    sizes_.assign(of_workers_.size(), 1);
    sums_.assign(of_workers_.size(), false);
    return;
  }
  std::map<int, int> first, size;  // by host
  for (size_t w = 0; w < of_workers_.size(); ++w) {
    leaders_.push_back(first.try_emplace(of_workers_[w], static_cast<int>(w)).first->second);
    ++size[of_workers_[w]];
  }
  for (const int host : of_workers_) {
    sizes_.push_back(size[host]);
    const bool away = std::any_of(of_servers_.begin(), of_servers_.end(),
                                  [host](int server_host) { return server_host != host; });
    sums_.push_back(away && size[host] > 1);
  }
}

Hosts Hosts::Of(const std::vector<Member>& members, bool summed) {
  std::map<std::string, int> numbers;
  std::vector<int> of_workers, of_servers;
  for (const Member& member : members) {
    if (member.role != Role::kWorker && member.role != Role::kServer) continue;
    std::vector<int>& of = member.role == Role::kWorker ? of_workers : of_servers;
    const auto rank = static_cast<size_t>(RankOf(member.id));
    if (of.size() <= rank) of.resize(rank + 1, -1);
    of[rank] = numbers.try_emplace(member.host, static_cast<int>(numbers.size())).first->second;
  }
  return {std::move(of_workers), std::move(of_servers), summed};
}

int Hosts::LeaderOf(int worker) const {
  const auto w = static_cast<size_t>(worker);
  return w < leaders_.size() ? leaders_[w] : worker;
}

bool Hosts::Beside(int worker, int server) const {
  const auto w = static_cast<size_t>(worker), s = static_cast<size_t>(server);
  return w < of_workers_.size() && s < of_servers_.size() && of_workers_[w] == of_servers_[s];
}

int Hosts::WorkersBeside(int server, int workers) const {
  if (static_cast<size_t>(server) >= of_servers_.size()) return workers;
  int beside = 0;
  for (int w = 0; w < workers; ++w) beside += Beside(w, server) ? 1 : 0;
  return beside;
}

bool Hosts::Sums(int worker) const {
  const auto w = static_cast<size_t>(worker);
  return w < sums_.size() && sums_[w];
}

int Hosts::Sender(int worker, int server) const {
  return Beside(worker, server) ? worker : LeaderOf(worker);
}

int Hosts::StandsFor(int worker, int server) const {
  if (of_workers_.empty() || Beside(worker, server)) return 1;
  return LeaderOf(worker) == worker ? sizes_[static_cast<size_t>(worker)] : 0;
}

std::vector<int> Hosts::Workers(int worker) const {
  if (of_workers_.empty()) return {worker};
  std::vector<int> all;
  for (size_t w = 0; w < of_workers_.size(); ++w) {
    if (of_workers_[w] == of_workers_[static_cast<size_t>(worker)])
      all.push_back(static_cast<int>(w));
  }
  return all;
}

std::vector<int> Hosts::Leaders() const {
  std::vector<int> leaders;
  for (int w = 0; w < static_cast<int>(of_workers_.size()); ++w) {
    if (Leads(w)) leaders.push_back(w);
  }
  return leaders;
}

int Hosts::AsServer(int leader) const {
  const std::vector<int> leaders = Leaders();
  const auto at = std::find(leaders.begin(), leaders.end(), leader) - leaders.begin();
  return static_cast<int>(of_servers_.size()) + static_cast<int>(at);
}

std::vector<int> Hosts::Senders(int server, int workers) const {
  std::vector<int> senders;
  for (int w = 0; w < workers; ++w) {
    if (StandsFor(w, server) != 0) senders.push_back(w);
  }
  return senders;
}

}  // namespace mercury
