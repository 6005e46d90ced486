// Doors without sockets: what ZeroMQ would ask of them, asked by hand.
#include "control/zmq_door.h"

#include <unistd.h>

#include <cstdio>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "harness.h"

using namespace mercury;  // NOLINT: a test

namespace {

constexpr size_t kRoom = 4;
const JobIdentity kJob{7}, kOther{8};

struct Van {
  explicit Van(Post post, const std::string& token = "secret")
      : doorman(token, post, kRoom, 17, [this](const JobIdentity& job) { found.push_back(job); }) {}
  std::vector<JobIdentity> found;
  Doorman doorman;
};

std::unique_ptr<zmq::door_t> Open(zmq::door_maker_t* maker, const std::string& peer = "10.0.0.1") {
  return std::unique_ptr<zmq::door_t>(maker->make(peer, [] {}));
}

// Until nobody has anything to say, or one of them gives up.
bool Meet(zmq::door_t* host, zmq::door_t* guest) {
  std::string to_guest = host->opening(), to_host = guest->opening();
  const auto hear = [](zmq::door_t* door, std::string* said, std::string* reply) {
    while (!said->empty() && door->wants() != 0) {
      const size_t n = std::min(door->wants(), said->size());
      const bool goes_on =
          door->take(reinterpret_cast<const unsigned char*>(said->data()), n, reply);
      said->erase(0, n);
      if (!goes_on) return false;
    }
    return true;
  };
  while (!to_guest.empty() || !to_host.empty()) {
    if (!hear(guest, &to_guest, &to_host) || !hear(host, &to_host, &to_guest)) return false;
  }
  return host->wants() == 0 && guest->wants() == 0;
}

bool Joins(Van* host, Van* guest) {
  const auto in = Open(host->doorman.host()), out = Open(guest->doorman.to_scheduler());
  return in != nullptr && Meet(in.get(), out.get());
}

// What is logged while `run` runs.
std::string Logged(const std::function<void()>& run) {
  std::FILE* file = std::tmpfile();
  const int own = dup(STDERR_FILENO);
  dup2(fileno(file), STDERR_FILENO);
  run();
  dup2(own, STDERR_FILENO);
  close(own);
  std::rewind(file);
  std::string text;
  for (int c; (c = std::fgetc(file)) != EOF;) text += static_cast<char>(c);
  std::fclose(file);
  return text;
}

}  // namespace

TEST(a_node_finds_its_scheduler_and_then_its_peers) {
  Van scheduler(Post::kScheduler), node(Post::kNode), peer(Post::kNode);
  scheduler.doorman.Enter(kJob);
  for (Van* van : {&node, &peer}) {
    REQUIRE_TRUE(Joins(&scheduler, van));
    REQUIRE_EQ(van->found.size(), size_t{1});
    CHECK_TRUE(van->found[0] == kJob);
    van->doorman.Enter(kJob);
  }
  const auto in = Open(peer.doorman.host()), out = Open(node.doorman.to_node());
  CHECK_TRUE(Meet(in.get(), out.get()));
  CHECK_EQ(node.found.size(), size_t{1});
  CHECK_EQ(scheduler.doorman.refused() + peer.doorman.refused(), uint64_t{0});
}

TEST(before_it_is_in_a_job_a_node_lets_nobody_in) {
  Van node(Post::kNode);
  CHECK_TRUE(Open(node.doorman.host()) == nullptr);
  CHECK_EQ(node.doorman.refused(), uint64_t{1});
}

TEST(whoever_takes_the_scheduler_s_place_is_followed_until_the_job_has_begun) {
  Van first(Post::kScheduler), second(Post::kScheduler), node(Post::kNode);
  first.doorman.Enter(kJob);
  second.doorman.Enter(kOther);
  CHECK_TRUE(Joins(&first, &node));
  node.doorman.Enter(kJob);
  CHECK_TRUE(Joins(&second, &node));
  REQUIRE_EQ(node.found.size(), size_t{2});
  CHECK_TRUE(node.found[1] == kOther);
  node.doorman.Enter(kOther);
  node.doorman.Stay();
  CHECK_FALSE(Joins(&first, &node));
  CHECK_TRUE(Joins(&second, &node));
  CHECK_EQ(node.found.size(), size_t{2});  // it knew that one
}

TEST(a_node_at_the_scheduler_s_address_is_none_and_another_job_s_is_no_peer) {
  Van node(Post::kNode), other(Post::kNode);
  other.doorman.Enter(kOther);
  CHECK_FALSE(Joins(&other, &node));
  node.doorman.Enter(kJob);
  const auto in = Open(other.doorman.host()), out = Open(node.doorman.to_node());
  CHECK_FALSE(Meet(in.get(), out.get()));
  CHECK_TRUE(node.found.empty());
}

TEST(another_token_is_counted_and_finds_nobody) {
  Van scheduler(Post::kScheduler), stranger(Post::kNode, "guess");
  scheduler.doorman.Enter(kJob);
  for (uint64_t i = 1; i <= 3; ++i) {
    CHECK_FALSE(Joins(&scheduler, &stranger));
    CHECK_EQ(scheduler.doorman.refused(), i);
  }
  CHECK_TRUE(stranger.found.empty());
}

TEST(who_says_nothing_is_counted_but_not_when_the_process_ends) {
  Van scheduler(Post::kScheduler);
  scheduler.doorman.Enter(kJob);
  Open(scheduler.doorman.host());
  CHECK_EQ(scheduler.doorman.refused(), uint64_t{1});
  scheduler.doorman.host()->broke_rules("10.0.0.1");
  CHECK_EQ(scheduler.doorman.refused(), uint64_t{2});
  scheduler.doorman.Close();
  Open(scheduler.doorman.host());
  CHECK_EQ(scheduler.doorman.refused(), uint64_t{2});
}

TEST(who_hangs_up_and_who_takes_too_long_are_told_apart) {
  Van scheduler(Post::kScheduler), node(Post::kNode);
  scheduler.doorman.Enter(kJob);
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  std::string log = Logged([&] { Open(scheduler.doorman.host()); });
  CHECK_TRUE(has(log, "refused a connection from 10.0.0.1: it hung up (1 refused so far)"));
  log = Logged([&] { Open(scheduler.doorman.host())->late(); });
  CHECK_TRUE(has(log, "refused a connection from 10.0.0.1: it did not say in time who it is (2 "));
  // And at the address where the scheduler should be.
  log = Logged([&] { Open(node.doorman.to_scheduler())->late(); });
  CHECK_TRUE(has(log, "no scheduler of this job at 10.0.0.1: it did not say in time who it is"));
}

struct Guest {
  std::unique_ptr<zmq::door_t> door;
  bool closed = false;
};

// Who stands at a door until ZeroMQ is told to close his connection.
struct Queue {
  explicit Queue(Van* van) : host(van->doorman.host()) {}
  const Guest* Knock(const std::string& peer) {
    Guest* guest = &guests.emplace_back();
    guest->door.reset(host->make(peer, [guest] {
      guest->closed = true;
      guest->door.reset();  // as ZeroMQ does
    }));
    return guest;
  }
  zmq::door_maker_t* const host;
  std::list<Guest> guests;
};

TEST(who_fills_the_door_makes_room_at_it) {
  Van scheduler(Post::kScheduler);
  scheduler.doorman.Enter(kJob);
  Queue queue(&scheduler);
  const Guest* alone = queue.Knock("10.0.0.1");
  std::vector<const Guest*> crowd;
  for (int i = 0; i < 6; ++i) crowd.push_back(queue.Knock("10.0.0.2"));
  CHECK_FALSE(alone->closed);
  for (size_t i = 0; i < crowd.size(); ++i) CHECK_EQ(crowd[i]->closed, i < 3);
  CHECK_EQ(scheduler.doorman.refused(), uint64_t{3});
  // Another address's newcomer finds room as well.
  CHECK_FALSE(queue.Knock("10.0.0.3")->closed);
  CHECK_TRUE(crowd[3]->closed);
}

TEST(of_addresses_that_have_as_many_the_oldest_makes_room) {
  Van scheduler(Post::kScheduler);
  scheduler.doorman.Enter(kJob);
  Queue queue(&scheduler);
  std::vector<const Guest*> guests;
  for (const char* peer : {"10.0.0.9", "10.0.0.7", "10.0.0.9", "10.0.0.7", "10.0.0.6"}) {
    guests.push_back(queue.Knock(peer));
  }
  CHECK_TRUE(guests[0]->closed);
  guests.push_back(queue.Knock("10.0.0.5"));
  CHECK_TRUE(guests[1]->closed);  // its address has the most now
  for (const char* peer : {"10.0.0.4", "10.0.0.3"}) guests.push_back(queue.Knock(peer));
  for (size_t i = 0; i < guests.size(); ++i) CHECK_EQ(guests[i]->closed, i < 4);
}

TEST(who_knocks_again_and_again_does_not_fill_the_log) {
  Van node(Post::kNode);
  std::FILE* const said = std::tmpfile();
  REQUIRE_TRUE(said != nullptr);
  const int before = dup(STDERR_FILENO);
  dup2(fileno(said), STDERR_FILENO);
  for (int i = 0; i < 1000; ++i) node.doorman.Refuse("a connection from 10.0.0.9: why");
  dup2(before, STDERR_FILENO);
  close(before);
  REQUIRE_EQ(std::fseek(said, 0, SEEK_SET), 0);
  std::vector<std::string> lines;
  for (char line[256]; std::fgets(line, sizeof(line), said) != nullptr;) lines.emplace_back(line);
  std::fclose(said);
  CHECK_EQ(node.doorman.refused(), uint64_t{1000});  // all are counted
  REQUIRE_EQ(lines.size(), size_t{10});
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string count = std::to_string(1 << i);
    CHECK_TRUE(lines[i].find("10.0.0.9: why (" + count + " refused so far)") != std::string::npos);
  }
}
