// Whole Mercury vans in one process: what their observers hear, and when.
#include "packets/mercury_van.h"

#include <atomic>
#include <memory>
#include <vector>

#include "control/van_job.h"

using namespace mercury;           // NOLINT: a test
using namespace mercury::testing;  // NOLINT: a test

namespace {

class Van : public MercuryVan {
 public:
  Van(const ZmqVanOptions& van, mercury::VanObserver* observer, const MercuryOptions& options)
      : MercuryVan(van, options, observer) {}
};

}  // namespace

TEST(whoever_hears_of_an_operation_s_failure_can_ask_whose_it_is) {
  constexpr size_t kElements = 5;
  VanJob job(2, 1);
  MercuryOptions options;
  options.workers = 2;
  options.shares = ServerShares(1);
  options.token = "secret";
  job.AddSpecial<Van>(Role::kServer, options);
  mercury::testing::Node& waits = job.AddSpecial<Van>(Role::kWorker, options);
  mercury::testing::Node& ends = job.AddSpecial<Van>(Role::kWorker, options);
  std::vector<float> values(kElements), sum(kElements);
  TensorTraits traits;
  traits.key = 1;
  traits.index = 1;
  traits.shape = {kElements};
  std::atomic<bool> done{false}, knew{false};
  auto op = std::make_shared<Operation>();
  op->tensor = std::make_shared<Tensor>(traits);
  op->src = reinterpret_cast<const char*>(values.data());
  op->dst = reinterpret_cast<char*>(sum.data());
  op->done = [&](const Status& /*status*/) { done = true; };
  waits.observer.on_failed = [&] {
    // The lanes answer behind all that they have been told by now.
    CHECK_TRUE(dynamic_cast<Van&>(*waits.van).worker()->Figures() != "{}");
    knew = !done;
  };
  for (auto& node : job.nodes) {
    REQUIRE_TRUE(node->observer.Wait([&] { return node->observer.id != 0; }));
  }
  dynamic_cast<Van&>(*waits.van).worker()->Submit(op);
  ends.van->Leave(Status::PeerLost("ValueError: no"));
  REQUIRE_TRUE(waits.observer.Wait([&] { return waits.observer.ends != 0; }));
  waits.van->Stop();
  CHECK_TRUE(knew.load());
  CHECK_TRUE(done.load());
}
