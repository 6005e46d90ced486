#include "policy/prophet/prophet_notes.h"

namespace mercury {

void ProphetNotes::Tell(const ProphetFigures& profile, const BlockFigures& blocks) {
  const auto iteration = static_cast<int64_t>(profile.iterations) - 1;
  std::string note = "prophet " + std::to_string(iteration);
  const auto add = [&](const char* name, auto value) {
    note += std::string(" ") + name + " " + std::to_string(value);
  };
  add("blocks", blocks.blocks - blocks_.blocks);
  add("bytes", blocks.bytes - blocks_.bytes);
  add("held_us", blocks.held_us - blocks_.held_us);
  add("rate", static_cast<int64_t>(blocks.bytes_per_second));
  if (profile.known) add("production_error_us", profile.production_error_us);
  if (blocks.blocks != 0) add("transfer_error_us", blocks.transfer_error_us);
  if (profile.waits != profile_.waits) {
    add("wait_first_us", profile.wait_first_us - profile_.wait_first_us);
    add("wait_later_us", profile.wait_later_us - profile_.wait_later_us);
  }
  profile_ = profile;
  blocks_ = blocks;
  write_(iteration, std::move(note));
}

}  // namespace mercury
