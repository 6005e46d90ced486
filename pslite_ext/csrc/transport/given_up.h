// Operations that have failed while the job goes on, and are over once nobody holds their memory:
// a transport keeps them in mind, for if the job fails they are over at once.
//
// Thread-safety: none. Ownership: none, it only knows them. Invariant: it does not grow with what
// is over.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "base/status.h"
#include "transport/operation.h"

namespace mercury {

class GivenUp {
 public:
  void Add(const std::shared_ptr<Operation>& op, const Status& status) {
    op->FailWhenDropped(status);
    const auto gone = [](const std::weak_ptr<Operation>& one) { return one.expired(); };
    operations_.erase(std::remove_if(operations_.begin(), operations_.end(), gone),
                      operations_.end());
    operations_.push_back(op);
  }
  // The job has failed.
  void Finish(const Status& status) const {
    for (const std::weak_ptr<Operation>& one : operations_) {
      if (const std::shared_ptr<Operation> op = one.lock()) op->Finish(status);
    }
  }

 private:
  std::vector<std::weak_ptr<Operation>> operations_;
};

}  // namespace mercury
