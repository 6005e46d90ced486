// What a scheduler writes down: whole or not at all, and nothing else is believed.
#include "control/job_record.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "harness.h"
#include "members.h"

using namespace mercury;           // NOLINT: a test
using namespace mercury::testing;  // NOLINT: a test

namespace {

JobRecord Sample() {
  JobRecord record;
  record.address = {"10.0.0.1", 9091};
  record.job = RandomIdentity();
  record.life = ~uint64_t{0};
  record.returns = 2;
  record.generation = 7;
  record.releases = 3;
  record.settings = {{"MERCURY_MIN_WORKERS", "1", true}, {"MERCURY_SERVER_SHARES", "", false}};
  const Presence presences[] = {Presence::kIn, Presence::kLeft, Presence::kLost, Presence::kNew};
  for (int rank = 0; rank < 4; ++rank) {
    Member m = M(Role::kWorker, 4000 + rank, rank == 3 ? kJoins : rank);
    m.id = NodeId(Role::kWorker, rank);
    m.data_port = 5000 + rank;
    m.entry = static_cast<uint8_t>(rank == 3 ? 255 : 0);
    record.placed.push_back({m, presences[rank], rank == 3});
  }
  Member server = M(Role::kServer, 4010, 0);
  server.host = "fe80::1";
  server.id = NodeId(Role::kServer, 0);
  record.placed.push_back({server, Presence::kIn, false});
  return record;
}

struct Folder {
  Folder() { CHECK_TRUE(mkdtemp(path.data()) != nullptr); }
  ~Folder() { rmdir(path.c_str()); }
  std::string path = "/tmp/job_record_XXXXXX";
};

}  // namespace

TEST(what_is_written_down_is_read) {
  const JobRecord record = Sample();
  JobRecord read;
  REQUIRE_OK(FromText(ToText(record), &read));
  CHECK_EQ(ToText(read), ToText(record));
  CHECK_TRUE(read.job == record.job);
  CHECK_EQ(read.life, record.life);
  CHECK_TRUE(read.address.host == "10.0.0.1" && read.address.port == 9091);
  CHECK_TRUE(read.settings[0].told && !read.settings[1].told);
  REQUIRE_EQ(read.placed.size(), size_t{5});
  CHECK_TRUE(read.placed[3].late && read.placed[3].presence == Presence::kNew);
  CHECK_EQ(int{read.placed[3].member.entry}, 255);
  CHECK_EQ(read.placed[3].member.rank_hint, kJoins);
  CHECK_TRUE(read.placed[4].member.role == Role::kServer);
  CHECK_EQ(read.placed[4].member.host, "fe80::1");
}

TEST(what_is_cut_short_is_not_believed) {
  const std::string text = ToText(Sample());
  for (size_t bytes = 0; bytes + 1 < text.size(); ++bytes) {
    JobRecord read;
    CHECK_STATUS(Code::kCorrupt, FromText(text.substr(0, bytes), &read));
    CHECK_TRUE(read.placed.empty());
  }
}

TEST(lines_that_make_no_sense_are_not_believed) {
  const std::string text = ToText(Sample());
  const auto with = [&text](const std::string& line) {
    return text.substr(0, text.size() - 4) + line + "\nend\n";
  };
  JobRecord read;
  REQUIRE_OK(FromText(with("setting MERCURY_WIRE=bf16"), &read));
  for (const char* line :
       {"", "life", "life x", "life 1", "releases -", "job 12", "job zz", "who knows", "setting",
        "setting lower=1", "member 11 in h 1 1 0 1 0 0 0 1", "member 17 gone h 1 1 0 1 0 0 0 1",
        "member 17 in h 0 1 0 1 0 0 0 1", "member 17 in h 70000 1 0 1 0 0 0 1",
        "member 17 in h 1 1 0 1 0 256 0 1", "member 17 in h 1 1 0 1 0 0 1",
        "member 1 in h 1 1 0 1 0 0 0 1", "member 17 in h 1 1 0 1 0 0 0 0 1",
        "mercury scheduler 2"}) {
    const Status status = FromText(with(line), &read);
    CHECK_STATUS(Code::kCorrupt, status);
  }
  CHECK_STATUS(Code::kCorrupt, FromText("mercury scheduler 2\nend\n", &read));
  CHECK_STATUS(Code::kCorrupt, FromText("mercury scheduler 2\nend\n", &read));
  CHECK_STATUS(Code::kCorrupt, FromText(text + "end\n", &read));
}

TEST(random_bytes_are_no_record) {
  Random random;
  const std::string text = ToText(Sample());
  for (int i = 0; i < 5000; ++i) {
    std::string bad = text;
    for (int64_t changes = random.Between(1, 4); changes > 0; --changes) {
      bad[random.Below(bad.size())] = static_cast<char>(random.Below(256));
    }
    JobRecord read;
    if (FromText(bad, &read).ok()) CHECK_OK(FromText(ToText(read), &read));
  }
}

TEST(a_file_is_whole_or_gone) {
  const Folder folder;
  const std::string path = folder.path + "/journal";
  JobRecord read;
  bool there = true;
  REQUIRE_OK(ReadRecord(path, &read, &there));
  CHECK_TRUE(!there);
  REQUIRE_OK(WriteRecord(path, Sample()));
  REQUIRE_OK(ReadRecord(path, &read, &there));
  CHECK_TRUE(there && read.placed.size() == 5);
  CHECK_STATUS(Code::kExhausted, WriteRecord(folder.path + "/none/journal", read));
  std::ofstream(path) << "something else";
  const Status status = ReadRecord(path, &read, &there);
  CHECK_STATUS(Code::kInvalidArgument, status);
  CHECK_TRUE(status.text().find("MERCURY_JOURNAL=" + path) != std::string::npos);
  CHECK_EQ(unlink(path.c_str()), 0);
}
