#include "transport/classic_path.h"

#include "control/zmq_van.h"
#include "messages/classic_server.h"
#include "messages/classic_worker.h"
#include "messages/message_trace.h"

namespace mercury {
namespace {

class Halves : public ClassicPath {
 public:
  void Prepare(ZmqVanOptions* van) override { van->tap = TraceMessage; }
  void Begin(Role role, const ClassicOptions& options) override {
    if (role == Role::kWorker) worker_ = std::make_unique<ClassicWorker>(options);
    if (role == Role::kServer) server_ = std::make_unique<ClassicServer>(options);
  }
  Transport* worker() override { return worker_.get(); }
  void Departed(int worker) override {
    if (server_) server_->Departed(worker);
  }

 private:
  std::unique_ptr<ClassicWorker> worker_;
  std::unique_ptr<ClassicServer> server_;
};

}  // namespace

Status MakeClassicPath(std::unique_ptr<ClassicPath>* path) {
  *path = std::make_unique<Halves>();
  return Status::Ok();
}

}  // namespace mercury
