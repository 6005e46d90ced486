#include "packets/packet_trace.h"

#include <vector>

#include "harness.h"

using namespace mercury;
namespace {

constexpr uint64_t kOverhead = 24;

struct Bench {
  explicit Bench(bool on_server, int lanes = 1)
      : ring(64), trace(&ring, on_server, kOverhead, lanes) {}
  std::vector<TraceEvent> Events() {
    std::vector<TraceEvent> events;
    TraceEvent event;
    while (ring.Take(&event)) events.push_back(event);
    return events;
  }
  // Which instants the packet is: 1 the first, 2 the last, 3 both.
  int Send(const Share& share, uint32_t length, bool slot_done, OutPacket* packet) {
    *packet = OutPacket();
    packet->header.length = length;
    trace.Sending(1, 7, share, slot_done, now_us, packet);
    return (packet->trace.first ? 1 : 0) + (packet->trace.last ? 2 : 0);
  }
  int64_t now_us = 0;
  TraceRing ring;
  PacketTrace trace;
};

Share Of(uint64_t bytes) { return Share(Placement(1, bytes, 1, 4096, ServerShares(1)), 0); }

TEST(a_worker_s_first_and_last_packet) {
  Bench bench(false);
  bench.trace.Begin(1, 7, 41, false, false);
  const Share share = Of(2 * 4096);
  REQUIRE_EQ(share.count, 2U);
  OutPacket packet;
  CHECK_EQ(bench.Send(share, 2048, false, &packet), 1);
  CHECK_EQ(packet.trace.event.operation, kTraceFirstPacket);
  CHECK_EQ(packet.trace.event.number, 41);
  CHECK_EQ(packet.trace.event.key, 7U);
  CHECK_EQ(packet.trace.event.node, TraceNode(TraceRole::kServer, 1));
  CHECK_EQ(bench.Send(share, 2048, true, &packet), 0);
  CHECK_EQ(bench.Send(share, 4096, true, &packet), 2);
  CHECK_EQ(packet.trace.event.length, 2 * 4096 + 3 * kOverhead);
  CHECK_EQ(packet.trace.last_operation, kTraceConfirm);
  CHECK_TRUE(bench.Events().empty());  // the link tells when it has sent them
}

TEST(a_worker_s_tensor_is_handed_over_before_its_first_packet) {
  Bench bench(false);
  bench.trace.Begin(1, 7, 41, false, false);
  const Share share = Of(6 * 4096);
  bench.trace.HandedOver(1, 7, 50);
  OutPacket packet;
  CHECK_EQ(bench.Send(share, 4096, true, &packet), 1);
  const auto events = bench.Events();
  REQUIRE_EQ(events.size(), 1U);
  CHECK_EQ(events[0].operation, kTracePush);
  CHECK_EQ(events[0].time_us, 50);
  CHECK_EQ(events[0].length, 0);
  CHECK_EQ(events[0].number, 41);
  CHECK_EQ(events[0].parts, 1);
}

TEST(a_worker_s_first_and_last_sum) {
  Bench bench(false);
  bench.trace.Begin(1, 7, 41, false, false);
  const Share share = Of(2 * 4096);
  bench.trace.Received(1, 7, share, 4096, true, 100);
  bench.trace.Received(1, 7, share, 1000, false, 200);
  bench.trace.Received(1, 7, share, 3096, true, 300);
  const auto events = bench.Events();
  REQUIRE_EQ(events.size(), 2U);
  CHECK_EQ(events[0].operation, kTraceRequest);
  CHECK_EQ(events[0].time_us, 100);
  CHECK_EQ(events[0].length, 0);
  CHECK_EQ(events[0].number, 42);
  CHECK_EQ(events[1].operation, kTraceAnswer);
  CHECK_EQ(events[1].time_us, 300);
  CHECK_EQ(events[1].length, 2 * 4096 + 3 * kOverhead);
}

TEST(a_server_sees_the_other_side_of_it) {
  Bench bench(true);
  const Share share = Of(0);  // nothing but a header
  bench.trace.Received(1, 7, share, 0, true, 100);
  auto events = bench.Events();
  REQUIRE_EQ(events.size(), 2U);
  CHECK_EQ(events[0].operation, kTracePush);
  CHECK_EQ(events[0].number, 0);  // its worker does not say: it traces nothing
  CHECK_EQ(events[1].operation, kTraceConfirm);
  CHECK_EQ(events[1].length, kOverhead);
  CHECK_EQ(events[1].node, TraceNode(TraceRole::kWorker, 1));
  OutPacket packet;
  bench.trace.Begin(1, 7, 3, false, false);
  CHECK_EQ(bench.Send(share, 0, true, &packet), 3);
  CHECK_EQ(packet.trace.event.operation, kTraceRequest);
  CHECK_EQ(packet.trace.last_operation, kTraceAnswer);
  CHECK_EQ(packet.trace.event.number, 4);
}

// Then nothing waits for a link, and no event is earlier than what it follows from.
TEST(with_several_lanes_events_are_told_when_packets_leave) {
  Bench bench(true, 2);
  const Share share = Of(2 * 4096);
  bench.trace.Begin(1, 7, 41, false, false);
  bench.trace.Received(1, 7, share, 8192, true, 500);
  bench.now_us = 300;  // of a turn that began before
  OutPacket packet;
  CHECK_EQ(bench.Send(share, 4096, true, &packet), 0);
  bench.now_us = 600;
  CHECK_EQ(bench.Send(share, 4096, true, &packet), 0);
  const auto events = bench.Events();
  REQUIRE_EQ(events.size(), 3U);
  CHECK_EQ(events[1].operation, kTraceRequest);
  CHECK_EQ(events[1].time_us, 500);
  CHECK_EQ(events[1].length, 0);
  CHECK_EQ(events[2].operation, kTraceAnswer);
  CHECK_EQ(events[2].time_us, 600);
  CHECK_EQ(events[2].length, 2 * 4096 + 2 * kOverhead);
}

// Each lane says the number before its own first packet.
TEST(a_number_that_is_said_again_begins_nothing) {
  Bench bench(true);
  const Share share = Of(2 * 4096);
  bench.trace.Begin(1, 7, 41, false, false);
  bench.trace.Received(1, 7, share, 4096, true, 100);
  bench.trace.Begin(1, 7, 41, false, false);
  bench.trace.Received(1, 7, share, 4096, true, 200);
  const auto events = bench.Events();
  REQUIRE_EQ(events.size(), 2U);
  CHECK_EQ(events[0].number, 41);
  CHECK_EQ(events[1].number, 41);
  CHECK_EQ(events[1].length, 2 * 4096 + 2 * kOverhead);
}

TEST(without_a_ring_nothing_happens) {
  PacketTrace trace(nullptr, false, kOverhead);
  OutPacket packet;
  trace.Begin(1, 7, 1, false, false);
  trace.HandedOver(1, 7, 1);
  trace.Sending(1, 7, Of(100), true, 1, &packet);
  trace.Received(1, 7, Of(100), 100, true, 1);
  CHECK_FALSE(packet.trace.first || packet.trace.last);
}

}  // namespace
