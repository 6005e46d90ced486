// What MLfabric's nodes say to each other, as bytes: a push request, an order, news, and what the
// server has applied.
//
// A letter is a kind, then the fields of that kind in the order of their structs: integers and
// doubles in eight bytes, enumerations and truths in one, lists as their length in four bytes and
// their items, texts likewise. All little-endian. Neither sender nor receiver is in it: who brings
// it knows them. The first byte is the form's version.
//
// Thread-safety: pure functions. Invariants: Decode(Encode(x)) gives x; Decode accepts nothing that
// Encode cannot have made, and no list of places that does not rise, no number that is not finite,
// nothing longer than the limits below.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "fabric/live/collector.h"
#include "fabric/live/model_daemon.h"
#include "fabric/live/orders.h"

namespace mercury::fabric {

constexpr uint8_t kLetterVersion = 1;
constexpr size_t kLetterBytesMax = 1 << 20;
constexpr uint32_t kListMost = 1 << 15;
constexpr uint32_t kLetterTextBytesMax = 1024;

struct Letter {
  enum class Kind : uint8_t { kRequest = 1, kOrder = 2, kNews = 3, kConfirm = 4 };
  Kind kind = Kind::kRequest;
  Request request;              // worker -> scheduler
  Order order;                  // scheduler -> all
  News news;                    // server, replica -> scheduler
  double history_norm = 0;      // with news: of the model's last step
  std::vector<Placed> applied;  // server -> replica
};

std::string Encode(const Letter& letter);
Status Decode(std::string_view bytes, Letter* letter);

}  // namespace mercury::fabric
