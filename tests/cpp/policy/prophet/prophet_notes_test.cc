#include "policy/prophet/prophet_notes.h"

#include <string>
#include <vector>

#include "harness.h"

using namespace mercury;
namespace {

TEST(each_iteration_is_told_by_what_it_added) {
  std::vector<std::string> notes;
  std::vector<int64_t> iterations;
  ProphetNotes prophet([&](int64_t iteration, std::string note) {
    iterations.push_back(iteration);
    notes.push_back(std::move(note));
  });
  ProphetFigures profile;
  BlockFigures blocks;
  CHECK_FALSE(prophet.Behind(profile));

  profile.iterations = 1;
  REQUIRE_TRUE(prophet.Behind(profile));
  prophet.Tell(profile, blocks);
  CHECK_FALSE(prophet.Behind(profile));

  profile.iterations = 2;
  profile.known = true;
  profile.production_error_us = 5;
  profile.waits = 1;
  profile.wait_first_us = 700;
  profile.wait_later_us = 30;
  blocks = {4, 4000, 90, 6, 125000.5};
  REQUIRE_TRUE(prophet.Behind(profile));
  prophet.Tell(profile, blocks);

  profile.iterations = 3;
  profile.waits = 2;
  profile.wait_first_us += 800;
  blocks.blocks += 3;
  blocks.bytes += 2000;
  prophet.Tell(profile, blocks);

  CHECK_TRUE(iterations == std::vector<int64_t>({0, 1, 2}));
  CHECK_EQ(notes[0], "prophet 0 blocks 0 bytes 0 held_us 0 rate 0");
  CHECK_EQ(notes[1],
           "prophet 1 blocks 4 bytes 4000 held_us 90 rate 125000 production_error_us 5 "
           "transfer_error_us 6 wait_first_us 700 wait_later_us 30");
  CHECK_EQ(notes[2],
           "prophet 2 blocks 3 bytes 2000 held_us 0 rate 125000 production_error_us 5 "
           "transfer_error_us 6 wait_first_us 800 wait_later_us 0");
}

TEST(nobody_reads_it) {
  const ProphetNotes prophet(nullptr);
  ProphetFigures profile;
  profile.iterations = 1;
  CHECK_FALSE(prophet.Behind(profile));
}

}  // namespace
