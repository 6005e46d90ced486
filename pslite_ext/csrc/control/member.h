// One node of a job, as its scheduler knows it: who it is, where it listens, and how it came.
//
// Thread-safety: a plain value.
#pragma once

#include <cstdint>
#include <string>

#include "base/node_name.h"
#include "control/shared_settings.h"

namespace mercury {

constexpr int kJoins = -2;

struct Member {
  Role role = Role::kWorker;
  std::string host;
  int port = 0;
  int rank_hint = -1;  // members with a hint are ranked first, by it; kJoins: it comes later
  uint64_t life = 0;
  int id = -1;
  int data_port = 0;          // where others' packets come; 0: nowhere
  bool asynchronous = false;  // a worker whose first store is
  uint8_t entry = 0;          // how many have had its place before, modulo 256
  SharedSettings told;
  int guest = 0;            // while gathering: the scheduler's own number for it, below kNoNode
  int64_t since_ms = 0;     // when it registered
  int64_t waited_ms = 0;    // for the job to begin, when it registered
  bool reached = false;     // while gathering: the scheduler has connected to it
  int64_t broken_ms = -1;   // while gathering: since when its connection is broken; -1: it is not
  bool named_lost = false;  // the log says so

  bool here() const { return reached && broken_ms < 0; }
};

}  // namespace mercury
