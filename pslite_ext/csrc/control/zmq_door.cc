#include "control/zmq_door.h"

#include <utility>

#include "base/log.h"
#include "base/refusal.h"
#include "control/full_door.h"

namespace mercury {
namespace {

constexpr char kLate[] = "it did not say in time who it is";

const char* Chars(const unsigned char* data) { return reinterpret_cast<const char*>(data); }

}  // namespace

class Doorman::HostDoor : public zmq::door_t {
 public:
  HostDoor(Doorman* doorman, const JobIdentity& job, const std::string& peer,
           const std::function<void()>& close)
      : doorman_(doorman),
        visitor_(doorman->strangers_.insert(doorman->strangers_.end(), {peer, close, this})),
        handshake_(doorman->key_, doorman->post_, job, RandomNonce()) {}
  ~HostDoor() override {
    const std::string from = visitor_->peer;
    doorman_->strangers_.erase(visitor_);
    if (handshake_.wants() == 0 && why_.empty()) return;
    if (why_.empty()) why_ = "it hung up";
    if (!doorman_->closed_) doorman_->Refuse("a connection from " + from + ": " + why_);
  }
  HostDoor(const HostDoor&) = delete;
  HostDoor& operator=(const HostDoor&) = delete;
  std::string opening() override { return handshake_.Challenge(); }
  size_t wants() const override { return handshake_.wants(); }
  bool take(const unsigned char* data, size_t size, std::string* reply) override {
    const Status status = handshake_.Feed(Chars(data), size, reply);
    why_ = status.text();
    return status.ok();
  }
  void late() override { why_ = kLate; }
  void TurnAway(const std::string& why) { why_ = why; }

 private:
  Doorman* const doorman_;
  const std::list<Visitor>::iterator visitor_;
  HostHandshake handshake_;
  std::string why_;
};

class Doorman::GuestDoor : public zmq::door_t {
 public:
  GuestDoor(Doorman* doorman, Post post, std::string peer)
      : doorman_(doorman),
        joins_(post == Post::kScheduler && !doorman->expected()),
        peer_(std::move(peer)),
        handshake_(doorman->key_, post, joins_ ? std::nullopt : doorman->job(), RandomNonce()) {}
  ~GuestDoor() override {
    if (handshake_.done() || !joins_ || doorman_->closed_) return;
    if (why_.empty() && handshake_.said_hello()) {
      why_ = "it closed the connection: have all nodes the same job token?";
    }
    if (!why_.empty()) doorman_->NotLetIn(peer_, why_);
  }
  GuestDoor(const GuestDoor&) = delete;
  GuestDoor& operator=(const GuestDoor&) = delete;
  std::string opening() override { return ""; }
  size_t wants() const override { return handshake_.wants(); }
  bool take(const unsigned char* data, size_t size, std::string* reply) override {
    const Status status = handshake_.Feed(Chars(data), size, reply);
    why_ = status.text();
    if (handshake_.done() && joins_) doorman_->found_(handshake_.job());
    return status.ok();
  }
  void late() override { why_ = kLate; }

 private:
  Doorman* const doorman_;
  const bool joins_;  // any job will do
  const std::string peer_;
  GuestHandshake handshake_;
  std::string why_;
};

zmq::door_t* Doorman::Maker::make(const std::string& peer, const std::function<void()>& close) {
  if (leads_ != Leads::kIn) {
    return new GuestDoor(doorman_, leads_ == Leads::kToNode ? Post::kNode : Post::kScheduler, peer);
  }
  const auto job = doorman_->job();
  if (!job) {
    doorman_->Refuse("a connection from " + peer + ": this node is in no job yet");
    return nullptr;
  }
  doorman_->MakeRoom();
  return new HostDoor(doorman_, *job, peer, close);
}

void Doorman::Maker::broke_rules(const std::string& peer) {
  doorman_->Refuse("a connection from " + peer +
                   ": it sent something that is no message, or is too large for one");
}

Doorman::Doorman(const std::string& token, Post post, size_t strangers_max, size_t parts_max,
                 std::function<void(const JobIdentity& job)> found)
    : key_(DoorKey(token)),
      post_(post),
      strangers_max_(strangers_max),
      parts_max_(parts_max),
      found_(std::move(found)) {}

void Doorman::Enter(const JobIdentity& job) {
  const std::lock_guard<std::mutex> lock(mutex_);
  job_ = job;
}

void Doorman::Stay() {
  const std::lock_guard<std::mutex> lock(mutex_);
  stays_ = true;
}

std::optional<JobIdentity> Doorman::job() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return job_;
}

std::optional<JobIdentity> Doorman::expected() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return stays_ ? job_ : std::nullopt;
}

void Doorman::Refuse(const std::string& what) { LogRefusal(what, ++refused_); }

void Doorman::NotLetIn(const std::string& by, const std::string& why) {
  if (!WorthALine(++not_let_in_)) return;
  Log(LogLevel::kWarning, "no scheduler of this job at " + by + ": " + why + "; trying again (" +
                              std::to_string(not_let_in_) + " times so far)");
}

void Doorman::MakeRoom() {
  if (strangers_.size() < strangers_max_) return;
  const auto gone =
      WhoMakesRoom(strangers_, [](const Visitor& each) -> const auto& { return each.peer; });
  gone->door->TurnAway("too many connections at once");
  const std::function<void()> close = gone->close;  // its place goes with it
  close();
}

}  // namespace mercury
