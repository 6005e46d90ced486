#include "policy/prophet/prophet_profile.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <sstream>
#include <unordered_set>

namespace mercury {
namespace {

constexpr size_t kRemembered = 15;  // iterations, of which the median counts
constexpr int kStepsMin = 5;        // before iterations can be called alike
constexpr int kInARow = 3;          // iterations that say that a profile does not hold any more
constexpr size_t kGradientsMax = 65536;
constexpr int64_t kProducedUsMax = 86400000000;  // a day: an iteration is not longer
constexpr int64_t kJitterUs = 1000;
constexpr int64_t kLateUsMin = 5000;
constexpr int64_t kPauseFactor = 4;  // a validation or a checkpoint, not a forward pass that waits

int64_t TimeQuantile(std::vector<int64_t> values, size_t at, size_t of) {
  const size_t index = (values.size() - 1) * at / of;
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(index), values.end());
  return values[index];
}

int64_t Median(const std::deque<int64_t>& values) {
  return TimeQuantile({values.begin(), values.end()}, 1, 2);
}

bool SameTensor(const ProfiledGradient& a, const ProfiledGradient& b) {
  return a.bytes == b.bytes && a.priority == b.priority;
}

std::string Milliseconds(int64_t us) { return std::to_string(us / 1000) + " ms"; }

}  // namespace

bool WaitedLonger(const ProphetFigures& figures, const ProphetFigures& than) {
  return std::pair(figures.wait_first_us, figures.waits) >
         std::pair(than.wait_first_us, than.waits);
}

std::string ProfileRefused(const Status& status) {
  return "what MERCURY_PROPHET_PROFILE names is not a Prophet profile: " + status.text() +
         "; one is learnt anew";
}

Status ProphetProfile::Load(const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  std::vector<ProfiledGradient> loaded;
  std::unordered_set<uint64_t> keys;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (!line.empty() && line[0] == '#') continue;
    ProfiledGradient g;
    std::istringstream fields(line);
    const bool whole = static_cast<bool>(fields >> g.key >> g.bytes >> g.priority >> g.produced_us);
    const bool possible = g.produced_us >= 0 && g.produced_us <= kProducedUsMax;
    if (!whole || !possible || !keys.insert(g.key).second) {
      return Status::InvalidArgument("line " + std::to_string(number) + " is '" + line +
                                     "', not a new key, bytes, priority, microseconds and a name");
    }
    loaded.push_back(g);
  }
  if (loaded.empty()) return Status::InvalidArgument("it holds no gradient");
  learning_.clear();
  produced_us_.clear();
  for (const ProfiledGradient& g : loaded) {
    learning_[g.key] = g;
    produced_us_[g.key] = {g.produced_us};
  }
  Adopt();
  loaded_ = true;
  return Status::Ok();
}

std::string ProphetProfile::Text(const NameOf& name_of) const {
  if (!known()) return "";
  std::string text = "# Prophet profile; forward " +
                     std::to_string(std::max<int64_t>(shortest_forward_us_, 0)) +
                     " us\n# key bytes priority microseconds name\n";
  for (const ProfiledGradient& g : gradients_) {
    text += std::to_string(g.key) + " " + std::to_string(g.bytes) + " " +
            std::to_string(g.priority) + " " + std::to_string(g.produced_us) + " " +
            name_of(g.key) + "\n";
  }
  return text;
}

void ProphetProfile::Ready(uint64_t key, uint64_t bytes, int32_t priority, int64_t now_us) {
  if (under_way_ && now_us < last_us_ && !spoiled_) {
    spoiled_ = true;
    notices_.push_back("the clock went back by " + Milliseconds(last_us_ - now_us) +
                       ": Prophet does without this iteration");
  }
  last_us_ = now_us;
  if (ready_.count(key) != 0) Finish();
  if (!under_way_) Begin(now_us);
  if (ready_.size() >= kGradientsMax) return;
  ready_[key] = {key, bytes, priority, now_us - start_us_};
  const auto it = index_.find(key);
  if (it == index_.end()) return;
  is_ready_[it->second] = true;
  if (it->second == 0) first_ready_us_ = now_us;
  dues_.Set(it->second, kNotDue);
}

void ProphetProfile::Done(uint64_t key, int64_t now_us) {
  if (!known() || key != gradients_[0].key || first_ready_us_ < 0) return;
  first_done_us_ = now_us;
}

void ProphetProfile::Begin(int64_t now_us) {
  if (first_done_us_ >= 0 && first_ready_us_ >= 0) CountWaits(now_us);
  first_ready_us_ = first_done_us_ = -1;
  under_way_ = true;
  start_us_ = now_us;
  is_ready_.assign(gradients_.size(), false);
  SetDues();
}

// Between the most urgent sum and the next iteration: a forward pass, and what it waited.
void ProphetProfile::CountWaits(int64_t now_us) {
  const int64_t forward = std::max<int64_t>(now_us - first_done_us_, 0);
  const bool pause = !forwards_us_.empty() && forward > kPauseFactor * Median(forwards_us_);
  forwards_us_.push_back(forward);
  if (forwards_us_.size() > kRemembered) forwards_us_.pop_front();
  if (pause) return;
  if (shortest_forward_us_ < 0) shortest_forward_us_ = forward;
  shortest_forward_us_ = std::min(shortest_forward_us_, forward);
  figures_.wait_later_us += static_cast<uint64_t>(forward - shortest_forward_us_);
  figures_.wait_first_us +=
      static_cast<uint64_t>(std::max<int64_t>(first_done_us_ - first_ready_us_, 0));
  ++figures_.waits;
}

void ProphetProfile::Finish() {
  // In the very first iteration, memory is made that later ones have.
  const bool first = figures_.iterations++ == 0;
  if (!spoiled_ && known()) {
    Compare();
  } else if (!spoiled_ && !first) {
    Learn();
  }
  under_way_ = spoiled_ = false;
  ready_.clear();
}

void ProphetProfile::Learn() {
  const bool same = learning_.size() == ready_.size() &&
                    std::all_of(ready_.begin(), ready_.end(), [this](const auto& entry) {
                      const auto known = learning_.find(entry.first);
                      return known != learning_.end() && SameTensor(known->second, entry.second);
                    });
  if (!same) {
    learning_ = ready_;
    produced_us_.clear();
    steps_ = 0;
  }
  Remember();
  ++steps_;
  if (steps_ >= steps_max_ || (steps_ >= kStepsMin && Alike())) Adopt();
}

void ProphetProfile::Remember() {
  for (const auto& [key, gradient] : ready_) {
    std::deque<int64_t>& times = produced_us_[key];
    times.push_back(gradient.produced_us);
    if (times.size() > kRemembered) times.pop_front();
  }
}

// Nine of ten gradients appear at nearly the same time in the middle half of the iterations.
bool ProphetProfile::Alike() const {
  int64_t length = 0;
  for (const auto& [key, times] : produced_us_) length = std::max(length, Median(times));
  size_t alike = 0;
  for (const auto& [key, times] : produced_us_) {
    const std::vector<int64_t> all(times.begin(), times.end());
    const int64_t spread = TimeQuantile(all, 3, 4) - TimeQuantile(all, 1, 4);
    if (spread <= std::max(kJitterUs, length / 50)) ++alike;
  }
  return 10 * alike >= 9 * produced_us_.size();
}

void ProphetProfile::Adopt() {
  gradients_.clear();
  index_.clear();
  for (const auto& [key, gradient] : learning_) {
    gradients_.push_back(gradient);
    gradients_.back().produced_us = Median(produced_us_.at(key));
  }
  std::sort(gradients_.begin(), gradients_.end(), [](const auto& a, const auto& b) {
    return a.priority != b.priority ? a.priority > b.priority : a.key < b.key;
  });
  for (size_t i = 0; i < gradients_.size(); ++i) index_[gradients_[i].key] = i;
  is_ready_.assign(gradients_.size(), false);
  learning_.clear();
  strange_in_a_row_ = late_in_a_row_ = 0;
  figures_.known = true;
  ++figures_.profiles;
}

// Does the iteration that has ended look as the profile says?
void ProphetProfile::Compare() {
  size_t found = 0;
  std::vector<int64_t> errors;
  int64_t length = 0;
  for (const ProfiledGradient& g : gradients_) {
    const auto it = ready_.find(g.key);
    length = std::max(length, g.produced_us);
    if (it == ready_.end() || !SameTensor(it->second, g)) continue;
    ++found;
    errors.push_back(std::abs(it->second.produced_us - g.produced_us));
  }
  const size_t strange = gradients_.size() + ready_.size() - 2 * found;
  if (strange > found) {
    return Drop(std::string(loaded_ ? "the profile is of another model" : "another model") + ": " +
                std::to_string(found) + " of " + std::to_string(ready_.size()) +
                " gradients are as Prophet expected");
  }
  strange_in_a_row_ = strange == 0 ? 0 : strange_in_a_row_ + 1;
  if (strange_in_a_row_ >= kInARow) {
    return Drop("other gradients than Prophet expected, or of other sizes");
  }
  if (strange != 0) return;
  figures_.production_error_us = TimeQuantile(errors, 1, 2);
  const bool late = figures_.production_error_us > std::max(kLateUsMin, length / 6);
  late_in_a_row_ = late ? late_in_a_row_ + 1 : 0;
  if (late_in_a_row_ >= kInARow) {
    return Drop("gradients do not appear when Prophet expected them (half are off by " +
                Milliseconds(figures_.production_error_us) + " or more, of " +
                Milliseconds(length) + ")");
  }
  if (late) return;
  Remember();
  for (ProfiledGradient& g : gradients_) g.produced_us = Median(produced_us_.at(g.key));
}

void ProphetProfile::Drop(const std::string& why) {
  notices_.push_back(why + ": a Prophet profile is learnt anew; until then there are no blocks");
  gradients_.clear();
  index_.clear();
  is_ready_.clear();
  dues_.Assign({});
  produced_us_.clear();
  learning_.clear();
  steps_ = 0;
  loaded_ = false;
  figures_.known = false;
}

void ProphetProfile::SetDues() {
  std::vector<int64_t> dues;
  as_produced_.resize(gradients_.size());
  for (size_t i = 0; i < gradients_.size(); ++i) {
    dues.push_back(start_us_ + gradients_[i].produced_us);
    as_produced_[i] = i;
  }
  dues_.Assign(dues);
  std::sort(as_produced_.begin(), as_produced_.end(),
            [&dues](size_t a, size_t b) { return dues[a] < dues[b]; });
}

int64_t ProphetProfile::NextDue(int32_t priority) const {
  const auto end =
      std::partition_point(gradients_.begin(), gradients_.end(),
                           [=](const ProfiledGradient& g) { return g.priority > priority; });
  return dues_.OfFirst(static_cast<size_t>(end - gradients_.begin()));
}

double ProphetProfile::RoomUs(int32_t priority, int64_t now_us) const {
  const int64_t due = NextDue(priority);
  return due == kNotDue ? std::numeric_limits<double>::infinity()
                        : static_cast<double>(due - now_us);
}

int64_t ProphetProfile::LongestGapUs(int64_t now_us) const {
  int64_t longest = 0, before = now_us;
  for (const size_t i : as_produced_) {
    const int64_t at = start_us_ + gradients_[i].produced_us;
    if (is_ready_[i] || at <= now_us) continue;
    longest = std::max(longest, at - before);
    before = at;
  }
  return longest;
}

}  // namespace mercury
