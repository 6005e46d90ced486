// The C API's beginning: from Python's options to a node that joins its job.
#include <algorithm>
#include <string>

#include "process/c_api.h"
#include "process/c_api_status.h"
#include "process/node.h"

using mercury::Status;

namespace {

Status ReadMercury(const mercury_options& o, mercury::NodeOptions* options) {
  options->packets = o.packets != 0;
  mercury::MercuryOptions& m = options->mercury;
  Status status = mercury::ParsePolicy(o.policy, &m.policy.kind);
  if (!status.ok()) return status;
  m.policy.adapt_packets = o.packet_bytes == 0;
  // Of many workers, each has few packets under way, and a sum waits for all: smaller ones.
  m.policy.packet_bytes = o.num_workers > 2 ? 32 << 10 : 64 << 10;
  if (o.packet_bytes != 0) m.policy.packet_bytes = static_cast<uint64_t>(o.packet_bytes);
  // One packet under way could not keep a link busy.
  m.policy.credit.bytes_min = std::max(m.policy.credit.bytes_min, 2 * m.policy.packet_bytes);
  m.policy.credit.bytes_max = std::max(m.policy.credit.bytes_max, m.policy.credit.bytes_min);
  m.policy.unit_bytes = o.partition_bytes != 0 ? static_cast<uint64_t>(o.partition_bytes)
                                               : mercury::DefaultUnitBytes(m.policy.kind);
  m.policy.window_bytes = static_cast<uint64_t>(o.credit_bytes);
  m.policy.credit.fixed_bytes = static_cast<uint64_t>(o.credit_bytes);
  m.policy.profile_steps = o.prophet_profile_steps;
  m.policy.profile_text = o.prophet_profile;
  m.policy.levels_max = static_cast<size_t>(o.priorities_max);
  m.tcp.congestion = std::string(o.congestion) == "system" ? "" : o.congestion;
  m.tcp.send_lowat_bytes = static_cast<int>(o.send_unsent_bytes);
  m.tcp.send_buffer_bytes = static_cast<int>(o.send_buffer_bytes);
  m.tcp.receive_buffer_bytes = static_cast<int>(o.receive_buffer_bytes);
  m.tcp.timeout_ms = static_cast<int>(o.heartbeat_timeout_ms);
  m.lanes = o.lanes;
  m.checksum = o.checksum != 0;
  m.deterministic = o.deterministic != 0;
  m.tensors_max = static_cast<size_t>(o.tensors_max);
  m.server_bytes_max = static_cast<uint64_t>(o.server_bytes_max);
  m.stall_warn_us = o.stall_warn_ms * 1000;
  m.handshake_timeout_us = o.heartbeat_timeout_ms * 1000;
  m.token = o.token;
  // All workers may come at once.
  m.strangers_max =
      std::max(m.strangers_max, static_cast<size_t>(o.num_workers) * static_cast<size_t>(o.lanes));
  m.workers = o.num_workers;
  m.servers = o.num_servers;
  return Status::Ok();
}

}  // namespace

extern "C" {

const char* mercury_last_error(void) { return mercury::LastError().c_str(); }

int mercury_start(const mercury_options* o) {
  return mercury::Guarded([&] {
    mercury::NodeOptions options;
    const std::string role = o->role;
    if (role == "worker") {
      options.van.role = mercury::Role::kWorker;
    } else if (role == "server") {
      options.van.role = mercury::Role::kServer;
    } else if (role == "scheduler") {
      options.van.role = mercury::Role::kScheduler;
    } else {
      return Status::InvalidArgument("role is '" + role + "', not worker, server or scheduler");
    }
    options.van.host = o->host;
    options.van.port = o->port;
    options.van.scheduler_host = o->root_host;
    options.van.scheduler_port = o->root_port;
    options.van.workers = o->num_workers;
    options.van.servers = o->num_servers;
    options.van.rank_hint = o->rank_hint;
    options.van.token = o->token;
    options.van.times = {o->heartbeat_interval_ms, o->heartbeat_timeout_ms, o->start_warn_ms,
                         o->start_timeout_ms};
    options.van.message_bytes_max = o->message_bytes_max;
    options.van.connections_max = o->connections_max;
    options.classic.num_servers = o->num_servers;
    options.classic.split_bytes = static_cast<uint64_t>(o->split_bytes);
    options.classic.piece_bytes_max = static_cast<uint64_t>(o->message_bytes_max);
    options.server_bytes_max = static_cast<uint64_t>(o->server_bytes_max);
    options.verbose = o->verbose != 0;
    options.van.asynchronous = o->asynchronous != 0;
    options.trace.directory = o->trace_directory;
    options.trace.binary = o->trace_binary != 0;
    options.trace.mercury = o->packets != 0;
    options.trace.from_step = o->trace_from_step;
    if (o->trace_to_step != 0) options.trace.to_step = o->trace_to_step;
    options.trace.ring_events = static_cast<size_t>(o->trace_ring_events);
    const Status status = ReadMercury(*o, &options);
    const mercury::PolicyOptions& policy = options.mercury.policy;
    options.classic.prophet = !options.packets && policy.kind == mercury::PolicyKind::kProphet;
    options.classic.profile_steps = policy.profile_steps;
    options.classic.profile_text = policy.profile_text;
    return status.ok() ? mercury::Node::Get().Start(options) : status;
  });
}

}  // extern "C"
