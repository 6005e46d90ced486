// The C API's trace: what can be said to it while the job runs.
#include "messages/classic_wire.h"
#include "process/c_api.h"
#include "process/c_api_status.h"
#include "trace/trace_log.h"

using mercury::Status;

extern "C" {

int mercury_trace_switch(int on) {
  return mercury::Guarded([&]() -> Status {
    mercury::TraceLog* log = mercury::TraceLog::Started();
    if (log == nullptr) {
      return Status::InvalidArgument(
          "this job keeps no trace to switch on or off: set MERCURY_TRACE_DIR for all its nodes");
    }
    log->Switch(on != 0);
    return Status::Ok();
  });
}

int mercury_trace_switch_head(void) { return mercury::kTraceSwitchHead; }

}  // extern "C"
