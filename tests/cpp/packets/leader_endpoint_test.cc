#include "packets/leader_endpoint.h"

#include <memory>
#include <utility>

#include "harness.h"

using namespace mercury;           // NOLINT: a test
using namespace mercury::testing;  // NOLINT: a test

namespace {

// Notes whom it is asked about.
class Noted : public Endpoint {
 public:
  explicit Noted(int* last) : last_(last) {}
  Status OnHeader(int peer, const Header& /*h*/, int64_t /*now*/, char** /*target*/) override {
    return Note(peer);
  }
  Status OnPacket(int peer, const Header& /*h*/, int64_t /*now*/) override { return Note(peer); }
  bool Next(int peer, int64_t /*now*/, OutPacket* /*out*/) override { return Note(peer).ok(); }
  void OnPath(int peer, int64_t /*us*/, double /*rate*/) override { (void)Note(peer); }
  void OnFull(int peer, int64_t /*now*/) override { (void)Note(peer); }
  int64_t WakeAt(int peer) const override {
    *last_ = peer;
    return 7;
  }

 private:
  Status Note(int peer) {
    *last_ = peer;
    return Status::Ok();
  }
  int* const last_;
};

}  // namespace

TEST(servers_come_first_and_then_the_host_s_workers) {
  int asked[2];
  LeaderEndpoint both(std::make_unique<Noted>(&asked[0]), std::make_unique<Noted>(&asked[1]), 3);
  for (int peer = 0; peer < 6; ++peer) {
    const int whose = peer < 3 ? 0 : 1;
    OutPacket out;
    char* target = nullptr;
    for (int call = 0; call < 6; ++call) {
      asked[0] = asked[1] = -1;
      if (call == 0) CHECK_OK(both.OnHeader(peer, out.header, 0, &target));
      if (call == 1) CHECK_OK(both.OnPacket(peer, out.header, 0));
      if (call == 2) CHECK_TRUE(both.Next(peer, 0, &out));
      if (call == 3) both.OnPath(peer, 1, 1);
      if (call == 4) both.OnFull(peer, 0);
      if (call == 5) CHECK_EQ(both.WakeAt(peer), 7);
      CHECK_EQ(asked[whose], peer - 3 * whose);
      CHECK_EQ(asked[1 - whose], -1);
    }
  }
}
