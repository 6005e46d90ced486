// Settings as a registration and its answer carry them.
#include <string>

#include "control/shared_settings.h"
#include "fuzz.h"

using namespace mercury;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  SharedSettings settings;
  const Status status = FromText(std::string(reinterpret_cast<const char*>(data), size), &settings);
  FUZZ_REQUIRE(status.ok() == status.text().empty());
  if (!status.ok()) {
    FUZZ_REQUIRE(status.code() == Code::kCorrupt && settings.empty());
    return 0;
  }
  FUZZ_REQUIRE(settings.size() <= kSharedSettingsMax);
  SharedSettings again;
  FUZZ_REQUIRE(FromText(ToText(settings), &again).ok());
  FUZZ_REQUIRE(ToText(again) == ToText(settings));
  return 0;
}
