// The C API's beginning: from what Python was told to a node that joins its job.
#include <set>
#include <string>

#include "process/c_api.h"
#include "process/c_api_status.h"
#include "process/node.h"

using mercury::Status;

extern "C" {

const char* mercury_last_error(void) { return mercury::LastError().c_str(); }

int mercury_start(const char* const* names, const char* const* values, size_t count) {
  return mercury::Guarded([&] {
    mercury::Settings settings;
    std::set<std::string> told;
    for (size_t i = 0; i < count; ++i) {
      const Status status = mercury::SetSetting(names[i], values[i], &settings);
      if (!status.ok()) return status;
      told.insert(names[i]);
    }
    return mercury::Node::Get().Start(settings, told);
  });
}

const char* mercury_policies(void) {
  static const std::string names = mercury::PolicyNames();
  return names.c_str();
}

}  // extern "C"
