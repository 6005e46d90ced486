#include "fabric/batch_text.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fabric/json.h"

namespace mercury::fabric {
namespace {

// Beyond, numbers are no longer whole to the last digit.
constexpr double kIntegerMost = 9007199254740992;
// Beyond, sums of such numbers might not be numbers any more.
constexpr double kNumberMost = 1e100;

// A value, and where it stands.
struct Field {
  const Json* value = nullptr;
  std::string path;
};

class BatchReader {
 public:
  explicit BatchReader(Batch* batch) : batch_(*batch) {}

  Status Read(const Json& root) {
    Whole(root);
    return status_;
  }

 private:
  bool No(const std::string& path, const std::string& problem) {
    if (status_.ok()) status_ = Status::InvalidArgument(path + ": " + problem);
    return false;
  }

  // --- values -----------------------------------------------------------------------------------
  bool Get(const Json& object, const std::string& path, const char* name, Field* field) {
    field->path = path.empty() ? name : path + "." + name;
    field->value = object.Find(name);
    return field->value != nullptr || No(field->path, "it is missing");
  }
  bool Is(const Field& field, Json::Type type, const char* what) {
    return field.value->type == type || No(field.path, std::string("it is not ") + what);
  }
  bool Object(const Json& in, const std::string& path, const char* name, Field* field) {
    return Get(in, path, name, field) && Is(*field, Json::Type::kObject, "an object");
  }
  bool Array(const Json& in, const std::string& path, const char* name, Field* field) {
    return Get(in, path, name, field) && Is(*field, Json::Type::kArray, "an array");
  }
  bool Text(const Field& field, std::string* text) {
    *text = field.value->text;
    return Is(field, Json::Type::kText, "a string");
  }
  bool Number(const Field& field, double* number, double least = 0) {
    if (!Is(field, Json::Type::kNumber, "a number")) return false;
    *number = field.value->number;
    if (*number > kNumberMost) {
      return No(field.path, Shown(*number) + " is above " + Shown(kNumberMost));
    }
    return *number >= least || No(field.path, Shown(*number) + " is below " + Shown(least));
  }
  bool Number(const Json& in, const std::string& path, const char* name, double* number) {
    Field field;
    return Get(in, path, name, &field) && Number(field, number);
  }
  bool Momentum(const Json& in, const std::string& path, double* momentum) {
    if (!Number(in, path, "momentum", momentum)) return false;
    return *momentum < 1 ||
           No(path.empty() ? "momentum" : path + ".momentum", Shown(*momentum) + " is not below 1");
  }
  bool Integer(const Field& field, int64_t* number, double least = 0) {
    double value = 0;
    if (!Number(field, &value, least)) return false;
    if (value != std::floor(value)) return No(field.path, Shown(value) + " is not an integer");
    if (value > kIntegerMost) return No(field.path, Shown(value) + " is above 2^53");
    *number = static_cast<int64_t>(value);
    return true;
  }
  bool Integer(const Json& in, const std::string& path, const char* name, int64_t* number,
               double least = 0) {
    Field field;
    return Get(in, path, name, &field) && Integer(field, number, least);
  }
  static std::string Shown(double number) { return NumberJson(number); }

  // --- nodes and hosts --------------------------------------------------------------------------
  bool NodeNamed(const Field& field, Site* node) {
    if (!Text(field, &node->name)) return false;
    const auto place = placement_.find(node->name);
    if (place == placement_.end()) {
      return No(field.path, "there is no node " + QuotedJson(node->name) + " in placement");
    }
    node->host = place->second;
    return true;
  }
  bool NodeAt(const Json& in, const std::string& path, const char* name, Site* node) {
    Field field;
    return Get(in, path, name, &field) && NodeNamed(field, node);
  }
  bool Nodes(const Json& in, const std::string& path, const char* name, std::vector<Site>* nodes,
             std::set<std::string>* taken) {
    Field field;
    if (!Array(in, path, name, &field)) return false;
    for (size_t i = 0; i < field.value->items.size(); ++i) {
      const Field item{&field.value->items[i], field.path + "[" + std::to_string(i) + "]"};
      nodes->emplace_back();
      if (!NodeNamed(item, &nodes->back())) return false;
      if (!taken->insert(nodes->back().name).second) {
        return No(item.path, QuotedJson(nodes->back().name) + " is named twice");
      }
    }
    return true;
  }

  bool Profile(const Json& in, const std::string& path, const char* name, RateProfile* profile) {
    Field field;
    if (!Array(in, path, name, &field)) return false;
    std::vector<RateStep> steps;
    for (size_t i = 0; i < field.value->items.size(); ++i) {
      const Field item{&field.value->items[i], field.path + "[" + std::to_string(i) + "]"};
      if (!Is(item, Json::Type::kArray, "a pair [time, rate]")) return false;
      if (item.value->items.size() != 2) return No(item.path, "it is not a pair [time, rate]");
      RateStep step;
      if (!Number({item.value->items.data(), item.path + "[0]"}, &step.at_s) ||
          !Number({&item.value->items[1], item.path + "[1]"}, &step.bit_per_s)) {
        return false;
      }
      if (steps.empty() && step.at_s != 0) return No(item.path, "the first time is not 0");
      if (!steps.empty() && step.at_s <= steps.back().at_s) {
        return No(item.path, "its time is not later than the one before");
      }
      steps.push_back(step);
    }
    if (steps.empty()) return No(field.path, "it has no entry");
    if (steps.back().bit_per_s < 1) return No(field.path, "the last rate is below 1 bit/s");
    *profile = RateProfile(steps);
    return true;
  }

  bool Hosts(const Json& root) {
    Field hosts;
    if (!Object(root, "", "hosts", &hosts)) return false;
    std::vector<HostLink> links;
    for (const auto& [name, value] : hosts.value->fields) {
      const Field host{&value, "hosts[" + QuotedJson(name) + "]"};
      HostLink link;
      if (!Is(host, Json::Type::kObject, "an object") ||
          !Profile(value, host.path, "in", &link.in) ||
          !Profile(value, host.path, "out", &link.out)) {
        return false;
      }
      hosts_.emplace(name, links.size());
      links.push_back(std::move(link));
    }
    batch_.network = Network(std::move(links));
    return true;
  }

  bool Placement(const Json& root) {
    Field placement;
    if (!Object(root, "", "placement", &placement)) return false;
    for (const auto& [name, value] : placement.value->fields) {
      const Field node{&value, "placement[" + QuotedJson(name) + "]"};
      std::string host;
      if (!Text(node, &host)) return false;
      const auto known = hosts_.find(host);
      if (known == hosts_.end()) {
        return No(node.path, "there is no host " + QuotedJson(host) + " in hosts");
      }
      placement_.emplace(name, known->second);
    }
    return true;
  }

  // --- updates ----------------------------------------------------------------------------------
  bool Named(const Json& in, const std::string& path, Update* update) {
    Field id;
    if (!Get(in, path, "id", &id) || !Text(id, &update->id)) return false;
    if (!ids_.insert(update->id).second) {
      return No(id.path, QuotedJson(update->id) + " is the id of another update, too");
    }
    return NodeAt(in, path, "worker", &update->worker) && Number(in, path, "norm", &update->norm);
  }

  bool Parts(const Json& in, const std::string& path, std::vector<int64_t>* bytes) {
    Field parts;
    if (!Array(in, path, "parts", &parts)) return false;
    const size_t count = parts.value->items.size();
    if (count != batch_.servers.size()) {
      return No(parts.path, "it has " + std::to_string(count) + " entries for " +
                                std::to_string(batch_.servers.size()) + " servers");
    }
    for (size_t i = 0; i < count; ++i) {
      bytes->push_back(0);
      const Field part{&parts.value->items[i], parts.path + "[" + std::to_string(i) + "]"};
      if (!Integer(part, &bytes->back())) return false;
    }
    return std::any_of(bytes->begin(), bytes->end(), [](int64_t part) { return part != 0; }) ||
           No(parts.path, "all parts are empty");
  }

  bool Bytes(const Json& in, const std::string& path, std::vector<int64_t>* bytes) {
    bytes->push_back(0);
    return Integer(in, path, "bytes", bytes->data(), 1);
  }

  bool Updates(const Json& root) {
    Field updates;
    if (!Array(root, "", "updates", &updates)) return false;
    for (size_t i = 0; i < updates.value->items.size(); ++i) {
      const Field item{&updates.value->items[i], "updates[" + std::to_string(i) + "]"};
      if (!Is(item, Json::Type::kObject, "an object")) return false;
      const Json& in = *item.value;
      Update update;
      if (!Named(in, item.path, &update) ||
          !(several_ ? Parts(in, item.path, &update.bytes) : Bytes(in, item.path, &update.bytes)) ||
          !Number(in, item.path, "available_s", &update.available_s) ||
          !Integer(in, item.path, "version", &update.version)) {
        return false;
      }
      if (update.version > batch_.version) {
        return No(item.path + ".version", std::to_string(update.version) +
                                              " is above the batch's version, " +
                                              std::to_string(batch_.version));
      }
      batch_.updates.push_back(std::move(update));
    }
    return true;
  }

  bool Pending(const Json& in, std::vector<Update>* updates) {
    Field pending;
    if (!Array(in, "replica", "pending", &pending)) return false;
    for (size_t i = 0; i < pending.value->items.size(); ++i) {
      const Field item{&pending.value->items[i], pending.path + "[" + std::to_string(i) + "]"};
      Update update;
      if (!Is(item, Json::Type::kObject, "an object") || !Named(*item.value, item.path, &update) ||
          !Bytes(*item.value, item.path, &update.bytes)) {
        return false;
      }
      updates->push_back(std::move(update));
    }
    return true;
  }

  bool Replica(const Json& root, std::set<std::string>* aggregators) {
    Field field;
    if (!Get(root, "", "replica", &field)) return false;
    if (field.value->type == Json::Type::kNull) return true;
    if (!Is(field, Json::Type::kObject, "an object or null")) return false;
    if (batch_.synchronous) return No(field.path, "it must be null if mode is \"sync\"");
    if (several_) return No(field.path, "it must be null with several servers");
    ReplicaBatch& replica = batch_.replica.emplace();
    replica.relays = batch_.by_packets && !batch_.aggregators.empty();
    const Json& in = *field.value;
    return NodeAt(in, field.path, "node", &replica.node) &&
           Nodes(in, field.path, "aggregators", &replica.aggregators, aggregators) &&
           Number(in, field.path, "divergence_bound", &replica.divergence_bound) &&
           Momentum(in, field.path, &replica.momentum) &&
           Number(in, field.path, "history_norm", &replica.history_norm) &&
           Pending(in, &replica.pending);
  }

  // --- the whole --------------------------------------------------------------------------------
  bool Servers(const Json& root) {
    several_ = root.Find("servers") != nullptr;
    if (!several_) {
      batch_.servers.emplace_back();
      return NodeAt(root, "", "server", batch_.servers.data());
    }
    if (root.Find("server") != nullptr) return No("servers", "there is a field server, too");
    std::set<std::string> taken;
    if (!Nodes(root, "", "servers", &batch_.servers, &taken)) return false;
    return !batch_.servers.empty() || No("servers", "it names no server");
  }

  bool Mode(const Json& root) {
    Field mode;
    std::string name;
    if (!Get(root, "", "mode", &mode) || !Text(mode, &name)) return false;
    if (name != "async" && name != "sync") {
      return No(mode.path, QuotedJson(name) + " is neither \"async\" nor \"sync\"");
    }
    batch_.synchronous = name == "sync";
    return !(several_ && batch_.synchronous) ||
           No(mode.path, "with several servers it must be \"async\"");
  }

  // Not required: batches from before it are as they were.
  bool Forwarding(const Json& root) {
    if (root.Find("forwarding") == nullptr) return true;
    Field forwarding;
    std::string name;
    if (!Get(root, "", "forwarding", &forwarding) || !Text(forwarding, &name)) return false;
    if (name != "whole" && name != "packets") {
      return No(forwarding.path, QuotedJson(name) + " is neither \"whole\" nor \"packets\"");
    }
    batch_.by_packets = name == "packets";
    return !(several_ && batch_.by_packets) ||
           No(forwarding.path, "with several servers it must be \"whole\"");
  }

  bool Whole(const Json& root) {
    if (root.type != Json::Type::kObject) return No("the batch", "it is not an object");
    std::set<std::string> aggregators;
    if (!Hosts(root) || !Placement(root) || !Servers(root) || !Mode(root) || !Forwarding(root) ||
        !Nodes(root, "", "aggregators", &batch_.aggregators, &aggregators)) {
      return false;
    }
    if (several_ && !aggregators.empty()) {
      return No("aggregators", "it must be [] with several servers");
    }
    return Integer(root, "", "delay_bound", &batch_.delay_bound) &&
           Integer(root, "", "version", &batch_.version) && Momentum(root, "", &batch_.momentum) &&
           Updates(root) && Replica(root, &aggregators);
  }

  Batch& batch_;
  Status status_;
  bool several_ = false;
  std::map<std::string, size_t> hosts_;
  std::map<std::string, size_t> placement_;
  std::set<std::string> ids_;
};

}  // namespace

Status ReadBatch(std::string_view text, Batch* batch) {
  *batch = Batch();
  Json root;
  if (Status status = ReadJson(text, &root); !status.ok()) return status;
  return BatchReader(batch).Read(root);
}

}  // namespace mercury::fabric
