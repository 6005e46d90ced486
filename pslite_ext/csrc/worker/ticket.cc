#include "worker/ticket.h"

#include <chrono>
#include <cstring>

namespace mercury {
namespace {

size_t CountOf(const Buffer& set) {
  int64_t count = 0;
  if (set.bytes >= sizeof(count)) std::memcpy(&count, set.data, sizeof(count));
  return static_cast<size_t>(count);
}

}  // namespace

bool Ticket::Wait(int slice_ms, Status* status) const {
  std::unique_lock<std::mutex> lock(state_->mutex);
  if (slice_ms != 0) {  // who only looks makes no call of the system
    state_->changed.wait_for(lock, std::chrono::milliseconds(slice_ms),
                             [&] { return state_->over; });
  }
  *status = state_->status;
  return state_->over;
}

size_t Ticket::num_rows() const {
  size_t rows = 0;
  for (const Buffer& set : state_->answers) rows += CountOf(set);
  return rows;
}

void Ticket::CopyRows(int64_t* numbers, char* values) const {
  for (const Buffer& set : state_->answers) {
    const size_t count = CountOf(set);
    const char* from = set.data + sizeof(int64_t);
    std::memcpy(numbers, from, count * sizeof(int64_t));
    std::memcpy(values, from + count * sizeof(int64_t), count * row_bytes_);
    numbers += count;
    values += count * row_bytes_;
  }
}

}  // namespace mercury
