// From settings to what each room needs: the one place where the two meet.
//
// Thread-safety: pure function.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "control/zmq_van.h"
#include "packets/mercury_options.h"
#include "process/setting_texts.h"
#include "trace/trace_log.h"
#include "transport/classic_path.h"

namespace mercury {

struct NodeOptions {
  ZmqVanOptions van;
  bool packets = false;   // the Mercury van
  int least_workers = 0;  // with which the job goes on; 0: only with all of them
  MercuryOptions mercury;
  ClassicOptions classic;
  TraceOptions trace;
};

Status MakeNodeOptions(const Settings& settings, NodeOptions* options);

}  // namespace mercury
