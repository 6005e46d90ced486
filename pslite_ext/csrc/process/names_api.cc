// What can be asked for by name: a part of the C API that needs no job.
#include "policy/policy.h"
#include "process/c_api.h"
#include "sums/codec.h"

const char* mercury_policies(void) {
  static const std::string names = mercury::PolicyNames();
  return names.c_str();
}

const char* mercury_compressions(void) {
  static const std::string names = mercury::CompressionNames();
  return names.c_str();
}

const char* mercury_wires(void) {
  static const std::string names = mercury::WireNames();
  return names.c_str();
}

const char* mercury_sum_instruction_set(void) { return mercury::SumInstructionSet(); }
