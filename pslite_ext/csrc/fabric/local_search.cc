#include "fabric/local_search.h"

#include <algorithm>
#include <random>
#include <utility>

#include "fabric/course.h"

namespace mercury::fabric {
namespace {

// What a search may look at: some 200 ns each.
constexpr int64_t kHopsMost = 15'000;
// So many stops of a schedule are copied and checked in that time.
constexpr int64_t kCopiedPerHop = 64;
// How often it begins again at a schedule that was drawn, the same ones each time.
constexpr int kDrawn = 24;

// First the objective; of equal ones, what leaves more room for the next improvement.
struct Score {
  double objective_s = kNever;
  double second_s = kNever;
};

bool Better(const Score& a, const Score& b) {
  if (a.objective_s < b.objective_s - kSameTime_s) return true;
  return a.objective_s <= b.objective_s && a.second_s < b.second_s - kSameTime_s;
}

class Search {
 public:
  Search(Network* network, const std::vector<Shipment>& shipments, const Target& target,
         const std::vector<int64_t>& deadlines)
      : network_(*network), shipments_(shipments), target_(target), deadlines_(deadlines) {}

  Found Run(const Found& start) {
    best_ = start;
    best_score_ = Evaluate(start.schedule, {});
    Climb(start, best_score_);
    const auto aggregators = static_cast<int>(target_.aggregators.size());
    for (int a = kDirect; a < aggregators; ++a) {
      Found plain = start;
      for (Stop& stop : plain.schedule) stop.aggregator = a;
      Climb(plain, Evaluate(plain.schedule, {}));
    }
    // The same plan for the same batch.
    std::minstd_rand draw;  // NOLINT(bugprone-random-generator-seed)
    for (int i = 0; i < kDrawn && hops_left_ > 0; ++i) {
      const Found drawn = Drawn(start, &draw);
      if (Legal(drawn.schedule)) Climb(drawn, Evaluate(drawn.schedule, {}));
    }
    GiveReasons(start.dropped);
    return best_;
  }

 private:
  void Climb(Found from, Score score) {
    current_ = std::move(from);
    current_score_ = score;
    while (hops_left_ > 0 && (TryDestinations() || TryPlaces() || TrySwaps() || TryDrops())) {
    }
    if (Better(current_score_, best_score_)) {
      best_.schedule = current_.schedule;
      best_.dropped = current_.dropped;
      best_score_ = current_score_;
    }
  }

  // Any schedule that keeps the deadlines, as far as that is possible without looking back.
  Found Drawn(const Found& start, std::minstd_rand* draw) const {
    Found drawn = start;
    const auto below = [draw](size_t end) { return static_cast<size_t>((*draw)()) % end; };
    Schedule& schedule = drawn.schedule;
    for (Drop& drop : drawn.dropped) {
      const size_t i = below(schedule.size() + 1);
      if (i == schedule.size() || deadlines_[drop.shipment] < 1) continue;
      std::swap(schedule[i].shipment, drop.shipment);
    }
    for (size_t i = schedule.size(); i > 1; --i) {
      std::swap(schedule[i - 1].shipment, schedule[below(i)].shipment);
    }
    if (!deadlines_.empty()) {
      // Who has to be early is: everybody no later than its deadline, if all can be.
      std::vector<std::pair<int64_t, size_t>> places;
      for (size_t i = 0; i < schedule.size(); ++i) {
        const auto last = static_cast<int64_t>(schedule.size());
        places.emplace_back(std::min(deadlines_[schedule[i].shipment], last), i);
      }
      std::sort(places.begin(), places.end());
      const Schedule shuffled = schedule;
      for (size_t i = 0; i < places.size(); ++i) schedule[i] = shuffled[places[i].second];
    }
    const size_t ways = target_.aggregators.size() + 1;
    const int way = static_cast<int>(below(ways)) + kDirect;
    for (Stop& stop : schedule) stop.aggregator = way;
    return drawn;
  }

  // What the rules drop, too, keeps their reason. Of anything else, all places that are early
  // enough are taken, or others are there sooner.
  void GiveReasons(const std::vector<Drop>& by_rules) {
    const auto applied = static_cast<int64_t>(best_.schedule.size());
    for (Drop& drop : best_.dropped) {
      const size_t g = drop.shipment;
      const auto its = std::find_if(by_rules.begin(), by_rules.end(),
                                    [g](const Drop& other) { return other.shipment == g; });
      if (its != by_rules.end()) {
        drop = *its;
        continue;
      }
      const bool too_old = deadlines_[g] <= applied;
      drop = {g, too_old ? DropReason::kDeadline : DropReason::kOvertaken, 0, 0, 0, 0, true};
    }
  }

  // The neighbour in `next_`, if it is better than the present schedule, takes its place.
  bool Take() {
    ++best_.neighbours;
    hops_left_ -= static_cast<int64_t>(next_.size()) / kCopiedPerHop;
    if (!Legal(next_)) {
      --hops_left_;
      return false;
    }
    const Score score = Evaluate(next_, current_score_);
    if (!Better(score, current_score_)) return false;
    current_.schedule = next_;
    current_score_ = score;
    return true;
  }

  // A stretch of the order goes another way.
  bool TryDestinations() {
    if (target_.aggregators.empty()) return false;
    const size_t count = current_.schedule.size();
    const auto aggregators = static_cast<int>(target_.aggregators.size());
    for (size_t length = 1; length <= count; ++length) {
      for (size_t first = 0; first + length <= count; ++first) {
        for (int a = kDirect; a < aggregators; ++a) {
          next_ = current_.schedule;
          bool other = false;
          for (size_t i = first; i < first + length; ++i) {
            other = other || next_[i].aggregator != a;
            next_[i].aggregator = a;
          }
          if (!other) continue;
          if (Take()) return true;
          if (hops_left_ <= 0) return false;
        }
      }
    }
    return false;
  }

  // An update takes another place, and goes any way from there.
  bool TryPlaces() {
    const size_t count = current_.schedule.size();
    const auto aggregators = static_cast<int>(target_.aggregators.size());
    for (size_t from = 0; from < count; ++from) {
      for (size_t to = 0; to < count; ++to) {
        if (to == from) continue;
        for (int a = kDirect; a < aggregators; ++a) {
          next_ = current_.schedule;
          const Stop moved{next_[from].shipment, a};
          next_.erase(next_.begin() + static_cast<std::ptrdiff_t>(from));
          next_.insert(next_.begin() + static_cast<std::ptrdiff_t>(to), moved);
          if (Take()) return true;
          if (hops_left_ <= 0) return false;
        }
      }
    }
    return false;
  }

  // Two updates change places.
  bool TrySwaps() {
    const size_t count = current_.schedule.size();
    for (size_t i = 0; i < count; ++i) {
      for (size_t j = i + 1; j < count; ++j) {
        next_ = current_.schedule;
        std::swap(next_[i].shipment, next_[j].shipment);
        if (Take()) return true;
        if (hops_left_ <= 0) return false;
      }
    }
    return false;
  }

  // An update is dropped in another's place.
  bool TryDrops() {
    for (Drop& drop : current_.dropped) {
      for (size_t i = 0; i < current_.schedule.size(); ++i) {
        next_ = current_.schedule;
        const size_t out = next_[i].shipment;
        next_[i].shipment = drop.shipment;
        if (Take()) {
          drop.shipment = out;
          return true;
        }
        if (hops_left_ <= 0) return false;
      }
    }
    return false;
  }

  bool Legal(const Schedule& schedule) {
    used_.assign(target_.aggregators.size(), false);
    for (size_t i = 0; i < schedule.size(); ++i) {
      const Stop& stop = schedule[i];
      if (!deadlines_.empty() && deadlines_[stop.shipment] < static_cast<int64_t>(i) + 1) {
        return false;
      }
      if (stop.aggregator == kDirect) continue;
      if (i > 0 && schedule[i - 1].aggregator == stop.aggregator) continue;
      if (used_[static_cast<size_t>(stop.aggregator)]) return false;
      used_[static_cast<size_t>(stop.aggregator)] = true;
    }
    return true;
  }

  // The score, or none as soon as it is no better than `limit`.
  Score Evaluate(const Schedule& schedule, const Score& limit) {
    const size_t mark = network_.Mark();
    Course course(&network_, shipments_, target_);
    const auto count = static_cast<double>(schedule.size());
    bool worse = false;
    int way = kDirect;
    for (const Stop& stop : schedule) {
      if (stop.aggregator != way) course.Close();
      way = stop.aggregator;
      if (way == kDirect) {
        course.Direct(stop.shipment);
      } else {
        course.Gather(stop.shipment, way);
      }
      --hops_left_;
      const Outcome& so_far = course.outcome();
      const double pending = count - static_cast<double>(so_far.committed);
      const double floor_s = std::max(so_far.last_s, course.ready_s());
      const double least_s =
          target_.together ? floor_s : (so_far.sum_s + pending * floor_s) / count;
      worse = least_s > limit.objective_s + kSameTime_s;
      if (worse) break;
    }
    if (!worse) course.Close();
    const Outcome outcome = course.outcome();
    network_.Rollback(mark);
    if (worse) return {};
    return {Objective(outcome, target_), target_.together ? outcome.sum_s : outcome.last_s};
  }

  Network& network_;
  const std::vector<Shipment>& shipments_;
  const Target& target_;
  const std::vector<int64_t>& deadlines_;
  int64_t hops_left_ = kHopsMost;
  Found best_;
  Score best_score_;
  Found current_;
  Score current_score_;
  Schedule next_;
  std::vector<bool> used_;
};

}  // namespace

Found SearchNearby(Network* network, const std::vector<Shipment>& shipments, const Target& target,
                   const std::vector<int64_t>& deadlines, const Found& start) {
  if (start.schedule.empty()) return start;
  return Search(network, shipments, target, deadlines).Run(start);
}

}  // namespace mercury::fabric
