// Plans of Prophet and MLfabric: a part of the C API that needs no job.
#include <cmath>
#include <string>
#include <vector>

#include "fabric/batch_text.h"
#include "fabric/explanation.h"
#include "fabric/plan_text.h"
#include "fabric/planner.h"
#include "policy/prophet/prophet_blocks.h"
#include "process/c_api.h"
#include "process/returned.h"

using mercury::Guarded;
using mercury::Status;
namespace fabric = mercury::fabric;

int mercury_prophet_plan(size_t count, const double* produced, const double* wire, double startup,
                         double* start) {
  return Guarded([&] {
    std::vector<mercury::PlannedGradient> gradients;
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

int mercury_fabric_plan(const char* batch, size_t bytes, int search, int in_words,
                        const char** plan) {
  thread_local std::string kept;
  return Guarded([&] {
    fabric::Batch read;
    Status status = fabric::ReadBatch({batch, bytes}, &read);
    if (!status.ok()) return status;
    const fabric::Plan made = fabric::PlanBatch(read, {search != 0});
    kept = in_words != 0 ? fabric::Explain(read, made) : fabric::PlanText(read, made);
    *plan = kept.c_str();
    return Status::Ok();
  });
}

int mercury_fabric_tree(const char* batch, size_t bytes, const char** tree) {
  thread_local std::string kept;
  return Guarded([&] {
    fabric::Batch read;
    Status status = fabric::ReadBatch({batch, bytes}, &read);
    if (!status.ok()) return status;
    if (read.servers.size() != 1) {
      return Status::InvalidArgument("servers: a tree begins at one server; here are " +
                                     std::to_string(read.servers.size()));
    }
    kept = fabric::ExplainTree(read);
    *tree = kept.c_str();
    return Status::Ok();
  });
}
