#include "fabric/net/muster.h"

#include <cstdio>
#include <optional>

#include "fabric/net/peers.h"

namespace mercury::fabric {
namespace {

constexpr int64_t kElementsMost = kUpdateBytesMax / static_cast<int64_t>(sizeof(float));

std::string Counted(int64_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

std::optional<Rule> RuleOf(const Joining& joining) {
  return joining.has_rule ? std::optional(joining.rule) : std::nullopt;
}

std::string RuleText(const Joining& joining) {
  if (!joining.has_rule) return "nothing";
  char number[32];
  std::snprintf(number, sizeof number, "%g", joining.rule.momentum);
  return (joining.rule.nesterov ? "Nesterov's momentum " : "momentum ") + std::string(number);
}

}  // namespace

bool Muster::Awaits(int node) const {
  const bool known = IsServerNode(node)    ? ServerIndex(node) < servers_
                     : IsReplicaNode(node) ? ReplicaIndex(node) < replicas_
                                           : node >= 0 && node < workers_;
  return known && joined_.count(node) == 0;
}

Status Muster::Join(int node, const Joining& joining) {
  const std::string who = NodeText(node);
  if (!Awaits(node)) return Status::InvalidArgument(who + " is not awaited, or was there before");
  if (joining.workers != workers_ || joining.servers != servers_ || joining.replicas != replicas_) {
    const auto said = [](int64_t workers, int64_t servers, int64_t replicas) {
      return Counted(workers, "worker") + ", " + Counted(servers, "server") + " and " +
             (replicas == 0 ? "no replica" : Counted(replicas, "replica"));
    };
    return Status::InvalidArgument(who + " was told of " +
                                   said(joining.workers, joining.servers, joining.replicas) +
                                   "; the scheduler of " + said(workers_, servers_, replicas_));
  }
  Status agreed = Agree(who, joining.told);
  if (!agreed.ok()) return agreed;
  if (joining.link_bit_per_s < 0) {
    return Status::InvalidArgument(who + " has a link of less than 0 bit/s");
  }
  agreed = AgreeOnModel(node, joining);
  if (agreed.ok()) joined_[node] = joining;
  return agreed;
}

Status Muster::AgreeOnModel(int node, const Joining& joining) const {
  const std::string who = NodeText(node);
  const bool none = joining.elements == 0 && node < 0;
  if (!none && (joining.elements < 1 || joining.elements > kElementsMost)) {
    return Status::InvalidArgument(who + " has a model of " + std::to_string(joining.elements) +
                                   " elements");
  }
  if (!none && joining.elements < servers_) {
    return Status::InvalidArgument("a model of " + std::to_string(joining.elements) +
                                   " elements has no parts for " + Counted(servers_, "server"));
  }
  for (const auto& [other, theirs] : joined_) {
    const bool both_hold = node < 0 && other < 0;
    if (both_hold && (theirs.elements == 0) != none) {
      return Status::InvalidArgument(
          "of " + NodeText(other) + " and " + who +
          " one has first values, and the other awaits worker 0's: give both the same, or neither "
          "any");
    }
    if (!none && theirs.elements != 0 && theirs.elements != joining.elements) {
      return Status::InvalidArgument(who + " has a model of " + std::to_string(joining.elements) +
                                     " elements, " + NodeText(other) + " one of " +
                                     std::to_string(theirs.elements));
    }
    if (both_hold && theirs.checksum != joining.checksum) {
      return Status::InvalidArgument(NodeText(other) + " and " + who +
                                     " begin with different models: give both the same values");
    }
    if (node >= 0 && other >= 0 && !(RuleOf(theirs) == RuleOf(joining))) {
      return Status::InvalidArgument(who + " asks the server for " + RuleText(joining) + ", " +
                                     NodeText(other) + " for " + RuleText(theirs) +
                                     ": give all workers the same optimizer");
    }
  }
  return Status::Ok();
}

Status Muster::Agree(const std::string& who, const std::string& told) const {
  SharedSettings theirs;
  Status status = FromText(told, &theirs);
  if (!status.ok()) return status;
  for (const SharedSetting& setting : theirs) {
    const SharedSetting* ours = Find(settings_, setting.name);
    if (ours != nullptr && ours->value == setting.value) continue;
    return Status::InvalidArgument(
        who + " was told " + setting.name + "=" + setting.value +
        (ours == nullptr ? ", which the scheduler does not know"
                         : ", and the scheduler uses " + ours->value +
                               ": set it for the scheduler alone, or for all alike"));
  }
  return Status::Ok();
}

Attendance Muster::Called() const {
  Attendance roster;
  roster.rule = rule_;
  for (const auto& [node, joining] : joined_) {
    roster.seats.push_back({node, joining.host, joining.port, joining.link_bit_per_s});
    if (node == kServerNode) roster.first_from_worker = joining.elements == 0;
    if (node < 0) continue;
    roster.elements = joining.elements;  // all have the same
    if (joining.has_rule) roster.rule = joining.rule;
  }
  return roster;
}

std::vector<int> Muster::Nodes() const {
  std::vector<int> nodes;
  nodes.reserve(seats());
  for (int server = 0; server < servers_; ++server) nodes.push_back(ServerNode(server));
  for (int replica = 0; replica < replicas_; ++replica) nodes.push_back(ReplicaNode(replica));
  for (int worker = 0; worker < workers_; ++worker) nodes.push_back(worker);
  return nodes;
}

std::string Muster::Missing() const {
  std::string missing;
  for (const int node : Nodes()) {
    const bool here = all_joined() ? ready_.count(node) != 0 : joined_.count(node) != 0;
    if (!here) missing += (missing.empty() ? "" : ", ") + NodeText(node);
  }
  return missing;
}

}  // namespace mercury::fabric
