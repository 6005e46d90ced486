#include "control/job_record.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iomanip>
#include <limits>
#include <set>
#include <sstream>
#include <utility>

namespace mercury {
namespace {

constexpr char kFirstLine[] = "mercury scheduler 2";
constexpr char kLastLine[] = "end";
constexpr const char* kPresences[] = {"in", "left", "lost", "new"};
constexpr size_t kRecordBytesMax = size_t{1} << 20;

std::string Hex(const JobIdentity& job) {
  std::ostringstream text;
  for (const uint8_t byte : job) text << std::hex << std::setw(2) << std::setfill('0') << +byte;
  return text.str();
}

bool FromHex(const std::string& text, JobIdentity* job) {
  if (text.size() != 2 * job->size()) return false;
  for (size_t i = 0; i < job->size(); ++i) {
    const std::string digits = text.substr(2 * i, 2);
    if (digits.find_first_not_of("0123456789abcdef") != std::string::npos) return false;
    (*job)[i] = static_cast<uint8_t>(std::stoul(digits, nullptr, 16));
  }
  return true;
}

bool FromWord(const std::string& word, Presence* presence) {
  for (size_t i = 0; i < std::size(kPresences); ++i) {
    if (word == kPresences[i]) {
      *presence = static_cast<Presence>(i);
      return true;
    }
  }
  return false;
}

bool MayBe(const PlaceRecord& placed) {
  constexpr int kIdMax = 1 << 20, kPortMax = 65535;
  const Member& m = placed.member;
  const bool named = m.id > kSchedulerId && m.id <= kIdMax;
  return named && m.port > 0 && m.port <= kPortMax && m.data_port >= 0 && m.data_port <= kPortMax;
}

bool ReadMember(std::istringstream* line, PlaceRecord* placed) {
  Member& m = placed->member;
  std::string presence;
  int entry = 0;
  *line >> m.id >> presence >> m.host >> m.port >> m.data_port >> m.rank_hint >> m.life >>
      m.asynchronous >> entry >> placed->late >> placed->changed;
  if (line->fail() || !FromWord(presence, &placed->presence) || !MayBe(*placed)) return false;
  if (entry < 0 || entry > std::numeric_limits<uint8_t>::max()) return false;
  m.entry = static_cast<uint8_t>(entry);
  m.role = RoleOf(m.id);
  return m.role == Role::kWorker || m.role == Role::kServer;
}

// What lines that are not a record's own have said: of which word there was one, and settings.
struct LinesRead {
  std::set<std::string> words, defaults;
  std::string settings;
};

bool ReadLine(const std::string& text, JobRecord* record, LinesRead* read) {
  std::istringstream line(text);
  std::string word;
  line >> word;
  if (word == "setting" || word == "default") {
    const std::string setting = text.substr(std::min(text.size(), word.size() + 1));
    if (word == "default") read->defaults.insert(setting.substr(0, setting.find('=')));
    read->settings += setting + "\n";
    return true;
  }
  if (word != "member" && !read->words.insert(word).second) return false;
  if (word == "member") {
    PlaceRecord placed;
    if (!ReadMember(&line, &placed)) return false;
    record->placed.push_back(std::move(placed));
  } else if (word == "job") {
    std::string job;
    line >> job;
    if (!FromHex(job, &record->job)) return false;
  } else if (word == "address") {
    line >> record->address.host >> record->address.port;
  } else if (word == "life") {
    line >> record->life;
  } else if (word == "returns") {
    line >> record->returns;
  } else if (word == "generation") {
    line >> record->generation;
  } else if (word == "releases") {
    line >> record->releases;
  } else {
    return false;
  }
  return !line.fail() && (line >> word).fail();
}

}  // namespace

std::string ToText(const JobRecord& record) {
  std::ostringstream text;
  text << kFirstLine << "\naddress " << record.address.host << " " << record.address.port
       << "\njob " << Hex(record.job) << "\nlife " << record.life << "\nreturns " << record.returns
       << "\ngeneration " << record.generation << "\nreleases " << record.releases << "\n";
  for (const SharedSetting& s : record.settings)
    text << (s.told ? "setting " : "default ") << s.name << "=" << s.value << "\n";
  for (const PlaceRecord& p : record.placed) {
    const Member& m = p.member;
    text << "member " << m.id << " " << kPresences[static_cast<size_t>(p.presence)] << " " << m.host
         << " " << m.port << " " << m.data_port << " " << m.rank_hint << " " << m.life << " "
         << m.asynchronous << " " << +m.entry << " " << p.late << " " << p.changed << "\n";
  }
  text << kLastLine << "\n";
  return text.str();
}

Status FromText(const std::string& text, JobRecord* record) {
  if (text.size() > kRecordBytesMax) return Status::Corrupt("it is too long");
  JobRecord read;
  std::istringstream lines(text);
  std::string line, last;
  LinesRead said;
  std::set<int> ids;
  for (int number = 0; std::getline(lines, line); ++number) {
    if (last == kLastLine) return Status::Corrupt("something comes after its end");
    last = line;
    if (number == 0 && line != kFirstLine) return Status::Corrupt("it is no record of a job");
    if (number == 0 || line == kLastLine) continue;
    if (!ReadLine(line, &read, &said))
      return Status::Corrupt("it has a line that makes no sense: " + line);
  }
  constexpr size_t kWords = 6;  // of which there is one each
  if (last != kLastLine || said.words.size() != kWords) return Status::Corrupt("it is cut short");
  for (const PlaceRecord& placed : read.placed) {
    if (!ids.insert(placed.member.id).second) return Status::Corrupt("a node is there twice");
  }
  Status status = FromText(said.settings, &read.settings);
  if (!status.ok()) return status;
  for (SharedSetting& s : read.settings) s.told = said.defaults.count(s.name) == 0;
  *record = std::move(read);
  return Status::Ok();
}

Status WriteRecord(const std::string& path, const JobRecord& record) {
  const std::string made = path + ".new";
  std::ofstream file(made, std::ios::binary | std::ios::trunc);
  file << ToText(record);
  file.close();
  if (!file.fail() && std::rename(made.c_str(), path.c_str()) == 0) return Status::Ok();
  const std::string why = std::strerror(errno);
  std::remove(made.c_str());
  // An old one would be believed.
  if (std::remove(path.c_str()) != 0 && errno != ENOENT && truncate(path.c_str(), 0) != 0) {
    return Status::Exhausted("cannot write " + path + ": " + why +
                             "; what is there is old: remove it");
  }
  return Status::Exhausted("cannot write " + path + ": " + why);
}

Status ReadRecord(const std::string& path, JobRecord* record, bool* there) {
  *there = false;
  std::ifstream file(path, std::ios::binary);
  if (!file && errno == ENOENT) return Status::Ok();
  std::ostringstream text;
  text << file.rdbuf();
  *there = true;
  Status status = FromText(text.str(), record);
  if (status.ok()) return status;
  return Status::InvalidArgument("MERCURY_JOURNAL=" + path + ": " + status.detail() +
                                 "; remove it, unless a job goes on by it");
}

}  // namespace mercury
