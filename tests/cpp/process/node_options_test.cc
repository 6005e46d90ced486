#include "process/node_options.h"

#include <string>

#include "harness.h"

using namespace mercury;  // NOLINT: a test

namespace {

Settings Worker() {
  Settings settings;
  settings.role = "worker";
  return settings;
}

}  // namespace

TEST(defaults_are_those_of_the_rooms) {
  NodeOptions made;
  REQUIRE_OK(MakeNodeOptions(Worker(), &made));
  const MercuryOptions own;
  CHECK_TRUE(made.mercury.policy.kind == own.policy.kind);
  CHECK_EQ(made.mercury.policy.packet_bytes, own.policy.packet_bytes);
  CHECK_EQ(made.mercury.policy.profile_steps, own.policy.profile_steps);
  CHECK_EQ(made.mercury.tcp.congestion, own.tcp.congestion);
  CHECK_EQ(made.mercury.tcp.receive_buffer_bytes, own.tcp.receive_buffer_bytes);
  CHECK_EQ(made.mercury.stall.warn_us, own.stall.warn_us);
  CHECK_EQ(made.mercury.stall.end_us, 600000000);
  CHECK_EQ(made.classic.stall.end_us, 600000000);
  CHECK_EQ(made.mercury.handshake_timeout_us, own.handshake_timeout_us);
  CHECK_EQ(made.classic.split_bytes, ClassicOptions().split_bytes);
  CHECK_EQ(made.classic.message_bytes_max, ClassicOptions().message_bytes_max);
  const MembershipTimes times;
  CHECK_EQ(made.van.times.heartbeat_interval_ms, times.heartbeat_interval_ms);
  CHECK_EQ(made.van.times.heartbeat_timeout_ms, times.heartbeat_timeout_ms);
  CHECK_EQ(made.van.times.start_warn_ms, times.start_warn_ms);
  CHECK_EQ(made.van.times.start_timeout_ms, times.start_timeout_ms);
  CHECK_EQ(made.trace.to_step, TraceOptions().to_step);
}

TEST(a_node_speaks_often_enough_for_those_who_wait) {
  for (const int64_t timeout_ms : {100, 1000, 10000, 3600000}) {
    Settings settings = Worker();
    settings.heartbeat_timeout_ms = timeout_ms;
    NodeOptions made;
    REQUIRE_OK(MakeNodeOptions(settings, &made));
    CHECK_TRUE(made.van.times.heartbeat_interval_ms >= 10);
    CHECK_TRUE(made.van.times.heartbeat_interval_ms <= 1000);
    CHECK_TRUE(10 * made.van.times.heartbeat_interval_ms <= timeout_ms);
  }
}

TEST(packets_are_smaller_among_many_workers) {
  Settings settings = Worker();
  NodeOptions made;
  settings.num_worker = 3;
  REQUIRE_OK(MakeNodeOptions(settings, &made));
  CHECK_EQ(made.mercury.policy.packet_bytes, 32768U);
  CHECK_TRUE(made.mercury.policy.adapt_packets);
  settings.num_server = 8;
  REQUIRE_OK(MakeNodeOptions(settings, &made));
  CHECK_EQ(made.mercury.policy.packet_bytes, 16384U);
  CHECK_EQ(made.mercury.policy.credit.bytes_min, 2 * CreditLimits().bytes_min);
  settings.packet_bytes = 1 << 20;
  NodeOptions fixed;
  REQUIRE_OK(MakeNodeOptions(settings, &fixed));
  CHECK_EQ(fixed.mercury.policy.packet_bytes, 1U << 20);
  CHECK_FALSE(fixed.mercury.policy.adapt_packets);
  settings.lanes = 2;
  REQUIRE_OK(MakeNodeOptions(settings, &fixed));
  CHECK_TRUE(fixed.mercury.policy.credit.bytes_min >= 2U << 20);
}

TEST(prophet_queues_on_the_classic_path_only_where_it_is_the_path) {
  Settings settings = Worker();
  settings.policy = "prophet";
  for (const char* van : {"zmq", "mercury"}) {
    settings.ps_van_type = van;
    NodeOptions made;
    REQUIRE_OK(MakeNodeOptions(settings, &made));
    CHECK_EQ(made.packets, std::string(van) == "mercury");
    CHECK_EQ(made.classic.prophet, !made.packets);
    CHECK_EQ(made.trace.mercury, made.packets);
  }
}

TEST(both_paths_have_the_same_shares) {
  Settings settings = Worker();
  settings.num_server = 3;
  settings.server_shares = "2,2,1";
  NodeOptions made;
  REQUIRE_OK(MakeNodeOptions(settings, &made));
  CHECK_EQ(made.mercury.shares.turns(), 5);
  CHECK_EQ(made.classic.shares.turns(), 5);
  settings.num_server = 2;
  CHECK_STATUS(Code::kInvalidArgument, MakeNodeOptions(settings, &made));
}

TEST(what_is_wrong_is_named) {
  NodeOptions made;
  Settings settings = Worker();
  settings.role = "boss";
  Status status = MakeNodeOptions(settings, &made);
  CHECK_STATUS(Code::kInvalidArgument, status);
  CHECK_EQ(status.text(), "DMLC_ROLE is 'boss'; allowed: worker, server, scheduler");
  settings = Worker();
  settings.policy = "p4";
  status = MakeNodeOptions(settings, &made);
  CHECK_STATUS(Code::kInvalidArgument, status);
  CHECK_EQ(status.text(), "MERCURY_POLICY is 'p4'; allowed: " + PolicyNames());
}
