// A worker in an MLfabric job: its updates and its daemon's groups as bytes.
//
// It carries out what the daemon (live/worker_daemon.h) decides: updates are kept until they are
// forgotten, members of groups are added as they arrive, and hops are cut into packets at the pace
// that the daemon allows. What comes along a chain, and models, are passed on while they come. A
// hop to this worker itself uses no link. A hop to a node that is gone is over at once, and goes to
// nobody. A hop to several servers has a leg to each, with its stripe of what goes there.
//
// If a replica may take over, all-reduces that not all workers have the sum of are summed again,
// perhaps in another order. So a sum is used only once this worker's part is forgotten: then all
// have it.
//
// Thread-safety: none; the lane owns it. Invariants: `settled` is called once for each update, and
// once more if it is lost with its server; `got` is called once for each Get.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "fabric/live/worker_daemon.h"
#include "fabric/net/assembly.h"
#include "fabric/net/legs.h"
#include "fabric/net/model_sender.h"
#include "fabric/net/part.h"
#include "fabric/net/passing_on.h"
#include "fabric/net/peers.h"
#include "fabric/net/spare_vectors.h"

namespace mercury::fabric {

struct WorkerEvents {
  std::function<void(UpdateId update, Fate fate)> settled;
  std::function<void(const Edition& edition, const std::shared_ptr<const Vector>& what)> got;
};

class WorkerPart : public Part {
 public:
  WorkerPart(int rank, double momentum, size_t packet_bytes, Outbox* outbox, WorkerEvents events,
             SpareVectors spares = {}, const Codec* codec = nullptr, size_t elements = 0,
             size_t servers = 1, int replicas = 0)
      : rank_(rank),
        self_(PeerOf(rank)),
        momentum_(momentum),
        packet_bytes_(packet_bytes),
        outbox_(outbox),
        events_(std::move(events)),
        spares_(std::move(spares)),
        codec_(codec),
        elements_(elements),
        replicas_(replicas),
        passing_(momentum, spares_),
        sender_(packet_bytes, outbox),
        assembly_(elements, servers, spares_) {
    for (size_t i = 0; i < servers; ++i)
      servers_.push_back(PeerOf(ServerNode(static_cast<int>(i))));
  }

  // Numbers rise from 1.
  void Push(Request request, std::shared_ptr<const Vector> update);
  // The model or a sum, from whoever is the server; one at a time.
  void Get(Wish wish);
  // Before the job begins, worker 0's: the model's first values, to who has the model.
  void Give(int peer, const std::shared_ptr<const Vector>& model);

  Status Hear(int peer, const Letter& letter, const Haul& haul, double now_s) override;
  Landing Land(int peer, const Letter& letter) override;
  void Coming(int peer, const Letter& letter, const std::shared_ptr<const Inflow>& inflow) override;
  void Gone(int peer, double /*now_s*/) override { sender_.Gone(peer); }
  void Turn(double now_s) override;
  bool Next(int peer, double now_s, OutPacket* out) override;
  double WakeAt(int peer, double now_s) const override;

 private:
  struct Gathered {
    std::shared_ptr<Vector> sum, step;  // each may be its first member's, or both
    int64_t updates = 0;
  };
  struct HeldAnswer {
    int64_t reduce = 0;  // as the wish says
    int64_t version = 0;
    std::shared_ptr<const Vector> what;
  };
  Legs LegsOf(int64_t number, const Hop& hop) const;
  // The number of the server that `peer` is, if models come from several.
  std::optional<size_t> StripedServer(int peer) const;
  bool WasServer(int peer) const;  // before a replica took over
  bool Vanishes(const Legs& legs) const;
  bool IsThere(int64_t number, const Hop& hop) const;
  std::optional<int64_t> NextOf(int64_t number, const Hop& hop, int peer) const;
  Cargo CargoOf(int64_t number, const Hop& hop) const;
  Status Obey(const Order& order, double now_s);
  Status Follow(int server);
  Status Take(int peer, const ModelLetter& its, const Cargo& cargo);
  Status Take(const UpdatesLetter& its, const Cargo& cargo, double now_s);
  void Grant();
  void Deliver(int64_t place, Goal goal, const Cargo& cargo, double now_s);
  void Carry(const Steps& steps);
  void Add(int64_t hop, const Cargo& member);
  void Advance();
  void Abort(int64_t hop);
  void Announce(int64_t number, int peer, bool two);
  void Break(int64_t number);
  void Keep(const Parcel& parcel, const Cargo& cargo, double now_s);
  void Over(int64_t number);

  const int rank_;
  const int self_;  // as a peer
  const double momentum_;
  const size_t packet_bytes_;
  Outbox* const outbox_;
  const WorkerEvents events_;
  const SpareVectors spares_;
  const Codec* const codec_;  // of updates and groups; null: they travel as they are
  const size_t elements_;     // of the model, where several servers have it
  const int replicas_;
  WorkerDaemon daemon_;
  PassingOn passing_;
  ModelSender sender_;
  Assembly assembly_;
  std::vector<int> servers_;          // as peers; the first is asked for models
  int64_t reign_ = 0;                 // so many replicas have become the server
  std::optional<Wish> wish_;          // that is not granted yet
  std::optional<HeldAnswer> answer_;  // that grants it, once it may be used
  int64_t wishes_ = 0;
  int64_t memories_ = 0;
  std::map<UpdateId, std::shared_ptr<const Vector>> updates_;
  std::map<int64_t, Cargo> memory_;     // of members, by the number that the daemon was told
  std::map<int64_t, Gathered> groups_;  // by hop
  std::map<int64_t, Legs> sending_;     // by hop, once it has begun
};

}  // namespace mercury::fabric
