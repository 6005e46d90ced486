#include "transport/figures.h"

namespace mercury {
namespace {

std::string Number(const char* name, uint64_t value) {
  return std::string("\"") + name + "\":" + std::to_string(value);
}

// Lanes have links of their own: one peer's are shown as one.
std::vector<LinkFigures> Merged(const std::vector<LinkFigures>& links) {
  std::vector<LinkFigures> peers;
  for (const LinkFigures& link : links) {
    size_t i = 0;
    while (i < peers.size() && peers[i].peer != link.peer) ++i;
    if (i == peers.size()) {
      peers.push_back(link);
      continue;
    }
    LinkFigures& peer = peers[i];
    peer.connected = peer.connected || link.connected;
    peer.counters += link.counters;
    peer.preemptions += link.preemptions;
    peer.segments_sent_again += link.segments_sent_again;
    peer.rate += link.rate;
    peer.window_bytes += link.window_bytes;
    peer.under_way_bytes += link.under_way_bytes;
    peer.blocks += link.blocks;
    peer.depths.insert(peer.depths.end(), link.depths.begin(), link.depths.end());
  }
  return peers;
}

std::string Json(const LinkFigures& link, bool with_blocks) {
  const LinkCounters& c = link.counters;
  std::string out = "{\"peer\":\"" + link.peer + "\",\"connected\":" + (link.connected ? "1" : "0");
  for (const std::string& field :
       {Number("bytes_sent", c.bytes_sent), Number("bytes_received", c.bytes_received),
        Number("packets_sent", c.packets_sent), Number("packets_received", c.packets_received),
        Number("send_calls", c.send_calls), Number("receive_calls", c.receive_calls),
        Number("blocked_us", static_cast<uint64_t>(c.blocked_us)),
        Number("preemptions", link.preemptions),
        Number("rate_bytes_per_s", static_cast<uint64_t>(link.rate)),
        Number("round_trip_us", static_cast<uint64_t>(link.round_trip_us)),
        Number("segments_sent_again", link.segments_sent_again),
        Number("window_bytes", link.window_bytes), Number("under_way_bytes", link.under_way_bytes),
        Number("packet_bytes", link.packet_bytes),
        Number("awaited_permille", link.awaited_permille)}) {
    out += "," + field;
  }
  const BlockFigures& b = link.blocks;
  for (const std::string& field :
       {Number("blocks", b.blocks), Number("block_bytes", b.bytes), Number("held_us", b.held_us),
        Number("transfer_error_us", static_cast<uint64_t>(b.transfer_error_us)),
        Number("block_rate_bytes_per_s", static_cast<uint64_t>(b.bytes_per_second))}) {
    if (with_blocks) out += "," + field;
  }
  out += ",\"queue\":[";
  for (size_t i = 0; i < link.depths.size(); ++i) {
    out += (i == 0 ? "[" : ",[") + std::to_string(link.depths[i].first) + "," +
           std::to_string(link.depths[i].second) + "]";
  }
  return out + "]}";
}

}  // namespace

std::vector<std::pair<std::string, uint64_t>> ProfileTotals(const ProphetFigures& figures) {
  return {{"profile_known", figures.known ? 1 : 0},
          {"profiles", figures.profiles},
          {"iterations", figures.iterations},
          {"production_error_us", static_cast<uint64_t>(figures.production_error_us)},
          {"waits", figures.waits},
          {"wait_first_us", figures.wait_first_us},
          {"wait_later_us", figures.wait_later_us}};
}

std::string FiguresJson(const std::string& role, int rank, const std::string& policy,
                        const std::vector<LinkFigures>& links,
                        const std::vector<std::pair<std::string, uint64_t>>& totals) {
  std::string out = "{\"role\":\"" + role + "\",\"rank\":" + std::to_string(rank) +
                    ",\"policy\":\"" + policy + "\"";
  for (const auto& [name, value] : totals) out += "," + Number(name.c_str(), value);
  out += ",\"peers\":[";
  bool first = true;
  for (const LinkFigures& peer : Merged(links)) {
    out += (first ? "" : ",") + Json(peer, policy == Name(PolicyKind::kProphet));
    first = false;
  }
  return out + "]}";
}

std::string WithMessages(std::string figures, const std::vector<MessageFigures>& peers) {
  std::string list;
  for (const MessageFigures& peer : peers) {
    list += (list.empty() ? "{\"peer\":\"" : ",{\"peer\":\"") + peer.peer + "\"," +
            Number("bytes_sent", peer.bytes_sent) + "," +
            Number("bytes_received", peer.bytes_received) + "," +
            Number("messages_sent", peer.messages_sent) + "," +
            Number("messages_received", peer.messages_received) + "}";
  }
  if (figures != "{}") figures.insert(1, "\"messages\":[" + list + "],");
  return figures;
}

std::string WithTotal(std::string figures, const char* name, uint64_t value) {
  if (figures != "{}") figures.insert(1, Number(name, value) + ",");
  return figures;
}

}  // namespace mercury
