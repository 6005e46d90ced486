// Which transport carries an operation: the one place that decides it.
//
// Thread-safety: a pure function.
#pragma once

#include "transport/operation.h"

namespace mercury {

struct Choice {
  Way way = Way::kMessages;
  Operation::Kind kind = Operation::Kind::kSum;  // as that transport calls it
};

// `packets`: this job has that transport. Every job has messages.
Choice ChooseWay(Operation::Kind kind, const Tensor& tensor, bool packets);

}  // namespace mercury
