#include "trace/trace_text.h"

#include "trace/trace_golden.h"

using namespace mercury;
namespace {

TEST(headers_are_the_golden_files_own) {
  for (const char* name : {"zmq/trace_worker_0", "zmq/trace_server_0", "mercury/trace_worker_1",
                           "mercury/trace_server_0"}) {
    const testing::GoldenTrace golden = testing::ReadGolden(name);
    CHECK_EQ(TraceHeaderText(golden.identity), golden.header);
  }
}

TEST(names_of_files) {
  TraceIdentity identity;
  identity.rank = 3;
  CHECK_EQ(TraceFileName(identity, false), "trace_worker_3");
  CHECK_EQ(TraceFileName(identity, true), "trace_sch_worker_3");
  identity.role = TraceRole::kScheduler;
  CHECK_EQ(TraceFileName(identity, true), "trace_sch_scheduler_3");
}

TEST(notes_are_the_golden_files_own) {
  const testing::GoldenTrace golden = testing::ReadGolden("zmq/trace_worker_0");
  CHECK_EQ(golden.notes.at(2), TraceKeyNote(2, 100000, -2, "conv1_weight"));
  CHECK_EQ(golden.notes.at(8), TraceClockNote(1700000000000000, -100, 200));
  CHECK_EQ(golden.notes.back(), TraceEndNote(static_cast<int64_t>(golden.records.size())));
  CHECK_EQ(TraceLostNote(12), "lost 12");
  CHECK_EQ(TraceFromNote(10), "from step 10");
  CHECK_EQ(TraceToNote(50), "to step 50");
}

TEST(a_note_is_one_line_of_plain_text) {
  std::string text;
  AppendTraceNote("key 1 name two\nlines \xc3\xa9", &text);
  CHECK_EQ(text, "# key 1 name two?lines ??\n");
}

}  // namespace
