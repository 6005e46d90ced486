// The part of the nodes that hold the model: the server and its replica.
//
// It carries out what the daemon (live/model_daemon.h) decides: updates and groups are appended to
// the model; the model is sent to workers that ask for it, and as a whole to the replica. A worker
// may have to wait for the version that it asks for, or for others that are served first; and for a
// small part of the time that a model takes, so that those who ask at about the same time get it
// together; the first ones longer, since then everybody is about to ask, and a few models of their
// own on a slow link would keep all others waiting. Where models go down chains, workers of one
// host do, too: who asks waits for one beside it whose update is under way. (Not for one that did
// not ask for the model soon after its last update: it may push on and on.) So a host's links carry
// one model for all of them and, since they have computed by the same time, one sum of their next
// updates.
//
// The sum of the last all-reduce is kept until the next one is complete. With Nesterov's momentum,
// workers get the model where its last step, taken once more, would lead. Without first values, the
// part waits for worker 0's.
//
// A replica stands on the way to the server it follows: of what comes for that, it keeps a copy as
// if it were for itself, and passes each packet on.
//
// Of several servers, each has a stripe of the model (stripes.h). The first one leads: it alone is
// told what to expect, and asked for models. It applies what has arrived at all of them, and tells
// the others so, who follow as a replica does; and when a model goes out, they send their stripes
// of the same version. In the end it collects them. The server's script may have calls of its own
// (server_calls.h): one that applies what a version's updates sum up to, and one that says what
// workers get.
//
// Thread-safety: none; the lane owns it. Invariants: up to rounding, and without a script's calls,
// the model is what appending the updates of `commits` one by one gives; no model between two
// versions is ever sent.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fabric/live/joint_arrivals.h"
#include "fabric/live/model_daemon.h"
#include "fabric/net/assembly.h"
#include "fabric/net/model_sender.h"
#include "fabric/net/part.h"
#include "fabric/net/peers.h"
#include "fabric/net/server_calls.h"
#include "fabric/net/spare_vectors.h"

namespace mercury::fabric {

constexpr size_t kCommitsKept = 4096;  // the last ones, for whoever asks
// Before any of the first version is sent, everybody is waited for, at most so long: measured,
// thirty processes on two cores begin within 0.1 s.
constexpr double kFirstGathering_s = 0.25;

struct ModelOptions {
  Role role = Role::kServer;
  int64_t delay_bound = 0;
  Rule rule;
  bool replica = false;  // there is one that follows, or more
  size_t packet_bytes = 0;
  size_t elements = 0;  // of the model
  int workers = 0;
  std::vector<std::vector<int>> beside =
      {};  // each worker: the others of its host; empty: not known
  double first_gathering_s = kFirstGathering_s;
  ServerCalls calls = {};  // without momentum
  size_t servers = 1;
  size_t server = 0;  // of them; those that follow have a replica's role

  bool leads() const { return role == Role::kServer && servers > 1; }
  bool follows() const { return server != 0; }
  // What this one has of the model.
  Stripe stripe() const { return {server, leads() || follows() ? servers : size_t{1}, elements}; }
};

// An update that was applied: it made `version`.
struct Committed {
  Placed update;
  int64_t version = 0;
};

class ModelPart : public Part {
 public:
  // `model`: the first values, all of them; empty: worker 0 will give them.
  ModelPart(const ModelOptions& options, Vector model, Outbox* outbox, SpareVectors spares = {});

  Status Hear(int peer, const Letter& letter, const Haul& haul, double now_s) override;
  Landing Land(int peer, const Letter& letter) override;
  void Coming(int peer, const Letter& letter, const std::shared_ptr<const Inflow>& inflow) override;
  void Gone(int peer, double now_s) override;
  void Turn(double now_s) override;
  bool Next(int peer, double now_s, OutPacket* out) override;
  double WakeAt(int peer, double now_s) const override;
  std::string Figures() const override;

  bool has_model() const { return has_model_; }
  const Vector& model() const { return *model_; }
  // As workers get it. To be let go of on the lane's thread.
  std::shared_ptr<const Vector> Shown();
  int64_t version() const { return daemon_.version(); }
  bool is_server() const { return daemon_.role() == Role::kServer && !deposed_; }
  bool deposed() const { return deposed_; }
  bool leads() const { return options_.leads(); }
  bool follows() const { return options_.follows(); }
  // The others' stripes are asked for; the model is `collected` once all are there.
  void Collect();
  const std::shared_ptr<const Vector>& collected() const { return collected_; }
  // Of one of the script's calls; the model is nothing from then on, and nobody hears of it.
  const Status& failure() const { return failure_; }
  const std::deque<Committed>& commits() const { return commits_; }
  // How many updates were applied so many versions late.
  const std::map<int64_t, int64_t>& delays() const { return delays_; }

 private:
  Status TakeGroup(const UpdatesLetter& its, const Cargo& cargo, ModelSteps* steps);
  Status TakeModel(int peer, const ModelLetter& its, const Cargo& cargo, ModelSteps* steps);
  Status TakeStripe(const ModelLetter& its, ModelSteps* steps);
  Status SendStripe(const StripeLetter& its);
  bool Assembles(int peer, const Letter& letter) const;
  void RelayNoMore(const std::vector<int64_t>& places);
  void Relay(int peer, const Letter& letter, const std::shared_ptr<const Inflow>& inflow);
  void ArriveWhole(const std::optional<Arrival>& arrival, ModelSteps* steps);
  void TellFollowers(const Letter& letter);
  void Depose();
  // Nothing more is done, or said, of what it has.
  bool stopped() const { return deposed_ || !failure_.ok(); }
  bool has_step() const { return options_.rule.momentum > 0; }
  bool Granted(const Asker& asker) const;
  bool WaitsBeside(int worker) const;
  double Gathers_s(size_t ready) const;
  void Answer(double now_s);
  void Serve(const Tree& tree, double now_s);
  void Carry(const ModelSteps& steps);
  // `whole`: with it, all of its version's updates are there.
  void Apply(const ModelStep& step, bool whole);
  void CallUpdate(const ModelStep& step, const Cargo& cargo, bool whole);
  void Reduce(const ModelStep& step, const Cargo& cargo);
  void Count(const ModelStep& step);
  double StepNorm() const;

  const ModelOptions options_;
  Outbox* const outbox_;
  ModelDaemon daemon_;
  bool has_model_;
  bool deposed_ = false;             // a replica has taken over
  int server_peer_ = kServerPeer;    // whom a replica follows: who gave it the model last
  int replica_peer_ = kReplicaPeer;  // that follows a server
  const SpareVectors spares_;
  // While others hold them, they stay as they are, and what is appended goes to copies.
  std::shared_ptr<Vector> model_, step_;  // the last change; without momentum there is none
  std::shared_ptr<Vector> shown_;         // what workers get of `shown_version_`, if not the model
  int64_t shown_version_ = -1;
  std::shared_ptr<Vector> change_;  // of the next version, for the script's call
  int64_t changes_ = 0;             // updates of which it is the sum
  Status failure_;
  Askers askers_;
  const Askers::May granted_ = [this](const Asker& asker) { return Granted(asker); };
  bool tree_asked_ = false;
  bool by_packets_ = false;          // models go down chains, as far as is known
  double gathers_until_s_ = kNever;  // askers, before one of them is answered
  bool gathered_ = false;            // that time has passed
  bool first_ = true;                // nobody has been answered
  double leaves_until_s_ = kNever;   // what was served last, or it is not waited for any longer
  std::vector<int64_t> progress_;    // so many updates of each worker are in the model
  std::set<int> gone_;               // workers
  // Of workers whose updates were applied since they last asked; kNever: that was a while ago.
  std::map<int, double> asks_by_s_;
  double now_s_ = 0;
  std::shared_ptr<Vector> reduced_;
  std::set<UpdateId> reduced_of_;  // whose sum it is
  int64_t memories_ = 0;
  std::map<int64_t, Cargo> memory_;  // by the number that the daemon was told
  JointArrivals arrivals_;           // of one that leads
  Assembly assembly_;
  std::shared_ptr<const Vector> collected_;
  ModelSender sender_;
  std::deque<Committed> commits_;
  std::map<int64_t, int64_t> delays_;
};

}  // namespace mercury::fabric
