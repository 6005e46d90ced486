// What a scheduler writes down of a job that has begun, so that another process can go on in its
// place: who is in the job, and how far messages are counted. As text it is the file that
// MERCURY_JOURNAL names, which is written anew before each change is told to anybody.
//
//   a line for each:  mercury scheduler 2 | address HOST PORT | job HEX | life N | returns N |
//                     generation N | releases N | setting NAME=VALUE | default NAME=VALUE | member
//                     ID PRESENCE HOST PORT DATA_PORT HINT LIFE ASYNCHRONOUS ENTRY LATE CHANGED |
//                     end
//
// Thread-safety: pure functions. Invariant: FromText reads what ToText wrote, whole, and refuses
// any other text. There is no secret in it: keys follow from the job token, too.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "control/job_identity.h"
#include "control/member.h"
#include "control/roster.h"
#include "control/shared_settings.h"

namespace mercury {

// Who has, or had last, a place in the job.
struct PlaceRecord {
  Member member;
  Presence presence = Presence::kIn;
  bool late = false;     // it came once the job had begun, and has been in
  uint64_t changed = 1;  // Roster::ChangedAt
};

struct SchedulerAddress {
  std::string host;
  int port = 0;
};

struct JobRecord {
  SchedulerAddress address;  // where its nodes look for it
  JobIdentity job{};
  uint64_t life = 0;        // the scheduler's, and of those who go on in its place
  uint64_t returns = 0;     // how many have
  uint64_t generation = 1;  // roster.h
  uint64_t releases = 0;    // barriers that were passed
  SharedSettings settings;
  std::vector<PlaceRecord> placed;
};

std::string ToText(const JobRecord& record);
Status FromText(const std::string& text, JobRecord* record);

// Whole, or, if that is not possible, not at all: then nothing is there any more.
Status WriteRecord(const std::string& path, const JobRecord& record);
// `there`: false if nothing is. Not ok: what is there makes no sense.
Status ReadRecord(const std::string& path, JobRecord* record, bool* there);

}  // namespace mercury
