#include "fabric/live/draft.h"

#include <algorithm>

#include "harness.h"

using namespace mercury::fabric;

namespace {

constexpr int64_t kBytes = 12'500'000;  // 1 s at 100 Mbit/s

// Hosts: the server's, the replica's, workers 0 to 2's, each with 100 Mbit/s.
Matter Three() {
  Matter matter;
  matter.hosts.workers = {2, 3, 4};
  for (int host = 0; host < 5; ++host) {
    matter.links.push_back({RateProfile({{0, 1e8}}), RateProfile({{0, 1e8}})});
  }
  matter.now_s = 10;
  matter.delay_bound = 3;
  matter.version = 7;
  matter.first_place = 20;
  for (int worker = 0; worker < 3; ++worker) {
    matter.updates.push_back({{worker, 1}, 7, kBytes, 1, 0});
  }
  return matter;
}

}  // namespace

TEST(each_update_has_a_place_or_a_fate) {
  Matter matter = Three();
  matter.updates[0].version = 5;  // it has to be first
  matter.updates[1].version = 4;  // too old
  const Draft draft = MakeDraft(matter);
  REQUIRE_EQ(draft.dropped.size(), 1);
  CHECK_TRUE(draft.dropped[0].first == (UpdateId{1, 1}));
  CHECK_EQ(draft.dropped[0].second, Fate::kTooOld);
  REQUIRE_EQ(draft.order.size(), 2);
  CHECK_EQ(draft.order[0].place, 20);
  CHECK_TRUE(draft.order[0].id == (UpdateId{0, 1}));
  CHECK_EQ(draft.order[1].place, 21);
  CHECK_EQ(draft.last_commit, 21);
  CHECK_EQ(draft.end_s, 12);
  REQUIRE_EQ(draft.hops.size(), 2);
  CHECK_EQ(draft.hops[1].start_s, 11);
}

TEST(what_the_replica_lacks_goes_there_first) {
  Matter matter = Three();
  matter.hosts.replica = 1;
  matter.updates.resize(1);
  matter.pending = {{15, {{1, 4}, 3, kBytes, 1, 0}}};
  const Draft draft = MakeDraft(matter);  // the two may not differ
  CHECK_EQ(draft.frozen, 2);
  REQUIRE_EQ(draft.hops.size(), 3);
  CHECK_EQ(draft.hops[0].to, kServerNode);
  CHECK_EQ(draft.hops[0].start_s, 12);  // held until the replica has both
  CHECK_TRUE(draft.hops[1].places == std::vector<int64_t>{15});
  CHECK_TRUE(draft.hops[1].update == (UpdateId{1, 4}));
  CHECK_EQ(draft.hops[2].to, kReplicaNode);
  CHECK_EQ(draft.hops[2].end_s, 12);
  CHECK_EQ(draft.end_s, 13);
}

TEST(one_server_s_chains_go_through_its_replica) {
  Matter matter = Three();
  matter.hosts.replica = 1;
  matter.by_packets = true;
  matter.aggregators = {0};
  const auto relayed = [&matter] {
    const Draft draft = MakeDraft(matter);
    return std::count_if(draft.hops.begin(), draft.hops.end(), IsRelayed);
  };
  CHECK_TRUE(relayed() > 0);
  matter.hosts.servers = 3;
  CHECK_EQ(relayed(), 0);
  matter.hosts.servers = 1;
  matter.aggregators.clear();  // nobody is there to sum anything
  matter.updates.resize(1);
  CHECK_EQ(relayed(), 1);
  matter.by_packets = false;
  CHECK_EQ(relayed(), 0);
}

TEST(of_nothing_that_is_fresh_enough_nothing_is_sent) {
  Matter matter = Three();
  matter.version = 12;
  const Draft draft = MakeDraft(matter);
  CHECK_EQ(draft.dropped.size(), 3);
  CHECK_TRUE(draft.order.empty());
  CHECK_TRUE(draft.hops.empty());
}
