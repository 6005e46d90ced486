#include "fabric/live/courier.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/check.h"

namespace mercury::fabric {

int64_t Courier::Take(const Hop& hop) {
  tasks_[next_].hop = hop;
  return next_++;
}

void Courier::Ready(int64_t number, int64_t bytes, double now_s) {
  const auto task = tasks_.find(number);
  if (task == tasks_.end() || task->second.bytes >= 0) return;
  task->second.bytes = bytes;
  task->second.delay_s = std::max(0.0, now_s - task->second.hop.start_s);
}

int64_t Courier::Cancel(int64_t number) {
  const auto task = tasks_.find(number);
  if (task == tasks_.end()) return 0;
  const int64_t sent = task->second.sent;
  tasks_.erase(task);
  return sent;
}

const Hop* Courier::Find(int64_t number) const {
  const auto task = tasks_.find(number);
  return task == tasks_.end() ? nullptr : &task->second.hop;
}

// What the plan has sent by now.
double Courier::PlannedBytes(const Task& task, double now_s) {
  double bits = 0;
  for (const Piece& piece : task.hop.pieces) {
    const double end_s = std::min(piece.end_s, now_s - task.delay_s);
    bits += std::max(0.0, end_s - piece.start_s) * piece.bit_per_s;
  }
  return bits / 8;
}

// Of the whole hop, in all.
int64_t Courier::Allowed(const Task& task, double now_s) {
  if (task.bytes < 0 || now_s < task.hop.start_s) return 0;
  if (now_s >= task.hop.end_s + task.delay_s) return task.bytes;
  const double ahead = kPaceHeadroom * PlannedBytes(task, now_s) + double{kPaceQuantum_bytes};
  return std::min(task.bytes, static_cast<int64_t>(ahead));
}

std::vector<Allowance> Courier::Due(double now_s) const {
  std::vector<std::tuple<double, int64_t, int64_t>> due;
  for (const auto& [number, task] : tasks_) {
    const int64_t bytes = Allowed(task, now_s) - task.sent;
    if (bytes > 0) due.emplace_back(task.hop.start_s, number, bytes);
  }
  std::sort(due.begin(), due.end());
  std::vector<Allowance> allowances;
  allowances.reserve(due.size());
  for (const auto& [start_s, number, bytes] : due) allowances.push_back({number, bytes});
  return allowances;
}

std::optional<Hop> Courier::Sent(int64_t number, int64_t bytes) {
  const auto task = tasks_.find(number);
  if (task == tasks_.end()) return std::nullopt;
  MERCURY_CHECK(task->second.bytes >= 0);  // what it carries is there
  task->second.sent += bytes;
  if (task->second.sent < task->second.bytes) return std::nullopt;
  Hop over = std::move(task->second.hop);
  tasks_.erase(task);
  return over;
}

// When a packet more is allowed, or all that is left.
double Courier::NextAt(const Task& task, double now_s) {
  if (task.bytes < 0) return kNever;
  if (now_s < task.hop.start_s) return task.hop.start_s;
  const double end_s = task.hop.end_s + task.delay_s;
  const int64_t wanted = std::min(task.bytes, task.sent + kPaceQuantum_bytes);
  double missing_bits = 8 * (double(wanted) - double{kPaceQuantum_bytes}) / kPaceHeadroom;
  for (const Piece& piece : task.hop.pieces) {
    const double bits = (piece.end_s - piece.start_s) * piece.bit_per_s;
    if (missing_bits <= bits) {
      const double at_s =
          piece.start_s + std::max(0.0, missing_bits) / piece.bit_per_s + task.delay_s;
      // Rounded up, so that whoever wakes then is allowed something.
      return std::min(end_s, std::max(now_s, std::nextafter(at_s + 1e-9, kNever)));
    }
    missing_bits -= bits;
  }
  return end_s;
}

double Courier::WakeAt(double now_s, const Choice& of) const {
  double at_s = kNever;
  for (const auto& [number, task] : tasks_) {
    if (of == nullptr || of(number, task.hop)) at_s = std::min(at_s, NextAt(task, now_s));
  }
  return at_s;
}

}  // namespace mercury::fabric
