// What MLfabric's nodes say to each other. Orders, news and requests that are accepted are given to
// those whom they are for.
#include <string>
#include <string_view>

#include "fabric/live/letters.h"
#include "fabric/live/worker_daemon.h"
#include "fuzz.h"

using namespace mercury;
using namespace mercury::fabric;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  Letter letter;
  const Status status = Decode(bytes, &letter);
  FUZZ_REQUIRE(status.ok() == status.text().empty());
  if (!status.ok()) {
    FUZZ_REQUIRE(status.code() == Code::kCorrupt);
    return 0;
  }
  FUZZ_REQUIRE(Encode(letter) == bytes);
  FleetHosts hosts;
  hosts.workers = {1, 2};
  hosts.replica = 3;
  hosts.reserve = {{ReplicaNode(1), 4}};
  Collector collector(hosts, CollectorOptions());
  ModelDaemon server(Role::kServer, 3, true);
  ModelDaemon replica(Role::kReplica, 3, false);
  ModelSteps steps;
  if (const auto* request = std::get_if<Request>(&letter)) {
    (void)collector.Push(*request);
    collector.Got(request->id, request->reign);
  } else if (const auto* news = std::get_if<News>(&letter)) {
    collector.Committed(news->places, news->version);
    collector.Voided(news->places);
    collector.Held(news->places);
    collector.ReplicaHas(news->places);
    collector.ReplicaApplied(news->places, news->history_norm);
    collector.ReplicaCaughtUp(news->place, news->history_norm);
    collector.Lost(kServerNode);
    collector.TookOver(news->version);
  } else if (const auto* order = std::get_if<Order>(&letter)) {
    WorkerDaemon worker;
    worker.Keep(order->hop.update, 1);
    worker.Obey(*order, 0);
    worker.Due(order->hop.end_s);
    for (ModelDaemon* daemon : {&server, &replica}) {
      FUZZ_REQUIRE(daemon->Obey(*order, &steps).text().size() < 1000);
      daemon->Arrive(order->places, {}, 1);
    }
  } else if (const auto* confirm = std::get_if<ConfirmLetter>(&letter)) {
    FUZZ_REQUIRE(replica.Confirmed(confirm->applied, &steps).text().size() < 1000);
  }
  return 0;
}
