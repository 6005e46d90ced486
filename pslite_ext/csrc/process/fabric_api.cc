#include "process/fabric_api.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "fabric/net/fabric_node.h"
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
};

int mercury_fabric_join(const mercury_fabric_options* options, const float* model, size_t elements,
                        mercury_fabric** fabric) {
  return Guarded([&] {
    FabricNodeOptions its;
    its.node = options->node;
    its.workers = options->workers;
    its.replica = options->replica != 0;
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
    its.planning.record = options->record != 0;
    its.weights.assign(options->weights, options->weights + options->num_weights);
    Vector first(model, model + (model == nullptr ? 0 : elements));
    std::unique_ptr<mercury_fabric> made(new mercury_fabric{{std::move(its), std::move(first)}});
    status = made->its.Start();
    if (status.ok()) *fabric = made.release();
    return status;
  });
}

int mercury_fabric_wait(mercury_fabric* fabric, int what, int slice_ms) {
  Status status;
  const bool over = what == MERCURY_FABRIC_BEGUN   ? fabric->its.WaitBegun(slice_ms, &status)
                    : what == MERCURY_FABRIC_ENDED ? fabric->its.WaitEnded(slice_ms, &status)
                                                   : fabric->its.WaitSettled(slice_ms, &status);
  return over ? Return(status) : MERCURY_NOT_YET;
}

int mercury_fabric_push(mercury_fabric* fabric, const float* update, double norm, int64_t* number) {
  return Guarded([&] { return fabric->its.Push(update, norm, number); });
}

int mercury_fabric_reduce(mercury_fabric* fabric, const float* part) {
  return Guarded([&] { return fabric->its.Reduce(part); });
}

const char* mercury_fabric_fate(mercury_fabric* fabric, int64_t number) {
  const std::optional<mercury::fabric::Fate> fate = fabric->its.FateOf(number);
  return fate ? mercury::fabric::FateName(*fate) : "";
}

int mercury_fabric_ask(mercury_fabric* fabric) {
  return Guarded([&] { return fabric->its.AskModel(); });
}

int mercury_fabric_take(mercury_fabric* fabric, int slice_ms, float* out, int64_t* version) {
  Status status;
  return fabric->its.WaitModel(slice_ms, &status, out, version) ? Return(status) : MERCURY_NOT_YET;
}

int mercury_fabric_model(mercury_fabric* fabric, float* out, size_t elements, int64_t* version) {
  return Guarded([&] {
    Vector model;
    Status status = fabric->its.CopyModel(&model, version);
    if (!status.ok()) return status;
    if (model.size() != elements) return Status::InvalidArgument("the model has another size");
    std::copy(model.begin(), model.end(), out);
    return status;
  });
}

int mercury_fabric_feed(mercury_fabric* fabric, const char* line, size_t bytes) {
  return Guarded([&] { return fabric->its.Feed(std::string(line, bytes)); });
}

const char* mercury_fabric_records(mercury_fabric* fabric) {
  return mercury::Text([&] { return fabric->its.TakeRecords(); }, "");
}

const char* mercury_fabric_stats(mercury_fabric* fabric) {
  return mercury::Text([&] { return fabric->its.Stats(); }, "{}");
}

void mercury_fabric_leave(mercury_fabric* fabric, int failed) { fabric->its.Leave(failed != 0); }

void mercury_fabric_free(mercury_fabric* fabric) { delete fabric; }
