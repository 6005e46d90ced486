#include "worker/choose_way.h"

namespace mercury {

Choice ChooseWay(Operation::Kind kind, const Tensor& tensor, bool packets) {
  switch (kind) {
    case Operation::Kind::kSum:
      // Packets are summed once all workers have sent them, and as they are.
      if (packets && !tensor.traits.asynchronous && tensor.compression == Compression::kNone) {
        return {Way::kPackets, kind};
      }
      return {Way::kMessages, kind};
    case Operation::Kind::kPull:
    case Operation::Kind::kAgain:
      // Where the last sum is, there it is to be had.
      if (tensor.last_sum == Way::kPackets) return {Way::kPackets, Operation::Kind::kAgain};
      return {Way::kMessages, Operation::Kind::kPull};
    case Operation::Kind::kPush:
    case Operation::Kind::kFirstValue:
    case Operation::Kind::kRows:
    case Operation::Kind::kCommand:
      break;
  }
  return {Way::kMessages, kind};
}

}  // namespace mercury
