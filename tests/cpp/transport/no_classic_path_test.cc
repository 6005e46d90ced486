// This test is linked without messages/, as all are but those of messages/ itself.
#include "harness.h"
#include "transport/classic_path.h"

using namespace mercury;
namespace {

TEST(a_build_without_messages_says_so) {
  std::unique_ptr<ClassicPath> path;
  const Status status = MakeClassicPath(&path);
  CHECK_EQ(status.code(), Code::kInvalidArgument);
  CHECK_TRUE(path == nullptr);
  CHECK_EQ(status.text(),
           "DMLC_PS_VAN_TYPE is zmq, but this build has no zmq mode: set it to mercury");
}

}  // namespace
