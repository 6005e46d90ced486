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
  Collector collector(hosts, CollectorOptions());
  (void)collector.Push(letter.request);
  collector.Committed(letter.news.places, letter.news.version);
  collector.Voided(letter.news.places);
  collector.Got(letter.request.id);
  collector.Held(letter.news.places);
  collector.ReplicaHas(letter.news.places);
  collector.ReplicaApplied(letter.news.places, letter.history_norm);
  WorkerDaemon worker;
  worker.Keep(letter.order.hop.update, 1);
  worker.Obey(letter.order, 0);
  worker.Due(letter.order.hop.end_s);
  ModelDaemon server(Role::kServer, 3, true);
  ModelDaemon replica(Role::kReplica, 3, false);
  ModelSteps steps;
  for (ModelDaemon* daemon : {&server, &replica}) {
    FUZZ_REQUIRE(daemon->Obey(letter.order, &steps).text().size() < 1000);
    daemon->Arrive(letter.order.places, {}, 1);
    FUZZ_REQUIRE(daemon->Confirmed(letter.applied, &steps).text().size() < 1000);
  }
  return 0;
}
