// What hostile peers may say to a node of a job under MLfabric that has let them in. The first byte
// says which part the node plays; then each step is a letter that could be one, a part of a
// transfer, or something that the node does. A peer that was refused is closed, as its lane does.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/variants.h"
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

Tree DrawTree(Bytes* bytes) {
  Tree tree{24, {}, bytes->Odd()};
  for (int left = bytes->Between(0, 3); left > 0; --left) {
    const int from = bytes->Between(-1, 3);
    tree.edges.push_back({from, bytes->Between(0, 3)});
  }
  return tree;
}

// Mostly one that `from` may write to `to`: else nobody would be heard for long.
Letter DrawKind(Bytes* bytes, int from, int to) {
  const auto one_of = [bytes](const std::vector<Letter>& letters) {
    return letters[static_cast<size_t>(bytes->Below(static_cast<int>(letters.size())))];
  };
  Letter any;
  if (bytes->Below(16) == 0) {
    BecomeAt(static_cast<size_t>(bytes->Below(std::variant_size_v<Letter>)), &any);
    return any;
  }
  if (to == kSchedulerNode) {
    if (from < 0) {
      return one_of({News(), News(), News(), Carriage(), UnreachableLetter(), AskingLetter()});
    }
    return one_of({Request(), Request(), Carriage(), UnreachableLetter(), TimeLetter(), GotLetter(),
                   Hearing()});
  }
  if (from == kSchedulerNode) {
    if (to >= 0 || bytes->Below(32) == 0) {
      return bytes->Below(8) != 0 ? Letter(Order()) : ServerIsLetter();
    }
    return bytes->Below(8) != 0 ? Letter(Order()) : Tree();
  }
  if (from < 0 && to < 0) {
    return one_of({ConfirmLetter(), ConfirmLetter(), ModelLetter(), StripeLetter(), News()});
  }
  if (from < 0) return ModelLetter();
  return one_of({UpdatesLetter(), UpdatesLetter(), to < 0 ? Letter(GetLetter()) : AbortedLetter()});
}

struct Filler {
  Bytes* bytes;
  int from, to;

  int64_t Few(int last) const { return bytes->Between(0, last); }

  void operator()(Request& its) const {
    its.id = DrawId(bytes);
    if (bytes->Below(8) != 0) its.id.worker = from;
    its.version = Few(3);
    its.bytes = Few(48) + 1;
    its.norm = bytes->Below(3);
    its.reduce = bytes->Below(4) == 0;
  }
  void operator()(Order& its) const {
    its.kind = static_cast<Order::Kind>(bytes->Between(0, Order::kFail));
    // A replica is told to take over once; a server never.
    if (to == kReplicaNode && bytes->Below(16) != 0) its.kind = Order::kFail;
    if (its.kind == Order::kTakeOver && to == kServerNode) its.kind = Order::kVoid;
    its.node = bytes->Between(-3, 3);
    its.updates = DrawUpdates(bytes);
    its.places = DrawPlaces(bytes);
    its.place = Few(9);
    its.even_arrived = bytes->Odd();
    its.update = DrawId(bytes);
    its.fate = static_cast<Fate>(bytes->Below(6));
    Hop& hop = its.hop;
    hop.goal = static_cast<Goal>(bytes->Below(2));
    hop.from = bytes->Between(-3, 3);
    hop.to = bytes->Between(-3, 3);
    hop.gathered = bytes->Odd();
    hop.to_aggregator = bytes->Odd();
    hop.two_sums = bytes->Odd();
    hop.chained = bytes->Odd();
    hop.places = DrawPlaces(bytes);
    hop.update = DrawId(bytes);
    hop.bytes = Few(48);
    hop.end_s = bytes->Below(3);
  }
  void operator()(News& its) const {
    its.kind = static_cast<News::Kind>(bytes->Between(0, News::kTookOver));
    its.places = DrawPlaces(bytes);
    its.place = Few(9);
    its.version = Few(9);
    its.history_norm = bytes->Below(3);
  }
  void operator()(ConfirmLetter& its) const { its.applied = DrawUpdates(bytes); }
  void operator()(TimeLetter& its) const { its = {Few(2), Few(2)}; }
  void operator()(UpdatesLetter& its) const {
    its.number = Few(3);
    its.two = bytes->Below(4) == 0;
    its.chained = bytes->Odd();
    its.goal = static_cast<Goal>(bytes->Below(2));
    its.to_aggregator = bytes->Odd();
    its.places = DrawPlaces(bytes);
    if (to >= 0 && !its.places.empty() && !its.chained) its.places.resize(1);
    its.skipped = DrawPlaces(bytes);
  }
  void operator()(AbortedLetter& its) const { its.number = Few(3); }
  void operator()(ModelLetter& its) const {
    its.number = Few(3);
    its.version = Few(9);
    its.place = Few(9);
    its.progress.assign(static_cast<size_t>(Few(2)), Few(9));
    its.wish = Few(3);
    its.by_packets = bytes->Odd();
    for (int64_t left = Few(3); left > 0; --left) {
      const int by = bytes->Between(0, 3);
      its.onward.push_back({by, bytes->Between(0, 3), Few(3)});
    }
  }
  void operator()(GetLetter& its) const { its.wish = {Few(3), Few(3), Few(3)}; }
  void operator()(GotLetter& its) const { its.wish = {Few(3), Few(3), Few(3)}; }
  void operator()(UnreachableLetter& its) const { its.node = bytes->Between(-3, 3); }
  void operator()(ServerIsLetter& its) const {
    its.node = bytes->Below(8) != 0 ? kReplicaNode : bytes->Between(-3, 3);
  }
  void operator()(AskingLetter& its) const { its.tree = DrawTree(bytes); }
  void operator()(Tree& its) const { its = DrawTree(bytes); }
  void operator()(Carriage& its) const {
    its = {bytes->Between(-3, 3), bytes->Between(-3, 3),
           static_cast<double>(bytes->Between(-1, 100)), 0, static_cast<double>(bytes->Below(3))};
  }
  void operator()(Hearing& its) const {
    its.update = DrawId(bytes);
    if (bytes->Below(8) != 0) its.update.worker = from;
  }
  void operator()(StripeLetter& its) const {
    its.to = bytes->Between(-2, 3);
    its.letter.version = Few(2);
    its.letter.wish = Few(3);
    its.reduce = bytes->Odd();
  }
  template <typename L>
  void operator()(L& /*its*/) const {
    static_assert(kForNode<L>);  // of before the job begins: no part gets it
  }
};

Letter DrawLetter(Bytes* bytes, int from, int to) {
  Letter letter = DrawKind(bytes, from, to);
  std::visit(Filler{bytes, from, to}, letter);
  return letter;
}

struct Player {
  explicit Player(Bytes* bytes)
      : momentum(bytes->Odd() ? 0.5 : 0),
        codec(bytes->Odd() ? mercury::FindCompression("bf16") : nullptr),
        servers(bytes->Odd() ? 2 : 1),
        number(servers == 2 && bytes->Odd() ? ServerNode(1) : bytes->Between(kSchedulerNode, 0)),
        end(number, kPacketBytes, [](int, const Letter&) { return Status::Ok(); }) {
    std::vector<Seat> seats{{ReplicaNode(1), "h1", 1}, {kReplicaNode, "h1", 1}};
    seats.push_back({kServerNode, "h0", 1});
    if (servers == 2) seats.push_back({ServerNode(1), "h3", 1});
    for (int w = 0; w < 2; ++w) seats.push_back({w, "h2", 1});
    if (number == kSchedulerNode) {
      SchedulerOptions options;
      options.collector.delay_bound = 3;
      options.collector.momentum = momentum;
      options.collector.staleness.updates = bytes->Between(-1, 1);
      options.record = true;
      scheduler = std::make_unique<SchedulerPart>(seats, options, &end);
      end.Play(scheduler.get(), {});
    } else if (number < 0) {
      ModelOptions options;
      options.role = number == kServerNode ? Role::kServer : Role::kReplica;
      options.delay_bound = 3;
      options.rule = {momentum, true};
      options.replica = true;
      options.packet_bytes = kPacketBytes;
      options.elements = kElements;
      options.workers = 2;
      options.servers = servers;
      if (IsServerNode(number)) options.server = static_cast<size_t>(ServerIndex(number));
      model = std::make_unique<ModelPart>(options, Vector(kElements, 1), &end);
      end.Play(model.get(), {options.stripe().elements(), momentum > 0, codec, servers, kElements});
    } else {
      const auto got = [](const Edition&, const std::shared_ptr<const Vector>& its) {
        FUZZ_REQUIRE(its != nullptr && its->size() == kElements);
      };
      worker = std::make_unique<WorkerPart>(
          number, momentum, kPacketBytes, &end, WorkerEvents{[](UpdateId, Fate) {}, got},
          mercury::fabric::SpareVectors(), codec, kElements, servers);
      end.Play(worker.get(), {kElements, momentum > 0, codec, servers, kElements});
    }
    if (servers == 2) peers.push_back(PeerOf(ServerNode(1)));
    peers.push_back(PeerOf(ReplicaNode(1)));
    for (const int peer : peers) {
      if (peer != PeerOf(number)) end.Open(peer);
    }
  }

  std::vector<int> peers{0, 1, 2, 3, 4};  // who is let in, each by its own link
  const double momentum;
  const mercury::Codec* const codec;
  const size_t servers;
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
  bool Doubled(const ModelLetter& /*its*/) const { return number == kReplicaNode; }
  bool Doubled(const UpdatesLetter& its) const { return its.places.size() > 1; }
  // A transfer as long as it is said to be; a part of it may come later, or never.
  template <typename L>
  void SayCarried(int peer, L letter, bool whole) {
    letter.two = momentum > 0 && Doubled(letter);
    letter.number = ++transfers;
    Say(peer, letter);
    const char payload[kPacketBytes] = {};
    const bool coded = codec != nullptr && transfers % 2 == 1;
    const bool stripe = IsServerNode(number) || IsServerNode(NodeOf(peer));
    const uint64_t vector_bytes =
        TransferBytes(coded ? codec : nullptr, stripe ? kElements / servers : kElements);
    Header header;
    header.kind = coded ? PacketKind::kCodedPart : PacketKind::kPart;
    header.tensor = transfers;
    header.length = static_cast<uint32_t>(std::min(vector_bytes, uint64_t{12}));
    const uint64_t end_at = (letter.two ? 2 : 1) * vector_bytes - (whole ? 0 : 12);
    for (; header.offset < end_at && end.Linked(peer); header.offset += header.length) {
      Hear(peer, header, payload);
    }
  }
  void Send(int peer, Bytes* bytes) {
    const char payload[kPacketBytes] = {};
    Header header;
    header.kind = bytes->Odd() ? PacketKind::kCodedPart : PacketKind::kPart;
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
    for (const int peer : peers) {
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
    if (model != nullptr) {
      FUZZ_REQUIRE(model->model().size() == kElements / (IsServerNode(number) ? servers : 1));
    }
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
    const int peer =
        node.peers[static_cast<size_t>(bytes.Below(static_cast<int>(node.peers.size())))];
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
      Match(letter, [&](const auto& its) {
        using L = std::decay_t<decltype(its)>;
        if constexpr (kIsOneOf<L, UpdatesLetter, ModelLetter>) {
          if (bytes.Below(16) != 0) return node.SayCarried(peer, its, bytes.Below(8) != 0);
        }
        node.Say(peer, its);
      });
    }
  }
  node.Drain();
  return 0;
}
