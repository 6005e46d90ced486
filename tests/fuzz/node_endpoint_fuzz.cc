// What hostile peers may say to a node of a job under MLfabric that has let them in. The first byte
// says which part the node plays; then each step is a letter that could be one, a part of a
// transfer, or something that the node does. A peer that was refused is closed, as its lane does.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fabric/net/model_part.h"
#include "fabric/net/node_endpoint.h"
#include "fabric/net/scheduler_part.h"
#include "fabric/net/worker_part.h"
#include "fuzz.h"

using namespace mercury;
using namespace mercury::fabric;

namespace {

constexpr size_t kElements = 6;
constexpr size_t kPacketBytes = 16;
constexpr int kStepsMost = 400;

class Bytes {
 public:
  Bytes(const uint8_t* data, size_t size) : data_(data), end_(data + size) {}
  bool empty() const { return data_ == end_; }
  int Below(int end) { return empty() ? 0 : *data_++ % end; }
  bool Odd() { return Below(2) == 1; }
  int Between(int first, int last) { return first + Below(last - first + 1); }

 private:
  const uint8_t* data_;
  const uint8_t* end_;
};

std::vector<int64_t> DrawPlaces(Bytes* bytes) {
  std::vector<int64_t> places;
  int64_t place = bytes->Between(0, 6);
  for (int left = bytes->Below(4); left > 0; --left) {
    places.push_back(place += bytes->Between(1, 2));
  }
  return places;
}

UpdateId DrawId(Bytes* bytes) {
  const int worker = bytes->Between(-1, 2);
  return {worker, bytes->Between(0, 4)};
}

std::vector<Placed> DrawUpdates(Bytes* bytes) {
  std::vector<Placed> updates;
  for (const int64_t place : DrawPlaces(bytes)) {
    const UpdateId id = DrawId(bytes);
    const int64_t version = bytes->Between(0, 3);
    const bool round = bytes->Below(4) == 0;
    updates.push_back({place, id, version, round ? std::max(place - 1, int64_t{1}) : 0});
    updates.back().reduce = round && bytes->Odd();
  }
  return updates;
}

// Mostly one that `from` may write to `to`: else nobody would be heard for long.
Letter::Kind DrawKind(Bytes* bytes, int from, int to) {
  using Kinds = std::vector<Letter::Kind>;
  using Is = Letter::Kind;
  const auto one_of = [bytes](const Kinds& kinds) {
    return kinds[static_cast<size_t>(bytes->Below(static_cast<int>(kinds.size())))];
  };
  if (bytes->Below(16) == 0) return static_cast<Is>(bytes->Between(1, 20));
  if (to == kSchedulerNode) {
    if (from < 0) return one_of({Is::kNews, Is::kNews, Is::kNews, Is::kCarried, Is::kUnreachable});
    return one_of({Is::kRequest, Is::kRequest, Is::kCarried, Is::kUnreachable, Is::kTime, Is::kGot,
                   Is::kHeard});
  }
  if (from == kSchedulerNode) return to < 0 || bytes->Below(8) != 0 ? Is::kOrder : Is::kServerIs;
  if (from < 0) return to < 0 ? one_of({Is::kConfirm, Is::kModel}) : Is::kModel;
  return one_of({Is::kDelivered, Is::kDelivered, to < 0 ? Is::kGet : Is::kAborted});
}

Letter DrawLetter(Bytes* bytes, int from, int to) {
  Letter letter;
  letter.kind = DrawKind(bytes, from, to);
  letter.request.id = DrawId(bytes);
  if (bytes->Below(8) != 0) letter.request.id.worker = from;
  letter.request.version = bytes->Between(0, 3);
  letter.request.bytes = bytes->Between(0, 48) + 1;
  letter.request.norm = bytes->Below(3);
  letter.request.reduce = bytes->Below(4) == 0;
  letter.order.kind = static_cast<Order::Kind>(bytes->Between(0, Order::kFail));
  // A replica is told to take over once; a server never.
  if (to == kReplicaNode && bytes->Below(16) != 0) letter.order.kind = Order::kFail;
  if (letter.order.kind == Order::kTakeOver && to == kServerNode) letter.order.kind = Order::kVoid;
  letter.order.node = bytes->Between(-3, 3);
  letter.order.updates = DrawUpdates(bytes);
  letter.order.places = DrawPlaces(bytes);
  letter.order.place = bytes->Between(0, 9);
  letter.order.even_arrived = bytes->Odd();
  letter.order.update = DrawId(bytes);
  letter.order.fate = static_cast<Fate>(bytes->Below(6));
  Hop& hop = letter.order.hop;
  hop.goal = static_cast<Goal>(bytes->Below(2));
  hop.from = bytes->Between(-3, 3);
  hop.to = bytes->Between(-3, 3);
  hop.gathered = bytes->Odd();
  hop.to_aggregator = bytes->Odd();
  hop.two_sums = bytes->Odd();
  hop.places = DrawPlaces(bytes);
  hop.update = DrawId(bytes);
  hop.bytes = bytes->Between(0, 48);
  hop.end_s = bytes->Below(3);
  letter.news.kind = static_cast<News::Kind>(bytes->Between(0, News::kTookOver));
  letter.news.places = DrawPlaces(bytes);
  letter.news.place = bytes->Between(0, 9);
  letter.news.version = bytes->Between(0, 9);
  letter.history_norm = bytes->Below(3);
  letter.applied = DrawUpdates(bytes);
  letter.asked_us = bytes->Below(3);
  letter.answered_us = bytes->Below(3);
  letter.waybill.number = bytes->Below(4);
  letter.waybill.goal = static_cast<Goal>(bytes->Below(2));
  letter.waybill.to_aggregator = bytes->Odd();
  letter.waybill.places = DrawPlaces(bytes);
  if (to >= 0 && !letter.waybill.places.empty()) letter.waybill.places.resize(1);
  letter.waybill.skipped = DrawPlaces(bytes);
  letter.waybill.version = bytes->Between(0, 9);
  letter.waybill.place = bytes->Between(0, 9);
  letter.wish = {bytes->Between(0, 3), bytes->Between(0, 3), bytes->Between(0, 3)};
  letter.tree.bytes = 24;
  for (int left = bytes->Between(0, 3); left > 0; --left) {
    letter.tree.edges.push_back({bytes->Between(-1, 3), bytes->Between(0, 3)});
    letter.waybill.onward.push_back({bytes->Between(0, 3), bytes->Between(0, 3)});
  }
  letter.node = to >= 0 ? kReplicaNode : bytes->Between(-3, 3);
  letter.carriage.from = bytes->Between(-3, 3);
  letter.carriage.to = bytes->Between(-3, 3);
  letter.carriage.bits = bytes->Between(-1, 100);
  letter.carriage.end_s = bytes->Below(3);
  letter.hearing.update = letter.request.id;
  return letter;
}

struct Player {
  explicit Player(Bytes* bytes)
      : momentum(bytes->Odd() ? 0.5 : 0),
        number(bytes->Between(kSchedulerNode, 0)),
        end(number, kPacketBytes, [](int, const Letter&) { return Status::Ok(); }) {
    std::vector<Seat> seats{{kServerNode, "h0", 1}, {kReplicaNode, "h1", 1}};
    for (int w = 0; w < 2; ++w) seats.push_back({w, "h2", 1});
    if (number == kSchedulerNode) {
      SchedulerOptions options;
      options.collector.delay_bound = 3;
      options.collector.momentum = momentum;
      options.collector.staleness.updates = bytes->Between(-1, 1);
      options.record = true;
      scheduler = std::make_unique<SchedulerPart>(seats, options, &end);
      end.Play(scheduler.get(), 0, false);
    } else if (number < 0) {
      ModelOptions options;
      options.role = number == kServerNode ? Role::kServer : Role::kReplica;
      options.delay_bound = 3;
      options.rule = {momentum, true};
      options.replica = true;
      options.packet_bytes = kPacketBytes;
      options.elements = kElements;
      options.workers = 2;
      model = std::make_unique<ModelPart>(options, Vector(kElements, 1), &end);
      end.Play(model.get(), kElements, momentum > 0);
    } else {
      const auto got = [](int64_t, const std::shared_ptr<const Vector>& its) {
        FUZZ_REQUIRE(its != nullptr && its->size() == kElements);
      };
      worker = std::make_unique<WorkerPart>(number, momentum, kPacketBytes, &end,
                                            WorkerEvents{[](UpdateId, Fate) {}, got});
      end.Play(worker.get(), kElements, momentum > 0);
    }
    for (int peer = 0; peer < kPeers; ++peer) {
      if (peer != PeerOf(number)) end.Open(peer);
    }
  }

  // Those who are let in, each by its own link.
  static constexpr int kPeers = 5;
  const double momentum;
  const int number;
  NodeEndpoint end;
  std::unique_ptr<SchedulerPart> scheduler;
  std::unique_ptr<ModelPart> model;
  std::unique_ptr<WorkerPart> worker;
  int64_t now_us = 0;
  int64_t pushed = 0;
  uint32_t transfers = 10;  // those with smaller numbers are not right on purpose
  std::map<std::pair<int, uint32_t>, uint64_t> come;  // bytes of transfers

  void Hear(int peer, const Header& header, const char* payload) {
    char* target = nullptr;
    Status status = end.OnHeader(peer, header, now_us, &target);
    if (status.ok() && header.length != 0) std::copy(payload, payload + header.length, target);
    if (status.ok()) status = end.OnPacket(peer, header, now_us);
    FUZZ_REQUIRE(status.ok() == status.text().empty());
    if (!status.ok()) end.Close(peer, now_us);
  }
  void Say(int peer, const Letter& letter) {
    const std::string text = Encode(letter);
    Letter read;
    if (!Decode(text, &read).ok()) return;  // letters_fuzz tries those
    Header header;
    header.kind = PacketKind::kLetter;
    header.tensor = static_cast<uint32_t>(text.size());
    header.length = static_cast<uint32_t>(text.size());
    Hear(peer, header, text.data());
  }
  // A transfer as long as it should be, then what it was.
  void SayCarried(int peer, Letter letter) {
    const bool model_comes = letter.kind == Letter::Kind::kModel;
    const bool two =
        momentum > 0 && (model_comes ? number == kReplicaNode : letter.waybill.places.size() > 1);
    const char payload[kPacketBytes] = {};
    const uint64_t vector_bytes = kElements * sizeof(float);
    Header header;
    header.kind = PacketKind::kPart;
    header.tensor = ++transfers;
    header.length = 12;
    for (; header.offset < (two ? 2 : 1) * vector_bytes && end.Linked(peer); header.offset += 12) {
      Hear(peer, header, payload);
    }
    letter.waybill.number = header.tensor;
    if (end.Linked(peer)) Say(peer, letter);
  }
  void Send(int peer, Bytes* bytes) {
    const char payload[kPacketBytes] = {};
    Header header;
    header.kind = PacketKind::kPart;
    header.tensor = static_cast<uint32_t>(bytes->Below(4));
    uint64_t& have = come[{peer, header.tensor}];
    header.offset = bytes->Below(8) == 0 ? static_cast<uint64_t>(bytes->Below(60)) : have;
    header.length = static_cast<uint32_t>(bytes->Below(8) == 0 ? bytes->Below(17) : 12);
    have = header.offset + header.length;
    Hear(peer, header, payload);
  }
  void Drain() {
    now_us += 100000;
    end.Turn(now_us);
    for (int peer = 0; peer < kPeers; ++peer) {
      OutPacket out;
      for (int i = 0; end.Next(peer, now_us, &out); ++i) {
        FUZZ_REQUIRE(i < 100000);
        Header back;
        FUZZ_REQUIRE(Decode(Encode(out.header).data(), kPacketBytes, &back).ok());
        out = OutPacket();
      }
      end.WakeAt(peer);
    }
    if (scheduler != nullptr) FUZZ_REQUIRE(!scheduler->Figures().empty());
    if (model != nullptr) FUZZ_REQUIRE(model->model().size() == kElements);
  }
  void Act() {
    if (worker == nullptr) return;
    const int64_t push = ++pushed;
    worker->Push({{0, push}, 0, 0, 1}, std::make_shared<const Vector>(kElements, 1.0F));
    worker->Get({0, push % 2 == 0 ? number : 0});
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes bytes(data, size);
  Player node(&bytes);
  for (int step = 0; step < kStepsMost && !bytes.empty(); ++step) {
    const int what = bytes.Below(8);
    const int peer = bytes.Below(Player::kPeers);
    if (what == 0) node.Drain();
    if (what == 1) node.Act();
    if (!node.end.Linked(peer)) continue;
    if (what == 2) {
      for (int parts = bytes.Between(1, 4); parts > 0 && node.end.Linked(peer); --parts) {
        node.Send(peer, &bytes);
      }
    }
    if (what >= 3) {
      const Letter letter = DrawLetter(&bytes, NodeOf(peer), node.number);
      const bool carries =
          letter.kind == Letter::Kind::kDelivered || letter.kind == Letter::Kind::kModel;
      carries&& bytes.Below(16) != 0 ? node.SayCarried(peer, letter) : node.Say(peer, letter);
    }
  }
  node.Drain();
  return 0;
}
