// How many links are counted beside a lane's own, for each way of placing a job.
#include "packets/links_beside.h"

#include <string>
#include <utility>
#include <vector>

#include "harness.h"

using namespace mercury;
namespace {

std::vector<Member> Job(const std::vector<std::string>& workers,
                        const std::vector<std::string>& servers) {
  std::vector<Member> members(1);
  members[0].role = Role::kScheduler;
  members[0].id = kSchedulerId;
  members[0].host = workers[0];
  for (const auto& [role, hosts] :
       {std::pair(Role::kWorker, workers), std::pair(Role::kServer, servers)}) {
    for (size_t i = 0; i < hosts.size(); ++i) {
      Member member;
      member.role = role;
      member.id = NodeId(role, static_cast<int>(i));
      member.host = hosts[i];
      members.push_back(std::move(member));
    }
  }
  return members;
}

int Beside(const std::vector<Member>& job, Role role, int rank, int lanes = 1) {
  return LinksBeside(job, NodeId(role, rank), lanes);
}

}  // namespace

TEST(alone_on_its_host_a_node_has_none_beside_it) {
  const auto job = Job({"a", "b"}, {"c", "d", "e"});
  CHECK_EQ(Beside(job, Role::kWorker, 0), 0);
  CHECK_EQ(Beside(job, Role::kServer, 2), 0);
  CHECK_EQ(Beside(job, Role::kWorker, 0, 3), 6);  // those of its own other lanes
}

TEST(a_server_beside_a_worker) {
  const auto job = Job({"a", "b", "c", "d"}, {"a", "b", "c", "d"});
  CHECK_EQ(Beside(job, Role::kWorker, 1), 3);
  CHECK_EQ(Beside(job, Role::kServer, 1), 3);
  const auto fewer = Job({"a", "b", "c", "d"}, {"a", "b"});
  CHECK_EQ(Beside(fewer, Role::kWorker, 0), 3);  // the server's: three workers elsewhere
  CHECK_EQ(Beside(fewer, Role::kServer, 0), 1);  // the worker's: one server elsewhere
  CHECK_EQ(Beside(fewer, Role::kWorker, 3), 0);
}

TEST(several_workers_on_a_host) {
  const auto job = Job({"a", "a", "a", "b"}, {"c", "d"});
  CHECK_EQ(Beside(job, Role::kWorker, 0), 4);
  CHECK_EQ(Beside(job, Role::kWorker, 3), 0);
  const auto loopback = Job({"a", "a"}, {"a", "a"});
  CHECK_EQ(Beside(loopback, Role::kWorker, 0), 0);  // nothing uses the network
}

TEST(who_is_not_a_member_has_none) { CHECK_EQ(LinksBeside({}, 9, 1), 0); }
