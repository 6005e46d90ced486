#include "base/status.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <new>
#include <utility>

namespace mercury {
namespace {

constexpr size_t kPartiesMax = 64;
constexpr size_t kWordBytesMax = 160;  // of an address or a label, as they travel
constexpr size_t kHeadBytesMax = 512;  // of all but the detail: a line of numbers, a label, a party

uint64_t NextNumber() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

// A line cannot have another one in it.
std::string Line(std::string text) {
  text.resize(std::min(text.size(), kWordBytesMax));
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text + "\n";
}

class StatusReader {
 public:
  explicit StatusReader(const std::string& text) : text_(text) {}

  template <typename T>
  bool Number(T* value, T end) {
    const char* last = text_.data() + text_.size();
    const auto [read, error] = std::from_chars(text_.data() + at_, last, *value);
    if (error != std::errc() || *value >= end || read == last) return false;
    at_ = static_cast<size_t>(read - text_.data()) + 1;  // the blank behind it
    return true;
  }
  bool Line(std::string* line) {
    const size_t end = text_.find('\n', at_);
    if (end == std::string::npos || end - at_ > kWordBytesMax) return false;
    *line = text_.substr(at_, end - at_);
    at_ = end + 1;
    return true;
  }
  std::string Rest() const {
    const size_t last = text_.find_last_not_of(' ');
    return last == std::string::npos || last < at_ ? "" : text_.substr(at_, last + 1 - at_);
  }

 private:
  const std::string& text_;
  size_t at_ = 0;
};

}  // namespace

// Made beforehand, for when there is no memory to say more.
struct Status::Spares {
  std::array<std::shared_ptr<const Failure>, kCodes> of;
  Spares() {
    for (size_t code = 0; code < of.size(); ++code) {
      auto failure = std::make_shared<Failure>();
      failure->number = NextNumber();
      failure->code = static_cast<Code>(code);
      failure->detail = "there was no memory to say what failed";
      of[code] = std::move(failure);
    }
  }
  static const Spares& Get() {
    static const auto* spares = new Spares;  // threads that outlive main find it whole
    return *spares;
  }
};

Status::Status(Code code, std::string detail) {
  const Spares& spares = Spares::Get();
  try {
    auto failure = std::make_shared<Failure>();
    failure->number = NextNumber();
    failure->code = code;
    failure->detail = std::move(detail);
    failure_ = std::move(failure);
  } catch (const std::bad_alloc&) {
    failure_ = spares.of[static_cast<size_t>(code)];
  }
}

const Status::Failure& Status::seen() const {
  static const auto* nothing = new Failure;  // threads that outlive main find it whole
  return ok() ? *nothing : *failure_;
}

template <typename F>
Status Status::Changed(F&& change) const {
  Status status = *this;
  if (ok()) return status;
  try {
    auto failure = std::make_shared<Failure>(*failure_);
    change(failure.get());
    status.failure_ = std::move(failure);
  } catch (const std::bad_alloc&) {
    return status;  // less is known of it then
  }
  return status;
}

Status Status::By(Blame blame) const {
  return Changed([&](Failure* its) { its->blame = std::move(blame); });
}
Status Status::About(Subject subject) const {
  return Changed([&](Failure* its) { its->subject = std::move(subject); });
}
Status Status::Of(Code cause) const {
  return Changed([&](Failure* its) { its->cause = cause; });
}
Status Status::As(Code code) const {
  return Changed([&](Failure* its) { its->code = code; });
}
Status Status::Saying(std::string detail) const {
  return Changed([&](Failure* its) { its->detail = std::move(detail); });
}

// A line of numbers (code, cause, fault, parties, subject, key), the subject's label, a line for
// each party (role, rank + 1, address), and the detail.
std::string Encode(const Status& status, size_t bytes_max) {
  if (status.ok()) return {};
  const Blame& blame = status.blame();
  const Subject& subject = status.subject();
  std::string parties, text;
  size_t count = 0;
  for (const Party& party : blame.parties) {
    const std::string line = std::to_string(static_cast<int>(party.role)) + " " +
                             std::to_string(party.rank + 1) + " " + Line(party.address);
    const size_t room = std::max(bytes_max, kHeadBytesMax) - kHeadBytesMax / 2;
    if (count == kPartiesMax || (count != 0 && parties.size() + line.size() > room / 2)) break;
    parties += line;
    ++count;
  }
  for (const uint64_t number :
       {static_cast<uint64_t>(status.code()), static_cast<uint64_t>(status.cause()),
        static_cast<uint64_t>(blame.fault), static_cast<uint64_t>(count),
        static_cast<uint64_t>(subject.of), subject.key}) {
    text += std::to_string(number) + " ";
  }
  text += Line(subject.label) + parties;
  return text + status.detail().substr(0, bytes_max - std::min(bytes_max, text.size()));
}

void Decode(const std::string& text, Status* status) {
  *status = Status::Corrupt("a failure that cannot be read");
  StatusReader reader(text);
  int code = 0, cause = 0, fault = 0, of = 0;
  size_t parties = 0;
  Subject subject;
  Blame blame;
  if (!reader.Number(&code, kCodes) || code <= 0 || !reader.Number(&cause, kCodes) || cause < 0 ||
      !reader.Number(&fault, kFaults) || fault < 0 || !reader.Number(&parties, kPartiesMax + 1) ||
      !reader.Number(&of, kSubjects) || of < 0 || !reader.Number(&subject.key, ~uint64_t{0}) ||
      !reader.Line(&subject.label)) {
    return;
  }
  for (size_t i = 0; i < parties; ++i) {
    Party party;
    int role = 0, number = 0;
    if (!reader.Number(&role, kRoles) || role < 0 || !reader.Number(&number, 1 << 20) ||
        number < 0 || !reader.Line(&party.address)) {
      return;
    }
    party.role = static_cast<Role>(role);
    party.rank = number - 1;
    blame.parties.push_back(std::move(party));
  }
  if (blame.parties.empty() != (fault == Blame::kNobody)) return;
  blame.fault = static_cast<Blame::Fault>(fault);
  subject.of = static_cast<Subject::Kind>(of);
  *status = Status(static_cast<Code>(code), reader.Rest())
                .By(std::move(blame))
                .About(std::move(subject))
                .Of(static_cast<Code>(cause));
}

}  // namespace mercury
