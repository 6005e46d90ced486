#include "process/fabric_api.h"

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "fabric/net/fabric_node.h"
#include "fabric/net/peers.h"
#include "process/blame.h"
#include "process/c_api.h"
#include "process/returned.h"

using mercury::Guarded;
using mercury::Return;
using mercury::Status;
using mercury::fabric::FabricNode;
using mercury::fabric::FabricNodeOptions;
using mercury::fabric::Vector;

struct mercury_fabric {
  FabricNode its;
  const int node;
  const pid_t process = getpid();

  // Then it has none of the node's threads, and locks may be held by them for ever.
  bool forked() const { return getpid() != process; }
};

namespace {

// `body` with the node, unless this process is a child of its process.
template <typename Body>
Status OfNode(mercury_fabric* fabric, const Body& body) {
  if (!fabric->forked()) return body(&fabric->its);
  return Status::Closed("this process was forked by a node of the job, which alone is in it");
}

// What a script's call says, as data.
template <typename Call>
Status OfScript(const char* what, const Call& call) {
  constexpr size_t kTextMost = 1024;
  char error[kTextMost] = "";
  if (call(error, kTextMost) == 0) return Status::Ok();
  return Status::InvalidArgument(std::string("the server's own call for ") + what +
                                 " failed: " + error);
}

mercury::fabric::ServerCalls CallsOf(const mercury_fabric_options& options) {
  mercury::fabric::ServerCalls calls;
  void* const script = options.script;
  if (const auto update = options.update; update != nullptr) {
    calls.update = [=](float* model, const float* change, size_t elements, int64_t updates) {
      return OfScript("an update", [&](char* error, size_t bytes) {
        return update(script, model, change, elements, updates, error, bytes);
      });
    };
  }
  if (const auto request = options.request; request != nullptr) {
    calls.request = [=](const float* model, float* shown, size_t elements) {
      return OfScript("a request", [&](char* error, size_t bytes) {
        return request(script, model, shown, elements, error, bytes);
      });
    };
  }
  return calls;
}

}  // namespace

int mercury_fabric_join(const mercury_fabric_options* options, const float* model, size_t elements,
                        mercury_fabric** fabric) {
  return Guarded([&] {
    FabricNodeOptions its;
    its.node = options->node;
    its.workers = options->workers;
    its.servers = options->servers;
    its.replicas = options->replicas;
    its.scheduler = {options->scheduler_host, options->scheduler_port};
    its.host = options->host;
    its.port = options->port;
    its.link_bit_per_s = options->link_bit_per_s;
    its.token = options->token;
    its.tcp.congestion = options->congestion;
    its.tcp.receive_buffer_bytes = options->receive_buffer_bytes;
    its.tcp.timeout_ms = options->timeout_ms;
    its.checksum = options->checksum != 0;
    its.silence_us = int64_t{options->timeout_ms} * 1200;
    its.start_timeout_us = int64_t{options->start_timeout_s} * 1000000;
    its.elements = elements;
    Status status = mercury::FromText(options->settings, &its.settings);
    if (!status.ok()) return status;
    its.planning.collector.delay_bound = options->delay_bound;
    its.planning.collector.staleness.updates = options->staleness;
    its.planning.collector.divergence_bound = options->divergence_bound;
    if (options->momentum >= 0) its.rule = {options->momentum, options->nesterov != 0};
    its.planning.collector.batch_s = options->batch_s;
    its.planning.collector.at_once = options->batch_s == 0;
    its.planning.lag_s = options->lag_s;
    its.planning.collector.aggregators = static_cast<size_t>(std::max(0, options->aggregators));
    its.planning.collector.as_they_come = options->as_they_come != 0;
    its.planning.collector.by_packets = options->by_packets != 0;
    its.planning.record = options->record != 0;
    its.weights.assign(options->weights, options->weights + options->num_weights);
    const mercury::Codec* codec = mercury::FindCompression(options->wire);
    its.codec = codec == nullptr ? nullptr : mercury::fabric::CargoCodec(codec->number);
    if (its.codec == nullptr && std::string(options->wire) != Name(mercury::DType::kFloat32)) {
      return Status::InvalidArgument(std::string("under MLfabric updates cannot travel as '") +
                                     options->wire + "'");
    }
    its.calls = CallsOf(*options);
    Vector first(model, model + (model == nullptr ? 0 : elements));
    const int node = its.node;
    std::unique_ptr<mercury_fabric> made(
        new mercury_fabric{{std::move(its), std::move(first)}, node});
    status = made->its.Start();
    if (status.ok()) *fabric = made.release();
    return status;
  });
}

int mercury_fabric_wait(mercury_fabric* fabric, int what, int slice_ms) {
  bool over = true;
  const Status status = OfNode(fabric, [&](FabricNode* its) {
    Status how;
    over = what == MERCURY_FABRIC_BEGUN   ? its->WaitBegun(slice_ms, &how)
           : what == MERCURY_FABRIC_ENDED ? its->WaitEnded(slice_ms, &how)
                                          : its->WaitSettled(slice_ms, &how);
    return how;
  });
  return over ? Return(status) : MERCURY_NOT_YET;
}

int mercury_fabric_push(mercury_fabric* fabric, const float* update, double norm, int64_t* number) {
  return Guarded([&] {
    return OfNode(fabric, [&](FabricNode* its) { return its->Push(update, norm, number); });
  });
}

int mercury_fabric_reduce(mercury_fabric* fabric, const float* part) {
  return Guarded(
      [&] { return OfNode(fabric, [&](FabricNode* its) { return its->Reduce(part); }); });
}

const char* mercury_fabric_fate(mercury_fabric* fabric, int64_t number) {
  std::optional<mercury::fabric::Fate> fate;
  if (!fabric->forked()) fate = fabric->its.FateOf(number);
  return fate ? mercury::fabric::FateName(*fate) : "";
}

int mercury_fabric_ask(mercury_fabric* fabric) {
  return Guarded([&] { return OfNode(fabric, [](FabricNode* its) { return its->AskModel(); }); });
}

int mercury_fabric_take(mercury_fabric* fabric, int slice_ms, float* out, int64_t* version) {
  bool over = true;
  const Status status = OfNode(fabric, [&](FabricNode* its) {
    Status how;
    over = its->WaitModel(slice_ms, &how, out, version);
    return how;
  });
  return over ? Return(status) : MERCURY_NOT_YET;
}

int mercury_fabric_model(mercury_fabric* fabric, float* out, size_t elements, int64_t* version) {
  return Guarded([&] {
    return OfNode(fabric, [&](FabricNode* its) { return its->CopyModel(out, elements, version); });
  });
}

int mercury_fabric_feed(mercury_fabric* fabric, const char* line, size_t bytes) {
  return Guarded([&] {
    return OfNode(fabric, [&](FabricNode* its) { return its->Feed(std::string(line, bytes)); });
  });
}

const char* mercury_fabric_records(mercury_fabric* fabric) {
  return mercury::Text([&] { return fabric->forked() ? std::string() : fabric->its.TakeRecords(); },
                       "");
}

const char* mercury_fabric_stats(mercury_fabric* fabric) {
  return mercury::Text([&] { return fabric->forked() ? "{}" : fabric->its.Stats(); }, "{}");
}

int mercury_fabric_failed_elsewhere(mercury_fabric* fabric) {
  if (fabric->forked()) return 0;
  const mercury::Party me = mercury::fabric::PartyOf(fabric->node);
  return mercury::BlamesAnother(fabric->its.failure(), me) ? 1 : 0;
}

void mercury_fabric_leave(mercury_fabric* fabric, int failed) {
  if (!fabric->forked()) fabric->its.Leave(failed != 0);
}

void mercury_fabric_free(mercury_fabric* fabric) {
  if (!fabric->forked()) delete fabric;  // else it would wait for threads that are not there
}
