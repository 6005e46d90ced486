// The live figures of the data plane, as JSON text for Python.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "control/message_figures.h"
#include "links/link_counters.h"
#include "policy/policy.h"

namespace mercury {

struct LinkFigures {
  std::string peer;
  bool connected = false;  // or a link that has ended
  LinkCounters counters;
  uint64_t preemptions = 0;
  std::vector<std::pair<int32_t, size_t>> depths;  // by priority
  double rate = 0;                                 // bytes a second, as measured; 0: not known
  int64_t round_trip_us = 0;
  uint64_t segments_sent_again = 0;
  uint64_t window_bytes = 0;
  uint64_t under_way_bytes = 0;
  uint64_t packet_bytes = 0;
  uint64_t awaited_permille = 0;  // a server's: of the time, lately, for which sums waited for it
  BlockFigures blocks;            // prophet's
};

// What a profile adds to the totals.
std::vector<std::pair<std::string, uint64_t>> ProfileTotals(const ProphetFigures& figures);

std::string FiguresJson(const std::string& role, int rank, const std::string& policy,
                        const std::vector<LinkFigures>& links,
                        const std::vector<std::pair<std::string, uint64_t>>& totals);

// Both paths' traffic beside each other.
std::string WithMessages(std::string figures, const std::vector<MessageFigures>& peers);

// One more total; of nothing ("{}") there is none.
std::string WithTotal(std::string figures, const char* name, uint64_t value);

}  // namespace mercury
