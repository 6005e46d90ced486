#include "fabric/distribution.h"

#include <algorithm>
#include <numeric>

namespace mercury::fabric {
namespace {

// So many distributors are used, and so many gets are answered by the server itself.
struct Shape {
  size_t distributors = 0;
  size_t straight = 0;
};

class Distribution {
 public:
  Distribution(Network* network, const std::vector<Shipment>& gets, const Target& target)
      : network_(*network), gets_(gets), target_(target) {
    for (const Shipment& get : gets) largest_ = std::max(largest_, get.bytes[0]);
    Order();
  }

  std::vector<Delivery> Run() {
    const size_t mark = network_.Mark();
    const Shape best = Best();
    std::vector<Delivery> deliveries;
    Serve(best.distributors, &deliveries);
    double straight_s = 0;
    for (size_t i = 0; i < best.straight; ++i) {
      straight_s = std::max(straight_s, Straight(i, &deliveries));
    }
    PassOn(best, straight_s, kNever, &deliveries);
    network_.Rollback(mark);
    return deliveries;
  }

 private:
  // The shortest first, as in Algorithm 1.
  void Order() {
    const size_t mark = network_.Mark();
    std::vector<size_t> left(gets_.size());
    std::iota(left.begin(), left.end(), size_t{0});
    while (!left.empty()) {
      size_t best = 0;
      double least_s = kNever;
      for (size_t i = 0; i < left.size(); ++i) {
        const Shipment& get = gets_[left[i]];
        const double end_s =
            network_.End(target_.servers[0], get.host, get.ready_s, Bits(get.bytes[0]));
        if (end_s < least_s - kSameTime_s) {
          least_s = end_s;
          best = i;
        }
      }
      order_.push_back(left[best]);
      left.erase(left.begin() + static_cast<std::ptrdiff_t>(best));
      Straight(order_.size() - 1, nullptr);
    }
    network_.Rollback(mark);
  }

  // The shape that ends first; of equal ones, that with fewer distributors and more straight.
  Shape Best() {
    const size_t count = gets_.size();
    const size_t mark = network_.Mark();
    Shape best{0, count};
    double last_s = kNever;
    for (size_t used = 0; used <= target_.aggregators.size() && used <= count; ++used) {
      Serve(used, nullptr);
      std::vector<size_t> marks{network_.Mark()};
      std::vector<double> straight_s{0};
      for (size_t i = 0; i < count; ++i) {
        straight_s.push_back(std::max(straight_s.back(), Straight(i, nullptr)));
        marks.push_back(network_.Mark());
      }
      if (used == 0) last_s = straight_s[count];
      // With nobody to pass it on, all is straight.
      for (size_t n = used == 0 ? 0 : count; n-- > 0;) {
        network_.Rollback(marks[n]);
        const double end_s = PassOn({used, n}, straight_s[n], last_s - kSameTime_s, nullptr);
        if (end_s == kNever) continue;
        last_s = end_s;
        best = {used, n};
      }
      network_.Rollback(mark);
    }
    return best;
  }

  double Send(int from, int to, size_t get, double ready_s, int64_t bytes,
              std::vector<Delivery>* deliveries) {
    const auto host = [this](int distributor) {
      return target_.aggregators[static_cast<size_t>(distributor)];
    };
    std::vector<RateSpan>* pieces = nullptr;
    if (deliveries != nullptr) {
      deliveries->push_back({from, to, get, bytes, 0, {}});
      pieces = &deliveries->back().pieces;
    }
    const double end_s =
        network_.Reserve(from == kDirect ? target_.servers[0] : host(from),
                         to == kDirect ? gets_[get].host : host(to), ready_s, Bits(bytes), pieces);
    if (deliveries != nullptr) deliveries->back().end_s = end_s;
    return end_s;
  }

  double Straight(size_t i, std::vector<Delivery>* deliveries) {
    const Shipment& get = gets_[order_[i]];
    return Send(kDirect, kDirect, order_[i], get.ready_s, get.bytes[0], deliveries);
  }

  // The server serves the distributors, the last group's first.
  void Serve(size_t used, std::vector<Delivery>* deliveries) {
    has_model_s_.assign(used, 0);
    double asked_s = kNever;
    for (const Shipment& get : gets_) asked_s = std::min(asked_s, get.ready_s);
    for (size_t d = used; d-- > 0;) {
      has_model_s_[d] = Send(kDirect, static_cast<int>(d), 0, asked_s, largest_, deliveries);
    }
  }

  // The distributors serve the rest. When all of it ends; never, if that is `limit_s` or later, or
  // a distributor would have nothing to do.
  double PassOn(const Shape& shape, double straight_s, double limit_s,
                std::vector<Delivery>* deliveries) {
    double last_s = straight_s;
    size_t d = 0;
    bool idle = true;
    for (size_t i = shape.straight; i < order_.size();) {
      const Shipment& get = gets_[order_[i]];
      const bool last = d + 1 == shape.distributors;
      const double ready_s = std::max(get.ready_s, has_model_s_[d]);
      const double end_s =
          network_.End(target_.aggregators[d], get.host, ready_s, Bits(get.bytes[0]));
      if (!last && end_s > straight_s + kSameTime_s) {
        if (idle) return kNever;
        ++d;
        idle = true;
        continue;
      }
      if (end_s >= limit_s) return kNever;
      Send(static_cast<int>(d), kDirect, order_[i], ready_s, get.bytes[0], deliveries);
      last_s = std::max(last_s, end_s);
      idle = false;
      ++i;
    }
    const bool all_used = shape.distributors == 0 || (d + 1 == shape.distributors && !idle);
    return all_used && last_s < limit_s ? last_s : kNever;
  }

  Network& network_;
  const std::vector<Shipment>& gets_;
  const Target& target_;
  int64_t largest_ = 0;
  std::vector<size_t> order_;
  std::vector<double> has_model_s_;  // of each distributor in use
};

}  // namespace

std::vector<Delivery> Distribute(Network* network, const std::vector<Shipment>& gets,
                                 const Target& target) {
  if (gets.empty()) return {};
  return Distribution(network, gets, target).Run();
}

}  // namespace mercury::fabric
