// What the scheduler tells the nodes of a simulated job, and they hear one by one.
//
// Thread-safety: none.
#pragma once

#include <memory>
#include <set>

#include "sim/processes.h"

namespace mercury::testing {

class NodeHearings {
 public:
  using Node = std::shared_ptr<Process>;
  virtual ~NodeHearings() = default;

  virtual void HearHeartbeat(const Node& node) = 0;
  // Of a scheduler that goes on where others were lost, so many by now.
  virtual void HearBack(const Node& node, uint64_t returns) = 0;
  virtual void HearRelease(const Node& node, uint64_t releases) = 0;
  virtual void HearDeparture(const Node& node, int departed) = 0;
  // Of which generation of the roster it is.
  virtual void HearLoss(const Node& node, int lost, const Status& why, uint64_t generation) = 0;
  virtual void HearAdmission(const Node& node, const Member& newcomer, Admission admission,
                             uint64_t generation) = 0;
  // Of a newcomer: who it is, and who is in.
  struct Table {
    Member itself;
    std::set<int> workers;
    std::map<int, uint8_t> entries;  // in which workers' places how many have been before
    std::map<int, Member> servers;
    uint64_t generation = 1;
  };
  virtual void HearTable(const Node& node, const Table& table) = 0;
  // ok: the job has ended well.
  virtual void HearEnd(const Node& node, const Status& how) = 0;
};

}  // namespace mercury::testing
