#include "fabric/live/chronicle.h"

#include <utility>
#include <vector>

#include "base/node_name.h"
#include "fabric/json.h"

namespace mercury::fabric {
namespace {

std::string NodeJson(int node) {
  if (node == kServerNode) return QuotedJson("server");
  if (node == kReplicaNode) return QuotedJson("replica");
  if (IsServerNode(node)) return QuotedJson(NodeName(Role::kServer, ServerIndex(node)));
  if (IsReplicaNode(node)) return QuotedJson(NodeName(Role::kReplica, ReplicaIndex(node)));
  return std::to_string(node);
}

std::string Member(const char* name, const std::string& json) {
  return ", " + QuotedJson(name) + ": " + json;
}

std::string IntegerMember(const char* name, int64_t value) {
  return Member(name, std::to_string(value));
}

std::string RealMember(const char* name, double value) { return Member(name, NumberJson(value)); }

std::string NodeMember(const char* name, int node) { return Member(name, NodeJson(node)); }

std::string UpdateMembers(UpdateId id) {
  return IntegerMember("worker", id.worker) + IntegerMember("number", id.number);
}

std::string PlacesMember(const std::vector<int64_t>& places) {
  std::string text;
  for (const int64_t place : places) text += (text.empty() ? "" : ", ") + std::to_string(place);
  return Member("places", "[" + text + "]");
}

std::string HopMembers(const Hop& hop) {
  return NodeMember("from", hop.from) + NodeMember("to", hop.to) +
         Member("goal", QuotedJson(hop.goal == Goal::kServer ? "server" : "replica")) +
         Member("gathered", hop.places.size() > 1 ? "true" : "false") + PlacesMember(hop.places) +
         IntegerMember("bytes", hop.bytes) + RealMember("start", hop.start_s) +
         RealMember("end", hop.end_s);
}

const char* EventOf(News::Kind kind) {
  switch (kind) {
    case News::kCommitted:
      return "commit";
    case News::kVoided:
      return "void";
    case News::kHeld:
      return "held";
    case News::kReplicaHas:
      return "replica_has";
    case News::kReplicaApplied:
      return "replica_applied";
    case News::kCaughtUp:
      return "replica_caught_up";
    case News::kTookOver:
      return "took_over";
  }
  return "";
}

}  // namespace

void Chronicle::Asked(const Request& request, double now_s) {
  Write("request", now_s,
        UpdateMembers(request.id) + IntegerMember("version", request.version) +
            IntegerMember("bytes", request.bytes) + RealMember("norm", request.norm) +
            RealMember("pushed", request.pushed_s));
}

void Chronicle::Told(const News& news, int node, double now_s) {
  std::string members = PlacesMember(news.places);
  if (news.kind == News::kCaughtUp) members = IntegerMember("place", news.place);
  if (news.kind == News::kTookOver) members = NodeMember("node", node);
  if (news.kind == News::kCommitted || news.kind == News::kTookOver) {
    members += IntegerMember("version", news.version);
  }
  Write(EventOf(news.kind), now_s, members);
}

void Chronicle::Ordered(const Order& order, double now_s) {
  std::string updates;
  switch (order.kind) {
    case Order::kExpect:
      for (const Placed& placed : order.updates) {
        updates += (updates.empty() ? "{" : ", {") + QuotedJson("place") + ": " +
                   std::to_string(placed.place) + UpdateMembers(placed.id) +
                   IntegerMember("version", placed.version) +
                   (placed.round == 0 ? "" : IntegerMember("round", placed.round)) +
                   (placed.reduce ? Member("reduce", "true") : "") + "}";
      }
      Write("plan", now_s, Member("updates", "[" + updates + "]"));
      break;
    case Order::kSend:
    case Order::kGather:
    case Order::kPassOn:
      Write("hop", now_s, HopMembers(order.hop));
      break;
    case Order::kReport:
      Write("fate", now_s,
            UpdateMembers(order.update) + Member("fate", QuotedJson(FateName(order.fate))));
      break;
    case Order::kSnapshot:
      Write("whole_model", now_s, NodeMember("to", order.hop.to));
      break;
    default:
      break;
  }
}

void Chronicle::Grew(const Tree& tree, double now_s) {
  std::string edges;
  for (const Edge& edge : tree.edges) {
    edges += (edges.empty() ? "[" : ", [") + NodeJson(edge.from) + ", " + NodeJson(edge.to) + "]";
  }
  Write("tree", now_s, IntegerMember("bytes", tree.bytes) + Member("edges", "[" + edges + "]"));
}

void Chronicle::SentOut(double now_s) { Write("sent_out", now_s, ""); }

void Chronicle::Heard(const Hearing& hearing, double now_s) {
  Write("heard", now_s, UpdateMembers(hearing.update) + RealMember("at", hearing.at_s));
}

void Chronicle::Carried(const Carriage& run, double now_s) {
  Write("carried", now_s,
        NodeMember("from", run.from) + NodeMember("to", run.to) + RealMember("bits", run.bits) +
            RealMember("start", run.start_s) + RealMember("end", run.end_s));
}

void Chronicle::Gone(int node, double now_s) { Write("gone", now_s, NodeMember("node", node)); }

void Chronicle::Write(const char* event, double now_s, const std::string& members) {
  const std::string line =
      "{\"t\": " + NumberJson(now_s) + Member("event", QuotedJson(event)) + members + "}\n";
  if (lines_.size() + line.size() > most_bytes_) {
    ++missed_;
    return;
  }
  lines_ += line;
}

std::string Chronicle::Take() {
  std::string taken = std::exchange(lines_, {});
  if (const int64_t missed = std::exchange(missed_, 0); missed > 0) {
    taken += "{\"event\": \"missed\"" + IntegerMember("lines", missed) + "}\n";
  }
  return taken;
}

}  // namespace mercury::fabric
