#include "packets/hosts.h"

#include <string>
#include <vector>

#include "base/node_name.h"
#include "harness.h"

using namespace mercury;           // NOLINT: a test
using namespace mercury::testing;  // NOLINT: a test

TEST(alone_everybody_sends_for_itself) {
  CHECK_EQ(Hosts().WorkersBeside(0, 3), 3);
  for (const Hosts& hosts : {Hosts(), Hosts({0, 1}, {2, 3}), Hosts({0, 0, 0}, {0, 0})}) {
    for (int w = 0; w < 2; ++w) {
      CHECK_FALSE(hosts.Leads(w));
      CHECK_FALSE(hosts.Follows(w));
      for (int s = 0; s < 2; ++s) {
        CHECK_EQ(hosts.Sender(w, s), w);
        CHECK_EQ(hosts.StandsFor(w, s), 1);
      }
    }
    CHECK_EQ(hosts.Senders(0, 2), (std::vector<int>{0, 1}));
  }
}

TEST(a_leader_sends_where_copies_leave_the_host) {
  const Hosts hosts({5, 7, 5, 5}, {5, 9});
  CHECK_TRUE(hosts.Leads(0) && hosts.Follows(2) && hosts.Follows(3));
  CHECK_FALSE(hosts.Leads(1) || hosts.Follows(1) || hosts.Follows(0) || hosts.Leads(2));
  CHECK_EQ(hosts.LeaderOf(3), 0);
  CHECK_EQ(hosts.Workers(3), (std::vector<int>{0, 2, 3}));
  CHECK_EQ(hosts.Workers(1), std::vector<int>{1});
  CHECK_TRUE(hosts.Beside(2, 0));
  CHECK_FALSE(hosts.Beside(2, 1) || hosts.Beside(1, 0));
  CHECK_EQ(hosts.WorkersBeside(0, 4), 3);
  CHECK_EQ(hosts.WorkersBeside(1, 4), 0);
  CHECK_EQ(hosts.WorkersBeside(2, 4), 4);  // not known
  CHECK_EQ(hosts.Sender(3, 0), 3);
  CHECK_EQ(hosts.Sender(3, 1), 0);
  CHECK_EQ(hosts.Senders(0, 4), (std::vector<int>{0, 1, 2, 3}));
  CHECK_EQ(hosts.Senders(1, 4), (std::vector<int>{0, 1}));
  CHECK_EQ(hosts.Leaders(), std::vector<int>{0});
  CHECK_EQ(hosts.AsServer(0), 2);
}

// The invariant: for each server, every worker's copy is in exactly one that it gets.
TEST(every_copy_is_in_one) {
  Random random;
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<int> workers(random.Below(9) + 1), servers(random.Below(5) + 1);
    for (int& host : workers) host = static_cast<int>(random.Below(4));
    for (int& host : servers) host = static_cast<int>(random.Below(6));
    const Hosts hosts(workers, servers);
    for (int s = 0; s < static_cast<int>(servers.size()); ++s) {
      int copies = 0;
      for (int w = 0; w < static_cast<int>(workers.size()); ++w) {
        copies += hosts.StandsFor(w, s);
        CHECK_TRUE(hosts.StandsFor(hosts.Sender(w, s), s) >= 1);
        CHECK_TRUE(!hosts.Leads(w) || !hosts.Follows(w));
        if (hosts.Sender(w, s) != w)
          CHECK_TRUE(hosts.Leads(hosts.Sender(w, s)) && hosts.Follows(w));
      }
      CHECK_EQ(copies, static_cast<int>(workers.size()));
    }
  }
}

TEST(members_are_on_one_host_if_they_say_so) {
  std::vector<Member> members(1);
  members[0].role = Role::kScheduler;
  members[0].id = kSchedulerId;
  const auto add = [&](Role role, int rank, const std::string& host) {
    Member member;
    member.role = role;
    member.id = NodeId(role, rank);
    member.host = host;
    members.push_back(member);
  };
  add(Role::kWorker, 2, "b");  // in any order
  add(Role::kServer, 0, "b");
  add(Role::kWorker, 0, "a");
  add(Role::kWorker, 1, "a");
  const Hosts hosts = Hosts::Of(members);
  CHECK_TRUE(hosts.Leads(0) && hosts.Follows(1));
  CHECK_TRUE(hosts.Beside(2, 0));
  CHECK_EQ(hosts.Senders(0, 3), (std::vector<int>{0, 2}));
}
