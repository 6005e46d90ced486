// The C API's part for Prophet: its profile, and its algorithm for who wants to compare.
#include <cmath>
#include <string>
#include <vector>

#include "policy/prophet/prophet_blocks.h"
#include "process/c_api.h"
#include "process/c_api_status.h"
#include "process/node.h"

using mercury::PlannedGradient;
using mercury::Status;

extern "C" {

const char* mercury_prophet_profile(void) {
  return mercury::Text([] { return mercury::Node::Get().Profile(); }, "");
}

int mercury_prophet_plan(size_t count, const double* produced, const double* wire, double startup,
                         double* start) {
  return mercury::Guarded([&] {
    std::vector<PlannedGradient> gradients;
    for (size_t i = 0; i < count; ++i) {
      if (!(std::isfinite(produced[i]) && wire[i] >= 0 && startup >= 0)) {
        return Status::InvalidArgument("gradient " + std::to_string(i) +
                                       " has a time that is not a number, or below 0");
      }
      gradients.push_back({produced[i], wire[i]});
    }
    const std::vector<double> plan = mercury::PlanIteration(gradients, startup);
    for (size_t i = 0; i < count; ++i) start[i] = plan[i];
    return Status::Ok();
  });
}

}  // extern "C"
