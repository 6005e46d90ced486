#include "packets/lane_endpoint.h"

#include <memory>
#include <vector>

#include "harness.h"

using namespace mercury;           // NOLINT: a test
using namespace mercury::testing;  // NOLINT: a test

namespace {

// Notes which link it is asked about.
class Asked : public Endpoint {
 public:
  Status OnHeader(int link, const Header& /*h*/, int64_t /*now*/, char** /*target*/) override {
    return Note(link);
  }
  Status OnPacket(int link, const Header& /*h*/, int64_t /*now*/) override { return Note(link); }
  bool Next(int link, int64_t /*now*/, OutPacket* /*out*/) override { return Note(link).ok(); }
  void OnPath(int link, int64_t /*us*/, double /*rate*/) override { (void)Note(link); }
  void OnFull(int link, int64_t /*now*/) override { (void)Note(link); }
  int64_t WakeAt(int link) const override { return 1000 + link; }
  std::vector<int> links;

 private:
  Status Note(int link) {
    links.push_back(link);
    return Status::Ok();
  }
};

}  // namespace

TEST(each_lane_and_peer_is_a_link_of_its_own) {
  std::vector<bool> seen(12);
  for (int peer = 0; peer < 4; ++peer) {
    for (int lane = 0; lane < 3; ++lane) {
      const int link = LinkOf(peer, lane, 3);
      REQUIRE_TRUE(link >= 0 && link < 12 && !seen[static_cast<size_t>(link)]);
      seen[static_cast<size_t>(link)] = true;
      CHECK_EQ(link / 3, peer);
      CHECK_EQ(link % 3, lane);
      const auto shared = std::make_shared<Asked>();
      LaneEndpoint view(shared, lane, 3);
      OutPacket out;
      char* target = nullptr;
      CHECK_OK(view.OnHeader(peer, out.header, 0, &target));
      CHECK_OK(view.OnPacket(peer, out.header, 0));
      CHECK_TRUE(view.Next(peer, 0, &out));
      view.OnPath(peer, 1, 1);
      view.OnFull(peer, 0);
      CHECK_EQ(view.WakeAt(peer), 1000 + link);
      CHECK_EQ(shared->links, std::vector<int>(5, link));
    }
  }
}
