#include "control/link_watch.h"

#include <algorithm>

namespace mercury {

void LinkWatch::Sent(int peer, uint64_t number, int64_t now_ms) {
  Traffic& link = links_[peer];
  if (!link.waits()) {
    link.forward_ms = now_ms;
    link.down_ms = -1;  // it did not matter
  }
  link.sent = number;
  link.sent_ms = now_ms;
}

void LinkWatch::Acknowledged(int peer, uint64_t number, int64_t now_ms) {
  Traffic& link = links_[peer];
  if (number <= link.acknowledged) return;
  link.acknowledged = number;
  link.forward_ms = now_ms;
}

void LinkWatch::Moved(int peer, int connection, int64_t bytes, int64_t now_ms) {
  Traffic& link = links_[peer];
  const int64_t moved = bytes - link.question_bytes;
  if (link.connection != connection) {
    link.connection = connection;
    link.moved_bytes = moved;
  } else if (moved > link.moved_bytes) {
    link.moved_bytes = moved;
    link.forward_ms = now_ms;
  }
}

void LinkWatch::Connected(int peer, bool connected, int64_t now_ms) {
  Traffic& link = links_[peer];
  if (connected) {
    link.down_ms = -1;
  } else if (link.down_ms < 0) {
    link.down_ms = now_ms;
  }
}

bool LinkWatch::gone(int peer) const {
  const auto it = links_.find(peer);
  return it != links_.end() && it->second.gone;
}

bool LinkWatch::broken(int peer) const {
  const auto it = links_.find(peer);
  return it != links_.end() && it->second.broken;
}

uint64_t LinkWatch::received(int peer) const {
  const auto it = links_.find(peer);
  return it == links_.end() ? 0 : it->second.received;
}

std::vector<int> LinkWatch::Waiting() const {
  std::vector<int> waiting;
  for (const auto& [peer, link] : links_) {
    if (link.waits()) waiting.push_back(peer);
  }
  return waiting;
}

LinkWatch::Due LinkWatch::Tick(int64_t now_ms) {
  // This process itself did not run (a suspended machine): no link is to blame for that.
  const int64_t gap = ticked_ ? now_ms - last_tick_ms_ : 0;
  const int64_t pause = gap > timeout_ms_ / 2 ? gap : 0;
  ticked_ = true;
  last_tick_ms_ = now_ms;
  Due due;
  for (auto& [peer, link] : links_) {
    if (link.received > link.told) {
      link.told = link.received;
      due.acknowledge.push_back(peer);
    }
    if (!link.waits()) continue;
    link.forward_ms = std::min(now_ms, link.forward_ms + pause);
    if (link.down_ms >= 0) link.down_ms = std::min(now_ms, link.down_ms + pause);
    if (link.down_ms >= 0 && now_ms - link.down_ms >= timeout_ms_ / 2) {
      link.broken = true;
      due.cut.push_back(peer);
    } else if (now_ms - link.forward_ms >= timeout_ms_) {
      link.broken = true;
      due.silent.push_back(peer);
    } else if (now_ms - link.sent_ms >= interval_ms_) {
      link.sent_ms = now_ms;
      link.question_bytes += kQuestionBytesMax;
      due.ask.push_back(peer);
    }
  }
  return due;
}

}  // namespace mercury
