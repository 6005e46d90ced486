// Links between a worker and a server that nothing comes over, though the connection stands:
// whoever waits learns between whom. Apart from other links' tests, since these wait for time to
// pass.
#include "link_job.h"

using namespace mercury;           // NOLINT: a test
using namespace mercury::testing;  // NOLINT: a test

TEST(two_that_have_never_reached_each_other) {
  LinkJob job(kShort, Role::kWorker, Role::kServer, TcpProxy::kStop);
  job.Ask(1, 100);
  job.CheckEnd(Code::kPeerLost, Names("nothing that worker 0 sent has arrived for 3 s"));
}

TEST(a_link_that_is_cut_under_a_large_request) {
  LinkJob job(kShort, Role::kWorker, Role::kServer, TcpProxy::kPass);
  job.Ask(1, 100);
  REQUIRE_TRUE(job.Answered(1));
  job.box.Set(TcpProxy::kStop);
  job.Ask(2, 40 << 20);
  job.CheckEnd(Code::kPeerLost, Names("nothing that worker 0 sent has arrived for 3 s"));
}

TEST(a_box_that_takes_answers_and_delivers_none) {
  LinkJob job(kShort, Role::kServer, Role::kWorker, TcpProxy::kPass);
  job.Ask(1, 100);
  REQUIRE_TRUE(job.Answered(1));
  job.box.Set(TcpProxy::kSwallow);
  job.Ask(2, 100000);
  job.CheckEnd(Code::kPeerLost, Names("nothing that server 0 sent has arrived for 3 s"));
}
