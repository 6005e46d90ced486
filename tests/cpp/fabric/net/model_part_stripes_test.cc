// Several servers, each with its stripe of the model, and their replica; letters between them are
// carried by hand. (The file of the unit: model_part_stripes.cc.)
#include "fabric/net/model_part.h"
#include "fabric/net/recorder.h"
#include "harness.h"

using namespace mercury::fabric;
using namespace mercury::fabric::testing;
using namespace mercury::testing;
using mercury::Code;
using mercury::Role;

namespace {

constexpr size_t kElements = 7;  // blocks of three, and one more of the first
constexpr int kSecond = PeerOf(ServerNode(1));

ModelOptions Options(Role role, size_t server, bool replica) {
  ModelOptions options{role, 5, {0.5, false}, replica, 16, kElements, 2, {}, 0};
  options.servers = 2;
  options.server = server;
  return options;
}

Vector Counted() {
  Vector values(kElements);
  for (size_t i = 0; i < kElements; ++i) values[i] = static_cast<float>(i);
  return values;
}

struct Node {
  Recorder outbox;
  ModelPart part;
  explicit Node(Role role, size_t server = 0, bool replica = false)
      : part(Options(role, server, replica), Counted(), &outbox) {}

  void Hear(int peer, const Letter& letter, const Haul& haul = {}) {
    CHECK_OK(part.Hear(peer, letter, haul, 0));
  }
  Vector Sent(int peer) { return SentBy(&part, &outbox, peer, 0); }
  // As the node's end does with a stripe from that server, in vectors of that many elements.
  void Brings(int server, const ModelLetter& letter, const Vector& values) {
    const int peer = PeerOf(ServerNode(server));
    const Landing landing = part.Land(peer, letter);
    REQUIRE_TRUE(landing.sum != nullptr);
    auto inflow = std::make_shared<Inflow>();
    inflow->vectors = letter.two ? 2 : 1;
    inflow->sum = landing.sum;
    inflow->step = landing.step;
    inflow->stripe = landing.stripe;
    inflow->elements = landing.stripe.elements();
    inflow->bytes = inflow->shape().bytes();
    REQUIRE_EQ(values.size(), inflow->vectors * inflow->elements);
    for (size_t at = 0; at < inflow->elements; ++at) {
      (*landing.sum)[landing.stripe.In(at)] = values[at];
      if (letter.two) (*landing.step)[landing.stripe.In(at)] = values[inflow->elements + at];
    }
    part.Coming(peer, letter, inflow);
    Haul haul;
    haul.cargo = inflow->cargo();
    Hear(peer, letter, haul);
  }
};

struct Servers {
  Node first{Role::kServer, 0, true};
  Node second{Role::kReplica, 1};

  // What the two have to say to each other.
  void Talk() {
    for (bool more = true; more;) {
      more = false;
      for (const Letter& letter : second.outbox.To(kServerPeer)) {
        more = true;
        if (!std::holds_alternative<ModelLetter>(letter)) first.Hear(kSecond, letter);
      }
      for (const Letter& letter : first.outbox.To(kSecond)) {
        more = true;
        second.Hear(kServerPeer, letter);
      }
    }
  }
  void Expect(const std::vector<Placed>& updates) {
    Order order = MakeOrder(Order::kExpect, kServerNode);
    order.updates = updates;
    first.Hear(kSchedulerPeer, order);
  }
  // An update of all ones, times `value`.
  void Come(Node* node, int64_t place, float value) {
    node->Hear(PeerOf(0), Updates(place, {place}), Of(Vector(node->part.model().size(), value)));
    Talk();
  }
};

}  // namespace

TEST(who_is_a_server_no_more_breaks_off_what_it_sends) {
  Servers servers;
  servers.first.Hear(PeerOf(0), GetLetter{{0, 0, 1}});
  servers.Talk();
  for (Node* each : {&servers.first, &servers.second}) {
    mercury::OutPacket packet;
    CHECK_FALSE(each->part.Next(PeerOf(0), 0, &packet));  // a letter goes first
    const int64_t number = each->outbox.OneTo<ModelLetter>(PeerOf(0)).number;
    each->Hear(kSchedulerPeer, ServerIsLetter{kReplicaNode});
    CHECK_EQ(each->outbox.OneTo<AbortedLetter>(PeerOf(0)).number, number);
    CHECK_TRUE(each->Sent(PeerOf(0)).empty());
  }
}

TEST(an_update_is_applied_once_it_is_at_all_servers) {
  Servers servers;
  CHECK_TRUE(servers.first.part.model() == (Vector{0, 1, 2, 6}));
  CHECK_TRUE(servers.second.part.model() == (Vector{3, 4, 5}));
  servers.Expect({{1, {0, 1}, 0}, {2, {0, 2}, 0}});
  servers.Come(&servers.second, 2, 20);
  servers.Come(&servers.first, 1, 10);
  servers.Come(&servers.first, 2, 20);
  CHECK_EQ(servers.first.part.version(), 0);
  servers.Come(&servers.second, 1, 10);
  for (Node* node : {&servers.first, &servers.second}) CHECK_EQ(node->part.version(), 2);
  // 10, then half of that step again, and 20.
  CHECK_TRUE(servers.first.part.model() == (Vector{35, 36, 37, 41}));
  CHECK_TRUE(servers.second.part.model() == (Vector{38, 39, 40}));
  CHECK_EQ(servers.first.outbox.To(kSchedulerPeer).size(), 2);
  CHECK_TRUE(servers.second.outbox.To(kSchedulerPeer).empty());
  CHECK_EQ(servers.first.outbox.To(kReplicaPeer).size(), 2);
}

TEST(all_servers_give_the_version_that_the_first_one_gives) {
  Servers servers;
  servers.Expect({{1, {0, 1}, 0}, {2, {0, 2}, 0}});
  for (Node* node : {&servers.first, &servers.second}) servers.Come(node, 1, 10);
  servers.first.Hear(PeerOf(1), GetLetter{{0, 0, 44}});
  servers.Talk();
  for (Node* node : {&servers.first, &servers.second}) servers.Come(node, 2, 20);
  CHECK_TRUE(servers.first.Sent(PeerOf(1)) == (Vector{10, 11, 12, 16}));
  CHECK_TRUE(servers.second.Sent(PeerOf(1)) == (Vector{13, 14, 15}));
  for (Node* node : {&servers.first, &servers.second}) {
    const auto said = node->outbox.OneTo<ModelLetter>(PeerOf(1));
    CHECK_EQ(said.wish, 44);
    CHECK_EQ(said.version, 1);
  }
  StripeLetter old;
  old.letter.version = 1;
  CHECK_STATUS(Code::kCorrupt, servers.second.part.Hear(kServerPeer, old, {}, 0));
  old.letter.version = 2;
  old.reduce = true;  // of which there was none
  CHECK_STATUS(Code::kCorrupt, servers.second.part.Hear(kServerPeer, old, {}, 0));
}

TEST(the_sum_of_an_all_reduce_is_at_all_servers) {
  Servers servers;
  servers.Expect({{1, {0, 1}, 0, 1, true}, {2, {1, 1}, 0, 1, true}});
  for (Node* node : {&servers.first, &servers.second}) {
    for (const int worker : {0, 1}) {
      node->Hear(PeerOf(worker), Updates(1, {worker + 1}),
                 Of(Vector(node->part.model().size(), static_cast<float>(worker + 1))));
    }
  }
  servers.Talk();
  servers.first.Hear(PeerOf(0), GetLetter{{0, 1, 9}});
  servers.Talk();
  CHECK_TRUE(servers.first.Sent(PeerOf(0)) == Vector(4, 3));
  CHECK_TRUE(servers.second.Sent(PeerOf(0)) == Vector(3, 3));
  CHECK_EQ(servers.first.part.version(), 0);
  CHECK_TRUE(servers.first.outbox.To(kReplicaPeer).empty());
}

TEST(what_came_to_one_server_alone_is_let_go_of_when_it_is_void) {
  Servers servers;
  servers.Expect({{1, {0, 1}, 0}, {2, {0, 2}, 0}, {3, {0, 3}, 0}});
  servers.Come(&servers.first, 1, 10);
  servers.Come(&servers.second, 2, 10);
  Order order = MakeOrder(Order::kVoid, kServerNode);
  order.places = {1, 2};
  servers.first.Hear(kSchedulerPeer, order);
  servers.Come(&servers.second, 1, 10);  // too late
  servers.Come(&servers.first, 2, 10);
  for (Node* node : {&servers.first, &servers.second}) servers.Come(node, 3, 20);
  CHECK_TRUE(servers.first.part.model() == (Vector{20, 21, 22, 26}));
  CHECK_TRUE(servers.second.part.model() == (Vector{23, 24, 25}));
}

TEST(members_of_a_group_that_did_not_come_are_said_once_all_have_the_group) {
  Servers servers;
  servers.Expect({{1, {0, 1}, 0}, {2, {1, 1}, 0}});
  UpdatesLetter letter = Updates(1, {1});
  letter.skipped = {2};
  for (Node* node : {&servers.first, &servers.second}) {
    CHECK_TRUE(servers.first.outbox.To(kSchedulerPeer).empty());
    node->Hear(PeerOf(0), letter, Of(Vector(node->part.model().size(), 10)));
    servers.Talk();
  }
  std::vector<News::Kind> said;
  for (const Letter& its : servers.first.outbox.To(kSchedulerPeer))
    said.push_back(As<News>(its).kind);
  CHECK_TRUE(said == (std::vector<News::Kind>{News::kVoided, News::kCommitted}));
}

TEST(a_replica_is_sent_the_model_by_all_servers) {
  Servers servers;
  servers.Expect({{1, {0, 1}, 0}});
  for (Node* node : {&servers.first, &servers.second}) servers.Come(node, 1, 10);
  servers.first.outbox.To(kReplicaPeer);
  Order order = MakeOrder(Order::kSnapshot, kServerNode);
  order.hop.to = kReplicaNode;
  servers.first.Hear(kSchedulerPeer, order);
  servers.Talk();
  Node replica(Role::kReplica);
  for (const int server : {1, 0}) {
    Node& node = server == 0 ? servers.first : servers.second;
    const Vector sent = node.Sent(kReplicaPeer);
    const auto said = node.outbox.OneTo<ModelLetter>(kReplicaPeer);
    CHECK_TRUE(said.two);
    CHECK_EQ(replica.part.version(), 0);
    replica.Brings(server, said, sent);
  }
  CHECK_EQ(replica.part.version(), 1);
  CHECK_TRUE(replica.part.model() == (Vector{10, 11, 12, 13, 14, 15, 16}));
  CHECK_TRUE(replica.outbox.OneTo<News>(kSchedulerPeer).kind == News::kCaughtUp);
}

TEST(in_the_end_the_first_server_has_all_of_the_model) {
  Servers servers;
  servers.Expect({{1, {0, 1}, 0}});
  for (Node* node : {&servers.first, &servers.second}) servers.Come(node, 1, 10);
  servers.first.part.Collect();
  servers.Talk();
  CHECK_TRUE(servers.first.part.collected() == nullptr);
  const Vector sent = servers.second.Sent(kServerPeer);
  servers.first.Brings(1, servers.second.outbox.OneTo<ModelLetter>(kServerPeer), sent);
  REQUIRE_TRUE(servers.first.part.collected() != nullptr);
  CHECK_TRUE(*servers.first.part.collected() == (Vector{10, 11, 12, 13, 14, 15, 16}));
}

TEST(once_a_replica_has_taken_over_the_servers_do_nothing_more) {
  Servers servers;
  servers.Expect({{1, {0, 1}, 0}});
  CHECK_TRUE(servers.first.part.is_server() && !servers.second.part.is_server());
  for (Node* node : {&servers.first, &servers.second}) {
    node->Hear(kSchedulerPeer, ServerIsLetter{kReplicaNode});
    servers.Come(node, 1, 10);
    node->Hear(PeerOf(1), GetLetter());
    CHECK_EQ(node->part.version(), 0);
    CHECK_TRUE(node->Sent(PeerOf(1)).empty());
    CHECK_FALSE(node->part.is_server());
  }
  CHECK_TRUE(servers.first.outbox.To(kSchedulerPeer).empty());
}

TEST(nobody_speaks_for_a_server) {
  Servers servers;
  const auto refused = [](Node* node, int peer, const Letter& letter) {
    return node->part.Hear(peer, letter, {}, 0).code() == Code::kCorrupt;
  };
  const News has{News::kReplicaHas, {1}};
  CHECK_TRUE(refused(&servers.first, PeerOf(0), has));
  CHECK_TRUE(refused(&servers.first, kReplicaPeer, has));
  CHECK_TRUE(refused(&servers.second, kServerPeer, has));
  CHECK_TRUE(refused(&servers.first, kSecond, News{News::kHeld, {1}}));
  CHECK_TRUE(refused(&servers.second, PeerOf(0), StripeLetter()));
  CHECK_TRUE(refused(&servers.first, kSecond, StripeLetter()));
  CHECK_TRUE(refused(&servers.second, PeerOf(0), GetLetter()));
  CHECK_TRUE(refused(&servers.first, PeerOf(0), ServerIsLetter{kReplicaNode}));
  CHECK_TRUE(refused(&servers.second, kSecond, ConfirmLetter()));
}
