// What a build without messages/ has instead. It is linked where nothing else is: messages/ has a
// function of the same name.
#include "transport/classic_path.h"

namespace mercury {

Status MakeClassicPath(std::unique_ptr<ClassicPath>* /*path*/) {
  return Status::InvalidArgument(
      "DMLC_PS_VAN_TYPE is zmq, but this build has no zmq mode: set it to mercury");
}

}  // namespace mercury
