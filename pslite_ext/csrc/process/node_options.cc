#include "process/node_options.h"

#include <algorithm>
#include <string>

#include "sums/codec.h"
#include "transport/server_shares.h"

namespace mercury {
namespace {

constexpr const char* kChosenByTheJob = "auto";  // by PyTorch's front end
constexpr int64_t kHeartbeatIntervalMaxMs = 1000;
constexpr int64_t kStartWarnMaxMs = 10000;
// A tenth of the patience: how often to say that one lives, or that one waits.
constexpr int64_t kTenth = 10;

Status ReadRole(const std::string& text, Role* role) {
  for (const Role known : {Role::kWorker, Role::kServer, Role::kScheduler}) {
    if (text != Name(known)) continue;
    *role = known;
    return Status::Ok();
  }
  return Status::InvalidArgument("DMLC_ROLE is '" + text + "'; allowed: worker, server, scheduler");
}

MembershipTimes Times(const Settings& s) {
  MembershipTimes times;
  times.heartbeat_timeout_ms = s.heartbeat_timeout_ms;
  times.heartbeat_interval_ms = std::min(kHeartbeatIntervalMaxMs, s.heartbeat_timeout_ms / kTenth);
  times.start_timeout_ms = s.start_timeout_s * 1000;
  times.start_warn_ms = std::min(kStartWarnMaxMs, times.start_timeout_ms / kTenth);
  return times;
}

Status CheckWire(const std::string& word) {
  const Codec* codec = FindCompression(word);
  const bool plain = word == Name(DType::kFloat32) || word == kChosenByTheJob;
  if (plain || (codec != nullptr && codec->back)) return Status::Ok();
  return Status::InvalidArgument("MERCURY_WIRE is '" + word + "'; allowed: " + WireNames() + ", " +
                                 kChosenByTheJob);
}

Status ReadPolicy(const Settings& s, PolicyOptions* policy) {
  Status status = ParsePolicy(s.policy, &policy->kind);
  if (!status.ok()) return status;
  policy->adapt_packets = s.packet_bytes == 0;
  // Of many links, each has few packets under way, and a sum waits for all copies: smaller ones,
  // and more of them while the last worker's are on their way.
  const int64_t links = std::max(s.num_worker, s.num_server);
  policy->packet_bytes = s.num_worker > 2 ? 32 << 10 : 64 << 10;
  if (links > 4) {
    policy->packet_bytes = 16 << 10;
    policy->credit.bytes_min *= 2;
  }
  if (s.packet_bytes != 0) policy->packet_bytes = static_cast<uint64_t>(s.packet_bytes);
  // Over several lanes, servers answer whole slots only, and a slot is a packet of the largest.
  if (s.lanes > 1) {
    policy->credit.bytes_min = std::max(policy->credit.bytes_min, 2 * policy->packet_bytes);
    policy->credit.bytes_max = std::max(policy->credit.bytes_max, policy->credit.bytes_min);
  }
  policy->unit_bytes = s.partition_bytes != 0 ? static_cast<uint64_t>(s.partition_bytes)
                                              : DefaultUnitBytes(policy->kind);
  policy->window_bytes = static_cast<uint64_t>(s.credit_bytes);
  policy->credit.fixed_bytes = static_cast<uint64_t>(s.credit_bytes);
  policy->profile_steps = static_cast<int>(s.prophet_profile_steps);
  policy->profile_text = s.prophet_profile_text;
  return Status::Ok();
}

void ReadPackets(const Settings& s, MercuryOptions* m) {
  m->tcp.congestion = s.congestion == "system" ? "" : s.congestion;
  m->tcp.receive_buffer_bytes = static_cast<int>(s.receive_buffer_bytes);
  m->tcp.timeout_ms = static_cast<int>(s.heartbeat_timeout_ms);
  m->lanes = static_cast<int>(s.lanes);
  m->checksum = s.checksum != 0;
  m->deterministic = s.deterministic != 0;
  m->server_bytes_max = static_cast<uint64_t>(s.server_bytes_max);
  m->stall = {s.stall_warn_s * 1000000, s.stall_timeout_s * 1000000};
  m->handshake_timeout_us = s.heartbeat_timeout_ms * 1000;
  m->token = s.job_token;
  // All workers may come at once.
  m->strangers_max = std::max(m->strangers_max, static_cast<size_t>(s.num_worker * s.lanes));
  m->workers = static_cast<int>(std::max(s.num_worker, s.max_workers));
  m->free = m->workers - static_cast<int>(s.num_worker);
}

void ReadVan(const Settings& s, ZmqVanOptions* van) {
  van->host = s.node_host;
  van->port = static_cast<int>(s.node_port);
  van->scheduler_host = s.ps_root_uri;
  van->scheduler_port = static_cast<int>(s.ps_root_port);
  van->workers = static_cast<int>(s.num_worker);
  van->servers = static_cast<int>(s.num_server);
  van->rank_hint = static_cast<int>(s.task_id);
  van->token = s.job_token;
  van->times = Times(s);
  van->asynchronous = s.asynchronous != 0;
  // Another could not go on with the first one's trace.
  if (van->role == Role::kScheduler && s.trace_dir.empty()) van->journal = s.journal;
}

Status ReadElastic(const Settings& s, NodeOptions* options) {
  options->least_workers = static_cast<int>(s.min_workers);
  options->mercury.elastic = s.min_workers != 0;
  if (s.min_workers > s.num_worker) {
    return Status::InvalidArgument("MERCURY_MIN_WORKERS is '" + std::to_string(s.min_workers) +
                                   "', and the job has " + std::to_string(s.num_worker) +
                                   " workers; allowed: 0 to that");
  }
  if (s.max_workers != 0 && (s.min_workers == 0 || s.max_workers < s.num_worker)) {
    return Status::InvalidArgument(
        "MERCURY_MAX_WORKERS is '" + std::to_string(s.max_workers) +
        (s.min_workers == 0
             ? "', and MERCURY_MIN_WORKERS is not set: nobody joins a job that needs "
               "all of its workers"
             : "', and the job begins with " + std::to_string(s.num_worker)));
  }
  if (s.min_workers == 0 || options->packets) return Status::Ok();
  return Status::InvalidArgument("MERCURY_MIN_WORKERS needs DMLC_PS_VAN_TYPE=mercury, which is '" +
                                 s.ps_van_type + "'");
}

}  // namespace

Status MakeNodeOptions(const Settings& s, NodeOptions* options) {
  Status status = ReadRole(s.role, &options->van.role);
  if (!status.ok()) return status;
  PolicyOptions& policy = options->mercury.policy;
  status = ReadPolicy(s, &policy);
  if (!status.ok()) return status;
  status = CheckWire(s.wire);
  if (!status.ok()) return status;
  ServerShares shares;
  status = ServerShares::FromText(s.server_shares, static_cast<int>(s.num_server), &shares);
  if (!status.ok()) return status;
  ReadVan(s, &options->van);
  ReadPackets(s, &options->mercury);
  options->packets = s.ps_van_type == "mercury";
  status = ReadElastic(s, options);
  if (!status.ok()) return status;
  options->mercury.shares = options->classic.shares = shares;
  options->classic.split_bytes = static_cast<uint64_t>(s.split_bytes);
  options->classic.message_bytes_max = static_cast<uint64_t>(kMessageBytesMax);
  options->classic.stall = options->mercury.stall;
  options->classic.prophet = !options->packets && policy.kind == PolicyKind::kProphet;
  options->classic.profile_steps = policy.profile_steps;
  options->classic.profile_text = policy.profile_text;
  options->classic.workers = options->van.workers;
  options->classic.server_bytes_max = options->mercury.server_bytes_max;
  options->classic.deterministic = options->mercury.deterministic;
  options->trace.directory = s.trace_dir;
  options->trace.binary = s.trace_format == "binary";
  options->trace.mercury = options->packets;
  options->trace.from_step = s.trace_from_step;
  if (s.trace_to_step != 0) options->trace.to_step = s.trace_to_step;
  return Status::Ok();
}

}  // namespace mercury
