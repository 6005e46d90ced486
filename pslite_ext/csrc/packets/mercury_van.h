// The Mercury van: tensors as packets over links of their own, everything else over the ZMQ van
// that it is derived from.
//
// When the control plane has everybody together, workers open their data links to all servers; the
// job is ready for a worker when they are up. What breaks a data link is reported to the scheduler,
// which tells everybody.
//
// Thread-safety: as ZmqVan's. Ownership: the worker or server half. Invariant: the observer hears
// OnReady after the data links are up, and nothing after OnFailed or OnEnded.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "control/zmq_van.h"
#include "packets/mercury_options.h"
#include "packets/mercury_server.h"
#include "packets/mercury_worker.h"
#include "packets/shard_homes.h"

namespace mercury {

class MercuryVan : public ZmqVan, private VanObserver {
 public:
  MercuryVan(const ZmqVanOptions& van, MercuryOptions options, VanObserver* observer);
  // What all nodes have agreed on: of the observer, from its OnAgreed.
  void Configure(const MercuryOptions& options) { options_ = options; }
  ~MercuryVan() override;

  void Start(int customer_id, bool standalone) override;
  void Stop() override;
  // Once ready: a worker's transport, which lives as long as the van; null for a server.
  MercuryWorker* worker() { return worker_.get(); }
  // Once ready: who is on which.
  const Hosts& hosts() const { return options_.hosts; }
  std::string ServerFigures() { return server_ready_ ? server_->Figures() : "{}"; }
  std::string GetType() const override { return "mercury"; }

 private:
  Status OnAgreed(int my_node_id, const SharedSettings& settings) override {
    return observer_->OnAgreed(my_node_id, settings);
  }
  void OnReady(int my_node_id) override;
  void OnBarrier() override { observer_->OnBarrier(); }
  void OnDeparted(int node_id) override;
  void OnLost(int node_id, const Status& why) override;
  void OnAdmission(const Member& newcomer, Admission admission) override;
  void OnAlone(const Status& why) override;
  void OnFailed(const Status& status) override;
  void OnEnded() override { observer_->OnEnded(); }
  const Member* MemberOf(int node) const;
  void StartWorker(int my_node_id);
  void StartServer(int my_node_id);
  void Lost(Role role, int rank, const Status& status);
  void OnServer(const Member& newcomer, Admission admission);
  void Move(const std::vector<int>& shards);
  bool SumsHosts() const;

  MercuryOptions options_;
  const Role role_;
  const std::string host_;
  VanObserver* const observer_;
  PlaneDoor worker_door_;  // until its half knows whether others come
  ShardHomes homes_;       // of the van's thread
  std::unique_ptr<MercuryWorker> worker_;
  std::unique_ptr<MercuryServer> server_;
  std::atomic<bool> server_ready_{false};
};

}  // namespace mercury
