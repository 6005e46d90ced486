#include "fabric/net/muster.h"

#include "fabric/net/peers.h"

namespace mercury::fabric {
namespace {

constexpr int64_t kElementsMost = kUpdateBytesMax / static_cast<int64_t>(sizeof(float));

std::string Workers(int64_t count) {
  return std::to_string(count) + (count == 1 ? " worker" : " workers");
}

}  // namespace

bool Muster::Awaits(int node) const {
  const bool known =
      node == kServerNode || (node == kReplicaNode && replica_) || (node >= 0 && node < workers_);
  return known && joined_.count(node) == 0;
}

Status Muster::Join(int node, const Joining& joining) {
  const std::string who = NodeText(node);
  if (!Awaits(node)) return Status::InvalidArgument(who + " is not awaited, or was there before");
  if (joining.workers != workers_ || joining.replica != replica_) {
    const auto said = [](int64_t workers, bool replica) {
      return Workers(workers) + (replica ? " and a replica" : " and no replica");
    };
    return Status::InvalidArgument(who + " was told of " + said(joining.workers, joining.replica) +
                                   ", the scheduler of " + said(workers_, replica_));
  }
  Status agreed = Agree(who, joining.told);
  if (!agreed.ok()) return agreed;
  if (joining.link_bit_per_s < 0) {
    return Status::InvalidArgument(who + " has a link of less than 0 bit/s");
  }
  if (joining.elements < 1 || joining.elements > kElementsMost) {
    return Status::InvalidArgument(who + " has a model of " + std::to_string(joining.elements) +
                                   " elements");
  }
  for (const auto& [other, theirs] : joined_) {
    if (theirs.elements != joining.elements) {
      return Status::InvalidArgument(who + " has a model of " + std::to_string(joining.elements) +
                                     " elements, " + NodeText(other) + " one of " +
                                     std::to_string(theirs.elements));
    }
    if (node < 0 && other < 0 && theirs.checksum != joining.checksum) {
      return Status::InvalidArgument(
          "the server and the replica begin with different models: give both the same values");
    }
  }
  joined_[node] = joining;
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

std::vector<Seat> Muster::Seats() const {
  std::vector<Seat> seats;
  seats.reserve(joined_.size());
  for (const auto& [node, joining] : joined_) {
    seats.push_back({node, joining.host, joining.port, joining.link_bit_per_s});
  }
  return seats;
}

size_t Muster::elements() const {
  return joined_.empty() ? 0 : static_cast<size_t>(joined_.begin()->second.elements);
}

std::vector<int> Muster::Nodes() const {
  std::vector<int> nodes{kServerNode};
  if (replica_) nodes.push_back(kReplicaNode);
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
