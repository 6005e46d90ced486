// Whatever a batch's text says, it is refused with one line or planned: no numbers, however odd,
// make the planner hang or leave its arrays.
#include <fstream>
#include <sstream>

#include "fabric/batch_text.h"
#include "fabric/explanation.h"
#include "fabric/json.h"
#include "fabric/plan_text.h"
#include "fabric/planner.h"
#include "harness.h"

using namespace mercury::fabric;
using namespace mercury::testing;

TEST(mutated_batches_are_refused_or_planned) {
  std::ifstream file(MERCURY_GOLDEN_DIR "/fabric/example_batch.json");
  std::stringstream text;
  text << file.rdbuf();
  const std::string example = text.str();
  const char* const kNumbers[] = {
      "0",    "1",     "7",    "-1",  "0.5",   "1e-300", "1e300",
      "2e-9", "1e308", "1e18", "0.1", "3e-17", "1e9",    "4503599627370497"};
  Random random;
  int planned = 0;
  for (int round = 0; round < 1000; ++round) {
    std::string mutated = example;
    for (uint64_t i = 1 + random.Below(4); i > 0; --i) {
      size_t at = random.Below(mutated.size());
      if (random.OneIn(10)) {
        mutated[at] = static_cast<char>(random());
        continue;
      }
      // The next number becomes another one.
      at = mutated.find_first_of("0123456789", mutated.find_first_of(" [:,", at));
      if (at == std::string::npos || std::isalpha(static_cast<uint8_t>(mutated[at - 1])) != 0) {
        continue;
      }
      const size_t end = mutated.find_first_not_of("0123456789e.", at);
      mutated.replace(at, end - at, kNumbers[random.Below(std::size(kNumbers))]);
    }
    Batch batch;
    const mercury::Status status = ReadBatch(mutated, &batch);
    CHECK_EQ(status.text().find('\n'), std::string::npos);
    if (!status.ok()) continue;
    ++planned;
    for (const bool search : {false, true}) {
      if (search && !random.OneIn(10)) continue;
      const Plan plan = PlanBatch(batch, {search});
      Json read;
      CHECK_OK(ReadJson(PlanText(batch, plan), &read));
      CHECK_FALSE(Explain(batch, plan).empty());
    }
  }
  CHECK_TRUE(planned > 50);
}
