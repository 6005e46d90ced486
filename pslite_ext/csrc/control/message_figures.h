// What has gone as messages between this node and one that it trains with: all of the classic path,
// and of a job with packets what goes as messages in any case.
//
// Thread-safety: none; plain numbers.
#pragma once

#include <cstdint>
#include <string>

namespace mercury {

struct MessageFigures {
  std::string peer;
  uint64_t bytes_sent = 0, bytes_received = 0;
  uint64_t messages_sent = 0, messages_received = 0;
};

}  // namespace mercury
