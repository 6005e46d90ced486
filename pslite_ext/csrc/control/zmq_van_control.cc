// The control half of the van: what a control message means, and how membership's decisions are
// carried out. Runs on the I/O thread; see zmq_van.h.
#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "control/control_trace.h"
#include "control/member_node.h"
#include "control/zmq_van.h"
#include "ps/internal/customer.h"
#include "ps/internal/postoffice.h"
#include "trace/trace_text.h"

namespace mercury {
namespace {

constexpr size_t kRegistrationsKept = 4096;

}  // namespace

void ZmqVan::Leave(const Status& why) {
  Outbound item;
  item.run = [this, why] {
    if (over_) return;
    if (my_id_ == kNoNode || !why.ok()) {
      const Status known = why.ok() ? Status::PeerLost("it left") : why;
      // Of a node, the scheduler says which one it was; nobody says so of the scheduler.
      return FailJob(is_scheduler_ ? known.By({Blame::kEnded, kSchedulerId}) : known, true);
    }
    SendTerminate(kSchedulerId, Status::Ok());
    if (node_membership_) node_membership_->End();
    over_ = true;
  };
  Post(std::move(item));
}

void ZmqVan::EnterBarrier() {
  Outbound item;
  item.run = [this] {
    at_barrier_ = true;
    SayBarrier();
  };
  Post(std::move(item));
}

void ZmqVan::Fail(const std::string& what) {
  Outbound item;
  item.run = [this, what] { FailJob(Status::Internal(what), true); };
  Post(std::move(item));
}

bool ZmqVan::asynchronous() const {
  return std::any_of(members_.begin(), members_.end(),
                     [](const Member& m) { return m.asynchronous; });
}

std::string ZmqVan::Peers() const {
  std::string lines;
  for (const Member& m : members_) {
    if (m.id == my_id_) continue;
    lines += "peer " + NodeName(m.id) + ": " + m.host + ":" + std::to_string(m.port) + "\n";
  }
  return lines;
}

// One of the two is 0.
void ZmqVan::Count(int peer, uint64_t sent_bytes, uint64_t received_bytes) {
  if (!Watched(peer)) return;
  const std::lock_guard<std::mutex> lock(traffic_mutex_);
  MessageFigures& figures = traffic_[peer];
  if (figures.peer.empty()) figures.peer = NodeName(peer);
  figures.bytes_sent += sent_bytes;
  figures.bytes_received += received_bytes;
  ++(sent_bytes != 0 ? figures.messages_sent : figures.messages_received);
}

std::vector<MessageFigures> ZmqVan::Traffic() const {
  const std::lock_guard<std::mutex> lock(traffic_mutex_);
  std::vector<MessageFigures> peers;
  peers.reserve(traffic_.size());
  for (const auto& [node, figures] : traffic_) peers.push_back(figures);
  return peers;
}

void ZmqVan::TraceRegistered(const Member& member) {
  TraceLog* log = TraceLog::Active();
  const auto it = registered_.find(member.life);
  if (log == nullptr || it == registered_.end()) return;
  const auto [when, bytes] = it->second;
  TraceControl(log, ps::Control::ADD_NODE, member.id, bytes, false, when);
}

// Asks to be taken into the job. Its messages are counted anew: whoever hears them has either heard
// none, or knows this node already. `key` is how long it has waited.
void ZmqVan::SayHello() {
  sequence_to_[kSchedulerId] = 0;
  ps::Meta meta;
  meta.control.cmd = ps::Control::ADD_NODE;
  meta.control.node.push_back(my_node_);
  meta.key = static_cast<uint64_t>(node_membership_->waited_ms(NowMs()));
  SetBody(&meta, ToText(Told(options_.settings)));
  (void)TrySend(Control(kSchedulerId, meta));  // it is said again
}

// ok: the work is done. Otherwise the job has failed.
void ZmqVan::SendTerminate(int receiver, const Status& status) {
  ps::Meta meta;
  meta.control.cmd = ps::Control::TERMINATE;
  SetBody(&meta, Encode(status, kTextBytesMax));
  if (scheduler_membership_ && !status.ok()) {
    for (const Member& m : scheduler_membership_->members()) {
      if (scheduler_membership_->roster().IsLost(m.id)) meta.control.node.push_back(ToNode(m));
    }
  }
  SendControl(receiver, meta);
}

void ZmqVan::Reject(const Member& member, const Status& status) {
  Log(LogLevel::kWarning, "refused " + std::string(Name(member.role)) + " at " + member.host + ":" +
                              std::to_string(member.port) + ": " + status.text());
  ZmqSocket dealer = NewDealer(member.host, doorman_.to_node());
  if (!dealer.Connect(TcpEndpoint(member.host, member.port)).ok()) return;
  const int no_node = kNoNode;
  std::swap(dealers_[no_node], dealer);
  sequence_to_[no_node] = 0;
  SendTerminate(no_node, status);
  rejected_.push_back(std::move(dealers_[no_node]));
  dealers_.erase(no_node);
  if (rejected_.size() > kRefusalsKept) rejected_.erase(rejected_.begin());
}

void ZmqVan::Dispatch(const ps::Message& message, int64_t now_ms) {
  if (over_) return OnLate(message);
  if (scheduler_membership_ && message.meta.sender != ps::Meta::kEmpty) {
    scheduler_membership_->Heard(message.meta.sender, now_ms);
  }
  if (!message.meta.control.empty()) return OnControl(message, now_ms);
  if (!ready_ && !is_scheduler_) return early_.push_back(message);
  const int app = message.meta.app_id;
  const int customer_id = options_.role == Role::kWorker ? message.meta.customer_id : app;
  ps::Customer* customer = ps::Postoffice::Get()->GetCustomer(app, customer_id, 0);
  if (customer == nullptr) {
    const std::string why = "it is for application " + std::to_string(app) + ", which is not here";
    if (message.meta.sender == ps::Meta::kEmpty) return Refuse(why);
    return LoseLink(message.meta.sender, OfNoUse(why));
  }
  customer->Accept(message);
}

void ZmqVan::OnControl(const ps::Message& message, int64_t now_ms) {
  const int sender = message.meta.sender;
  const auto& control = message.meta.control;
  const bool may_join =
      control.cmd == ps::Control::ADD_NODE || control.cmd == ps::Control::TERMINATE;
  if (sender == ps::Meta::kEmpty && !may_join) return Refuse("its sender is not in the job yet");
  switch (control.cmd) {
    case ps::Control::ADD_NODE:
      if (message.meta.option >= kFirstAdmission) return OnAdmission(message);
      if (!is_scheduler_ && message.meta.option == kIsBack) return OnReturn(message, now_ms);
      if (!is_scheduler_) return OnAssigned(message, now_ms);
      if (control.node.size() == 1 && sender == ps::Meta::kEmpty) OnRegistration(message, now_ms);
      return;
    case ps::Control::HEARTBEAT:
      return OnHeartbeat(message, now_ms);
    case ps::Control::BARRIER:
      if (is_scheduler_) return CarryOut(scheduler_membership_->Barrier(sender, message.meta.key));
      if (sender != kSchedulerId) return;
      at_barrier_ = false;
      passed_ = message.meta.key;
      return observer_->OnBarrier();
    case ps::Control::TERMINATE:
      return OnTerminate(message, now_ms);
    default:
      return Refuse("its command " + std::to_string(control.cmd) + " is not used here");
  }
}

void ZmqVan::OnRegistration(const ps::Message& message, int64_t now_ms) {
  const auto& control = message.meta.control;
  Member member = ToMember(control.node[0], control.msg_sig, -1);
  member.waited_ms = static_cast<int64_t>(message.meta.key);
  const Status status = FromText(message.meta.body, &member.told);
  if (!status.ok()) return Refuse(status.text());
  if (TraceLog::Active() != nullptr && registered_.size() < kRegistrationsKept) {
    registered_.emplace(control.msg_sig,
                        std::make_pair(NowUs(), int64_t{GetPackMetaLen(message.meta)}));
  }
  CarryOut(scheduler_membership_->Register(member, now_ms));
  if (!over_) ConnectGuests();
}

void ZmqVan::OnAssigned(const ps::Message& message, int64_t now_ms) {
  if (my_id_ != kNoNode || message.meta.sender != kSchedulerId) return;
  for (const ps::Node& node : message.meta.control.node) {
    if (node.hostname != my_node_.hostname || node.port != my_node_.port) continue;
    if (node.id == message.meta.recver) my_id_ = node.id;
  }
  if (my_id_ == kNoNode) return Refuse("the scheduler's table does not name this node");
  newcomer_ = message.meta.option == kNewcomersTable;
  passed_ = message.meta.key;
  Begins(std::max<uint64_t>(message.meta.recv_key, 1));
  began_with_ = generation_;
  doorman_.Stay();
  SharedSettings settings;
  Status agreed = FromText(message.meta.body, &settings);
  ps::Node me = my_node_;
  me.id = my_id_;
  SetNode(me);
  node_membership_->Assigned(now_ms);
  for (const ps::Node& node : message.meta.control.node) {
    members_.push_back(ToMember(node, 0, node.id));
    if (node.id != my_id_) (void)node_membership_->IsNews(members_.back(), Admission::kIn);
    const bool talks = node.role != me.role && node.role != ps::Node::SCHEDULER && !newcomer_;
    if (talks) Connect(node);
  }
  SetLogName(NodeName(my_id_));
  if (agreed.ok()) agreed = observer_->OnAgreed(my_id_, settings);
  if (!agreed.ok()) return FailJob(agreed, true);
  ready_ = true;
  if (TraceLog::Active() != nullptr) SendHeartbeat(kSchedulerId);  // asks for the time
  observer_->OnReady(my_id_);
  for (const ps::Message& early : std::exchange(early_, {})) Dispatch(early, now_ms);
}

void ZmqVan::OnTerminate(const ps::Message& message, int64_t now_ms) {
  Status status;
  if (!message.meta.body.empty()) Decode(message.meta.body, &status);
  if (is_scheduler_ && message.meta.sender == ps::Meta::kEmpty) {
    return CarryOut(
        scheduler_membership_->Withdraw(message.meta.control.msg_sig, status.text(), now_ms));
  }
  if (is_scheduler_ && message.meta.option == kReport) return OnReport(message, status, now_ms);
  if (is_scheduler_ && message.meta.option == kHasFinished) return OnFinished(message, now_ms);
  if (is_scheduler_) {
    return CarryOut(scheduler_membership_->Leave(message.meta.sender, status, now_ms));
  }
  if (message.meta.sender != kSchedulerId) return Refuse("only the scheduler ends the job");
  if (message.meta.option == kGoesOn && message.meta.control.node.size() == 1) {
    if (!MayBe(message.meta.control.node[0].id)) return Refuse("it speaks of no node of the job");
    return OnToldLoss(message.meta.control.node[0].id, status, message.meta.recv_key);
  }
  for (const ps::Node& node : message.meta.control.node) {
    if (status.ok()) {
      Forget(node.id);
      departed_.insert(node.id);
      reported_.erase(node.id);
      observer_->OnDeparted(node.id);
    } else {
      CountLost(node.id);
    }
  }
  if (!status.ok()) return FailJob(status, false);
  if (!message.meta.control.node.empty()) return;
  over_ = true;
  node_membership_->End();
  observer_->OnEnded();
}

void ZmqVan::Broadcast(const std::function<void(int node)>& send) {
  for (const Member& m : scheduler_membership_->members()) {
    if (m.id != -1 && !scheduler_membership_->roster().HasLeft(m.id) && lost_.count(m.id) == 0) {
      send(m.id);
    }
  }
}

void ZmqVan::FailJob(const Status& status, bool tell_others) {
  if (over_) return;
  over_ = true;
  Unwrite();
  try {
    TellOfFailure(status, tell_others);
  } catch (const std::exception& error) {  // whatever it is, this process must hear of it
    Log(LogLevel::kWarning, std::string("cannot tell others of a failure: ") + error.what());
  }
  LookForLate(status);
  observer_->OnFailed(status);
}

void ZmqVan::TellOfFailure(const Status& status, bool tell_others) {
  if (!scheduler_membership_) {
    node_membership_->End();
    if (tell_others) SendTerminate(kSchedulerId, status);
    return;
  }
  if (!tell_others) return;
  ConnectGuests();
  for (const Member& m : scheduler_membership_->members()) {
    if (m.id == kNoNode) SendTerminate(m.guest, status);
  }
  Broadcast([&](int node) { SendTerminate(node, status); });
  for (const Action& action : scheduler_membership_->Fail(status)) {
    if (action.kind == Action::kReject) Reject(action.member, Status::PeerLost(action.text));
  }
}

void ZmqVan::CarryOut(const Actions& actions) {
  if (std::any_of(actions.begin(), actions.end(), [](const Action& a) { return a.IsKept(); })) {
    WriteDown();
  }
  for (const Action& action : actions) {
    ps::Meta meta;
    switch (action.kind) {
      case Action::kAssign:
        meta.control.cmd = ps::Control::ADD_NODE;
        meta.control.node.push_back(my_node_);
        for (const Member& m : scheduler_membership_->members()) {
          const ps::Node node = ToNode(m);
          life_of_[m.id] = m.life;
          TakeIn(m);
          meta.control.node.push_back(node);
          TraceRegistered(m);
        }
        SetBody(&meta, ToText(scheduler_membership_->settings()));
        Broadcast([&](int node) { SendControl(node, meta); });
        ready_ = true;
        members_ = scheduler_membership_->members();
        if (const Status status =
                observer_->OnAgreed(kSchedulerId, scheduler_membership_->settings());
            !status.ok()) {
          return FailJob(status, true);
        }
        WriteDown();
        observer_->OnReady(kSchedulerId);
        break;
      case Action::kAdmit:
        Admit(action.member);
        break;
      case Action::kAdmission:
        Tell(action.node, action.admission, action.generation);
        break;
      case Action::kReject:
        Reject(action.member, Status::InvalidArgument("the scheduler at " + scheduler_.hostname +
                                                      ":" + std::to_string(scheduler_.port) +
                                                      " refuses this node: " + action.text));
        break;
      case Action::kDisagree:
        FailJob(action.status, true);
        break;
      case Action::kHeartbeat:
        if (is_scheduler_) {
          Broadcast([&](int node) { SendHeartbeat(node); });
        } else {
          SendHeartbeat(kSchedulerId);
        }
        break;
      case Action::kRelease:
        meta.control.cmd = ps::Control::BARRIER;
        meta.control.barrier_group = ps::kWorkerGroup;
        meta.key = scheduler_membership_->releases();
        Broadcast([&](int node) {
          const bool hears = action.node == -1 || action.node == node;
          if (hears && RoleOf(node) == Role::kWorker) SendControl(node, meta);
        });
        break;
      case Action::kDeparted:
        meta.control.cmd = ps::Control::TERMINATE;
        for (const Member& m : scheduler_membership_->members()) {
          if (m.id == action.node) meta.control.node.push_back(ToNode(m));
        }
        dealers_.erase(action.node);  // what it did not wait for, it does not need
        Broadcast([&](int node) { SendControl(node, meta); });
        break;
      case Action::kLost:
        Broadcast([&](int node) { SendLost(node, action.node, action.status, action.generation); });
        dealers_[action.node].Close(kLingerMs);
        dealers_.erase(action.node);
        CountLost(action.node);
        observer_->OnLost(action.node, action.status);
        break;
      case Action::kAlone:
        if (!action.status.ok()) at_barrier_ = false;  // nobody waits there any longer
        observer_->OnAlone(action.status);
        EndIfAlone();
        break;
      case Action::kWarn:
        Log(LogLevel::kWarning, action.text);
        break;
      case Action::kFail:
      case Action::kNobody:
        FailJob(action.status, action.kind == Action::kFail);
        break;
      case Action::kEnd:
        Unwrite();
        Broadcast([&](int node) { SendTerminate(node, Status::Ok()); });
        over_ = true;
        observer_->OnEnded();
        break;
    }
  }
}

}  // namespace mercury
