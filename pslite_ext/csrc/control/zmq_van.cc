#include "control/zmq_van.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "control/control_trace.h"
#include "control/data_sum.h"
#include "control/member_node.h"
#include "control/meta_bounds.h"
#include "ps/internal/customer.h"
#include "ps/internal/postoffice.h"

namespace mercury {
namespace {

constexpr int kGuestLingerMs = 300;  // of who is in no job: nobody may listen
constexpr int kKeepaliveS = 2, kKeepaliveTries = 3;
constexpr int kReconnectMs = 50, kReconnectMaxMs = 2000;
constexpr int kMessagesPerTurn = 256;
constexpr int kAfterThrowMs = 100;
constexpr int kHostBytesMax = 63;
// What a message may be, all its parts together: a piece and a meta, or a meta as long as a piece.
constexpr int64_t kControlBytesMax = int64_t{2} << 20;
static_assert(static_cast<int64_t>(kMetaBodyBytesMax) <= kMessageBytesMax);
constexpr int64_t kAnswerBytesMax = 512;  // what comes back on a connection: an acknowledgement
constexpr size_t kPartsMax = 1 + kDataFramesMax;

uint64_t RandomLife() {
  std::random_device device;
  return (static_cast<uint64_t>(device()) << 32) | device();
}

// All nodes of a job may come at once.
size_t StrangersMax(const ZmqVanOptions& o) {
  return std::max(kStrangersMax, static_cast<size_t>(o.workers + o.servers));
}

// One for what it hears; one for each node that it talks to, and two more to hear of its
// connection; and those on which refusals leave. A job may grow to as many nodes as there can be.
constexpr int kNodesMost = 2 * 2000, kSocketsMax = 1 + kRefusalsKept + 1 + 3 * (kNodesMost + 1);

}  // namespace

ZmqVan::ZmqVan(ZmqVanOptions options, VanObserver* observer)
    : options_(std::move(options)),
      observer_(observer),
      key_(EnvelopeKey(options_.token, RandomIdentity())),
      life_(RandomLife()),
      doorman_(options_.token, options_.role == Role::kScheduler ? Post::kScheduler : Post::kNode,
               StrangersMax(options_), kPartsMax,
               [this](const JobIdentity& job) {
                 Outbound item;
                 item.run = [this, job] {
                   // It may be another scheduler that takes the first one's place: until a job has
                   // begun, any will do.
                   if (my_id_ != kNoNode || over_) return;
                   EnterJob(job);
                   SayHello();
                 };
                 Post(std::move(item));
               }),
      link_watch_(options_.times.heartbeat_interval_ms, options_.times.heartbeat_timeout_ms) {}

ZmqVan::~ZmqVan() {
  ZmqVan::Stop();
  if (wake_fd_ >= 0) close(wake_fd_);  // until now, any thread may hand over a message
}

void ZmqVan::Start(int /*customer_id*/, bool /*standalone*/) {
  const auto fail = [this](Status status) { start_status_ = std::move(status); };
  if (options_.host.size() > kHostBytesMax || options_.scheduler_host.size() > kHostBytesMax) {
    return fail(Status::InvalidArgument("a host address is longer than 63 bytes"));
  }
  is_scheduler_ = options_.role == Role::kScheduler;
  context_ = std::make_unique<ZmqContext>(kSocketsMax);
  wake_fd_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (wake_fd_ < 0) return fail(Status::Exhausted("no file descriptor left for the van"));

  const int64_t now = NowMs();
  ps::Node me;
  me.role = static_cast<ps::Node::Role>(options_.role);
  me.hostname = options_.host;
  me.port = options_.port;
  me.customer_id = 0;
  me.aux_id = options_.rank_hint;
  Member mine;
  mine.data_port = data_port_;
  mine.asynchronous = options_.asynchronous;
  SetDataPlane(&me, mine);
  SetNode(me);
  me.port = Bind(me, 0);
  if (me.port < 0) return;  // Bind has said why
  my_port_ = me.port;
  scheduler_.hostname = options_.scheduler_host;
  scheduler_.port = options_.scheduler_port;
  scheduler_.role = ps::Node::SCHEDULER;
  scheduler_.id = kSchedulerId;
  if (is_scheduler_) {
    me.id = my_id_ = kSchedulerId;
    scheduler_membership_ = std::make_unique<SchedulerMembership>(
        options_.workers, options_.servers, options_.times, now, options_.settings);
    const Status status = Begin();
    if (!status.ok()) return fail(status);
  } else {
    node_membership_ = std::make_unique<NodeMembership>(
        options_.scheduler_host + ":" + std::to_string(options_.scheduler_port), options_.times,
        now);
  }
  SetNode(me);
  if (!is_scheduler_) Connect(scheduler_);
  thread_ = std::thread(&ZmqVan::Run, this);
  Wake();
}

void ZmqVan::Stop() {
  if (thread_.joinable()) {
    stop_ = true;
    Wake();
    thread_.join();
  }
  ready_ = false;
  doorman_.Close();
  router_.Close(0);
  const int linger_ms = my_id_ == kNoNode ? kGuestLingerMs : kLingerMs;
  for (auto& [id, dealer] : dealers_) dealer.Close(linger_ms);
  for (ZmqSocket& socket : rejected_) socket.Close(kLingerMs);
  dealers_.clear();
  link_ends_.clear();
  context_.reset();  // waits until what lingers has left
}

int ZmqVan::Bind(const ps::Node& node, int /*max_retry*/) {
  router_ = ZmqSocket(*context_, ZMQ_ROUTER);
  router_.Set(ZMQ_IPV6, IsIpv6(node.hostname) ? 1 : 0);
  router_.SetDoor(doorman_.host());
  router_.Set(ZMQ_HANDSHAKE_IVL, kDoorTimeoutMs);
  // Nobody sends tensors to the scheduler.
  const int64_t piece_bytes = is_scheduler_ ? 0 : kMessageBytesMax;
  router_.SetBytes(ZMQ_MAXMSGSIZE, kControlBytesMax + piece_bytes);
  start_status_ = router_.Bind(TcpEndpoint(node.hostname, node.port));
  return start_status_.ok() ? router_.BoundPort() : -1;
}

ZmqSocket ZmqVan::NewDealer(const std::string& host, zmq::door_maker_t* door) {
  ZmqSocket dealer(*context_, ZMQ_DEALER);
  dealer.Set(ZMQ_IPV6, IsIpv6(host) ? 1 : 0);
  dealer.Set(ZMQ_SNDHWM, 0);  // the tensors' own memory is what is queued
  dealer.Set(ZMQ_RECONNECT_IVL, kReconnectMs);
  dealer.Set(ZMQ_RECONNECT_IVL_MAX, kReconnectMaxMs);
  dealer.SetDoor(door);
  dealer.Set(ZMQ_HANDSHAKE_IVL, kDoorTimeoutMs);
  dealer.SetBytes(ZMQ_MAXMSGSIZE, kAnswerBytesMax);
  return dealer;
}

void ZmqVan::Connect(const ps::Node& node) {
  ZmqSocket dealer = NewDealer(
      node.hostname, node.id == kSchedulerId ? doorman_.to_scheduler() : doorman_.to_node());
  // The scheduler watches everybody, and everybody the scheduler.
  dealer.Watch(*context_, Watched(node.id)
                              ? ConnectionProgress::kEvents
                              : ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED |
                                    ZMQ_EVENT_CONNECT_RETRIED);
  if (node.id < kNoNode) {  // nothing is said to a guest, and yet its host may vanish
    dealer.Set(ZMQ_TCP_KEEPALIVE, 1);
    dealer.Set(ZMQ_TCP_KEEPALIVE_IDLE, kKeepaliveS);
    dealer.Set(ZMQ_TCP_KEEPALIVE_INTVL, kKeepaliveS);
    dealer.Set(ZMQ_TCP_KEEPALIVE_CNT, kKeepaliveTries);
  }
  const Status status = dealer.Connect(TcpEndpoint(node.hostname, node.port));
  if (!status.ok() || !dealer.events()) return FailJob(CannotConnect(status), true);
  dealers_[node.id] = std::move(dealer);
}

void ZmqVan::Wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = write(wake_fd_, &one, sizeof(one));  // full means awake
}

void ZmqVan::Post(Outbound item) {
  bool was_empty;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    was_empty = queue_.empty();
    queue_.push_back(std::move(item));
  }
  if (was_empty) Wake();
}

std::vector<char> ZmqVan::Packed(const ps::Meta& meta) {
  std::vector<char> packed(static_cast<size_t>(GetPackMetaLen(meta)));
  char* buffer = packed.data();
  int bytes = 0;
  PackMeta(meta, &buffer, &bytes);
  return packed;
}

int ZmqVan::SendMsg(ps::Message& message) {
  Outbound item;
  item.receiver = message.meta.recver;
  item.meta = Packed(message.meta);
  item.data = message.data;
  size_t bytes = item.meta.size();
  for (const auto& array : item.data) bytes += array.size();
  Trace(message.meta, static_cast<int64_t>(bytes), true);
  Post(std::move(item));
  return static_cast<int>(std::min<size_t>(bytes, std::numeric_limits<int>::max()));
}

void ZmqVan::Trace(const ps::Meta& meta, int64_t bytes, bool sends) {
  TraceLog* log = TraceLog::Active();
  if (log == nullptr) return;
  if (!sends && meta.sender == ps::Meta::kEmpty) return;  // who has no rank yet
  if (meta.control.empty()) {
    if (options_.tap != nullptr) options_.tap(log, meta, bytes, sends, NowUs());
    return;
  }
  TraceControl(log, meta.control.cmd, sends ? meta.recver : meta.sender, bytes, sends, NowUs());
}

// What is thrown here, by the system or by an observer, is the job's end and not the process's.
void ZmqVan::Run() {
  do {
    try {
      Loop();
    } catch (const std::exception& error) {
      bool told = !over_;
      try {
        FailJob(Status::Internal(std::string("its control plane failed: ") + error.what()), true);
      } catch (const std::exception&) {
        told = false;  // no memory even for that: the next turn tries again
      }
      if (!told) std::this_thread::sleep_for(std::chrono::milliseconds(kAfterThrowMs));
    }
  } while (!stop_);
}

void ZmqVan::Loop() {
  const int64_t tick_ms = std::clamp<int64_t>(options_.times.heartbeat_interval_ms / 2, 10, 500);
  int64_t next_tick = NowMs();
  while (true) {
    Wait(std::max<int64_t>(0, next_tick - NowMs()));
    const bool stopping = stop_;  // what was handed over before is still sent
    SendQueued();
    if (stopping) return;
    const int64_t now = NowMs();
    HearDisconnects(now);
    for (int i = 0; i < kMessagesPerTurn; ++i) {
      ps::Message message;
      const int bytes = RecvMsg(&message);
      if (bytes < 0) break;
      if (bytes <= 0) continue;
      Trace(message.meta, bytes - static_cast<int>(kEnvelopeBytes), false);
      Dispatch(message, now);
    }
    if (now < next_tick) continue;
    next_tick = now + tick_ms;
    HearConnections();
    if (over_) continue;
    const auto unheard =
        std::find_if(reported_.begin(), reported_.end(), [this, now](const auto& of) {
          return now >= of.second.verdict_by_ms &&
                 !(node_membership_ && node_membership_->WaitsForWordOf(of.first, now));
        });
    if (unheard != reported_.end()) {
      FailJob(unheard->second.status, false);
      continue;
    }
    CarryOut(Tick(now));
    // Right then: the nodes' own patience ends soon after.
    if (is_scheduler_) next_tick = std::min(next_tick, scheduler_membership_->start_by_ms());
    WatchLinks(now);
  }
}

void ZmqVan::Wait(int64_t wait_ms) {
  std::vector<zmq_pollitem_t> items = {{router_.get(), 0, ZMQ_POLLIN, 0},
                                       {nullptr, wake_fd_, ZMQ_POLLIN, 0}};
  for (const auto& [id, dealer] : dealers_) {
    if (!Watched(id) && dealer.events() != nullptr) {
      items.push_back({dealer.events(), 0, ZMQ_POLLIN, 0});
    }
  }
  zmq_poll(items.data(), static_cast<int>(items.size()),
           static_cast<long>(wait_ms));  // NOLINT: the type is ZeroMQ's
  uint64_t count;
  [[maybe_unused]] const ssize_t n = read(wake_fd_, &count, sizeof(count));
}

void ZmqVan::SendQueued() {
  std::deque<Outbound> batch;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    batch.swap(queue_);
  }
  for (Outbound& item : batch) {
    if (item.run) {
      item.run();
    } else {
      SendNow(item);
    }
  }
}

// Somebody may wait for what cannot be sent. (After the end nobody does, and this does nothing.)
void ZmqVan::SendNow(const Outbound& item) {
  const Status status = TrySend(item);
  if (!status.ok()) FailJob(status, true);
}

Status ZmqVan::TrySend(const Outbound& item) {
  if (link_watch_.gone(item.receiver)) return Status::Ok();  // nobody is there to care
  const auto dealer = dealers_.find(item.receiver);
  if (dealer == dealers_.end()) {
    return Status::Internal("it is not connected to " + NodeName(item.receiver));
  }
  if (!in_job_) return Status::PeerLost("the scheduler has not been found yet");
  Envelope envelope = NextEnvelope(item.receiver);
  envelope.data_frames = static_cast<uint16_t>(item.data.size());
  for (const auto& array : item.data) envelope.data_bytes += array.size();
  envelope.checked = checks_data_ && !item.data.empty();
  if (envelope.checked) envelope.data_sum = SumOf(item.data);
  std::vector<char> head(kEnvelopeBytes + item.meta.size());
  Seal(key_, envelope, item.meta.data(), item.meta.size(), reinterpret_cast<uint8_t*>(head.data()));
  std::memcpy(head.data() + kEnvelopeBytes, item.meta.data(), item.meta.size());
  if (Watched(item.receiver)) link_watch_.Sent(item.receiver, envelope.sequence, NowMs());
  Count(item.receiver, head.size() + envelope.data_bytes, 0);
  bool sent = dealer->second.SendCopy(head.data(), head.size(), !item.data.empty());
  for (size_t i = 0; sent && i < item.data.size(); ++i) {
    sent = dealer->second.SendShared(item.data[i], i + 1 < item.data.size());
  }
  return sent ? Status::Ok() : Status::Exhausted("no memory to send to " + NodeName(item.receiver));
}

Envelope ZmqVan::NextEnvelope(int receiver) {
  Envelope envelope;
  envelope.sender = my_id_;
  envelope.receiver = receiver;
  envelope.life = life_;
  envelope.sequence = ++sequence_to_[receiver];
  return envelope;
}

ZmqVan::Outbound ZmqVan::Control(int receiver, const ps::Meta& meta) {
  Outbound item;
  item.receiver = receiver;
  item.meta = Packed(meta);
  if (TraceLog* log = TraceLog::Active()) {
    TraceControl(log, meta.control.cmd, receiver, static_cast<int64_t>(item.meta.size()), true,
                 NowUs());
  }
  return item;
}

void ZmqVan::SendControl(int receiver, const ps::Meta& meta) { SendNow(Control(receiver, meta)); }

void ZmqVan::Refuse(const std::string& why) { doorman_.Refuse("a message: " + why); }

void ZmqVan::EnterJob(const JobIdentity& job) {
  job_ = job;
  key_ = EnvelopeKey(options_.token, job);
  in_job_ = true;
  doorman_.Enter(job);
}

int ZmqVan::RecvMsg(ps::Message* message) {
  std::vector<ZmqFrame> frames;
  if (!router_.Receive(&frames)) return -1;
  const auto refuse = [this](const std::string& why) {
    Refuse(why);
    return 0;
  };
  if (frames.size() < 2) return refuse("it is empty");
  ZmqFrame& head = frames[1];
  Envelope envelope;
  Status status = Open(key_, head.data(), head.size(), &envelope);
  if (!status.ok()) return refuse(status.text());
  const std::string from = envelope.sender == kNoNode ? "a new node" : NodeName(envelope.sender);
  const size_t data_frames = frames.size() - 2;
  size_t data_bytes = 0;
  for (size_t i = 2; i < frames.size(); ++i) data_bytes += frames[i].size();
  if (data_frames != envelope.data_frames || data_bytes != envelope.data_bytes) {
    return refuse("its data are not those that " + from + " announced");
  }
  if (envelope.kind == EnvelopeKind::kAcknowledgement) return refuse("nobody asks by it");
  if (envelope.receiver != my_id_ && my_id_ != kNoNode) return refuse("it is for another node");
  if (!MaySpeak(envelope.sender)) return refuse("its sender is not in the job");
  if (envelope.sender != kNoNode) {
    const auto life = life_of_.emplace(envelope.sender, envelope.life).first;
    if (life->second != envelope.life) return refuse("it comes from a second " + from);
  }
  // Peers take a node that was started again in the same place for the one that was there before.
  if (!is_scheduler_ && my_id_ == kNoNode &&
      sequence_from_.IsLate(envelope.life, envelope.sequence)) {
    if (envelope.sender == kSchedulerId) node_membership_->HeardLate(NowMs());
    return refuse("it is for the node that was here before");
  }
  // It was said to the scheduler that was lost.
  if (is_scheduler_ && sequence_from_.IsBefore(envelope.life, envelope.sequence)) return 0;
  const auto lose = [&](const Status& why) {
    LoseLink(envelope.sender, why);
    return 0;
  };
  status = sequence_from_.Accept(envelope.life, envelope.sequence);
  if (status.code() == Code::kCorrupt) return refuse(status.text());
  if (!status.ok()) return lose(status);
  if (Watched(envelope.sender)) {
    if (link_watch_.broken(envelope.sender)) return 0;
    link_watch_.Received(envelope.sender, envelope.sequence);
    link_ends_[envelope.sender].routing = frames[0].text();
  }
  if (envelope.kind != EnvelopeKind::kMessage) return 0;
  Count(envelope.sender, 0, head.size() + data_bytes);
  const size_t meta_bytes = head.size() - kEnvelopeBytes;
  meta_buffer_.resize((meta_bytes + 7) / 8);
  char* meta = reinterpret_cast<char*>(meta_buffer_.data());
  std::memcpy(meta, head.data() + kEnvelopeBytes, meta_bytes);
  status = CheckMeta(meta, meta_bytes);
  if (!status.ok() && envelope.sender == kNoNode) return refuse(status.text());
  if (!status.ok()) return lose(OfNoUse(status.text()));
  UnpackMeta(meta, static_cast<int>(meta_bytes), &message->meta);
  message->meta.sender = envelope.sender == kNoNode ? ps::Meta::kEmpty : envelope.sender;
  message->meta.recver = envelope.receiver;
  if (envelope.sender == kNoNode) message->meta.control.msg_sig = envelope.life;
  status = CheckSum(envelope, frames, message->meta);
  if (!status.ok()) return lose(status);
  for (size_t i = 2; i < frames.size(); ++i) {
    auto frame = std::make_shared<ZmqFrame>(std::move(frames[i]));
    ps::SArray<char> array;
    array.reset(frame->data(), frame->size(), [frame](char* /*data*/) {});
    message->data.push_back(array);
  }
  return static_cast<int>(
      std::min<size_t>(head.size() + data_bytes, std::numeric_limits<int>::max()));
}

}  // namespace mercury
