#include "fabric/live/letters.h"

#include <algorithm>
#include <utility>

#include "base/fields.h"
#include "base/variants.h"

namespace mercury::fabric {
namespace {

bool IsWorker(int node) { return node >= 0 && node < kWorkersMost; }
int64_t PlaceOf(int64_t place) { return place; }
int64_t PlaceOf(const Placed& update) { return update.place; }

// Pieces follow each other, up to the hop's end.
bool InOrder(const Hop& hop) {
  double before_s = hop.start_s;
  return std::all_of(hop.pieces.begin(), hop.pieces.end(), [&](const RateSpan& piece) {
    return std::exchange(before_s, piece.end_s) <= piece.start_s && piece.start_s <= piece.end_s &&
           piece.end_s <= hop.end_s && piece.bit_per_s > 0;
  });
}

template <typename A>
class LetterWalk : public FieldWalk<A, LetterWalk<A>> {
  using Base = FieldWalk<A, LetterWalk<A>>;
  using Base::All, Base::Choice, Base::Must;

  // Places, or what has them, rise from 1.
  template <typename List>
  bool Rising(List& list) {
    int64_t before = 0;
    const auto rises = [&before](const auto& its) {
      const int64_t place = PlaceOf(its);
      return std::exchange(before, place) < place;
    };
    return All(list) && Must(std::all_of(list.begin(), list.end(), rises));
  }

 public:
  using Base::Base;

  bool Walk(Its<A, UpdateId>& its) { return All(its.worker, its.number); }
  bool Walk(Its<A, Placed>& its) {
    return All(its.place, its.id, its.version, its.round, its.reduce) &&
           Must(its.version >= 0 && its.round >= 0 && its.round <= its.place &&
                (its.round != 0 || !its.reduce));
  }
  bool Walk(Its<A, RateSpan>& its) { return All(its.start_s, its.end_s, its.bit_per_s); }
  bool Walk(Its<A, Hop>& its) {
    return Choice(its.goal, static_cast<int>(Goal::kReplica)) &&
           All(its.from, its.to, its.gathered, its.to_aggregator, its.two_sums, its.chained) &&
           Rising(its.places) && All(its.update, its.bytes, its.start_s, its.end_s, its.pieces) &&
           Must(InOrder(its) && its.bytes >= 0 && its.bytes <= 2 * kUpdateBytesMax);
  }
  bool Walk(Its<A, Rule>& its) {
    return All(its.momentum, its.nesterov) && Must(its.momentum >= 0 && its.momentum < 1);
  }
  bool Walk(Its<A, Seat>& its) {
    return All(its.node, its.host, its.port, its.link_bit_per_s) &&
           Must(its.node >= kLeastNode && its.node != kSchedulerNode && its.node < kWorkersMost &&
                its.port >= 1 && its.port <= 65535);
  }
  bool Walk(Its<A, Wish>& its) {
    return All(its.updates, its.reduce, its.number) && Must(its.updates >= 0 && its.reduce >= 0);
  }
  bool Walk(Its<A, Onward>& its) {
    return All(its.by, its.worker, its.wish) && Must(IsWorker(its.by) && IsWorker(its.worker));
  }
  bool Walk(Its<A, Edge>& its) {
    return All(its.from, its.to) &&
           Must((its.from == kServerNode || IsWorker(its.from)) && IsWorker(its.to));
  }

  bool Walk(Its<A, Request>& its) {
    return All(its.id, its.version, its.bytes, its.norm, its.pushed_s, its.reduce, its.reign);
  }
  bool Walk(Its<A, Order>& its) {
    return Choice(its.kind, Order::kFail) && All(its.node) && Rising(its.updates) &&
           Rising(its.places) && All(its.place, its.even_arrived, its.hop, its.update) &&
           Choice(its.fate, static_cast<int>(Fate::kLost)) && All(its.text) &&
           Must((its.kind != Order::kSend && its.kind != Order::kGather &&
                 its.kind != Order::kPassOn) ||
                !its.hop.places.empty());
  }
  bool Walk(Its<A, News>& its) {
    return Choice(its.kind, News::kTookOver) && Rising(its.places) &&
           All(its.place, its.version, its.history_norm);
  }
  bool Walk(Its<A, ConfirmLetter>& its) { return Rising(its.applied); }
  bool Walk(Its<A, Joining>& its) {
    return All(its.host, its.port, its.workers, its.servers, its.replicas, its.elements,
               its.checksum, its.has_rule, its.rule, its.link_bit_per_s, its.told);
  }
  bool Walk(Its<A, Attendance>& its) {
    return All(its.identity, its.delay_bound, its.staleness.updates, its.rule, its.elements,
               its.first_from_worker, its.weights, its.codec, its.seats);
  }
  bool Walk(Its<A, ReadyLetter>& /*its*/) { return true; }
  bool Walk(Its<A, BeginLetter>& /*its*/) { return true; }
  bool Walk(Its<A, TimeLetter>& its) { return All(its.asked_us, its.answered_us); }
  bool Walk(Its<A, UpdatesLetter>& its) {
    return All(its.number, its.two) && Choice(its.goal, static_cast<int>(Goal::kReplica)) &&
           All(its.to_aggregator, its.chained) && Rising(its.places) && Rising(its.skipped) &&
           Must(!its.chained || (!its.places.empty() && its.number != 0));
  }
  bool Walk(Its<A, AbortedLetter>& its) { return All(its.number); }
  bool Walk(Its<A, ModelLetter>& its) {
    const auto& counts = its.progress;
    return All(its.number, its.two, its.version, its.place, its.progress, its.wish, its.onward,
               its.by_packets) &&
           Must(std::all_of(counts.begin(), counts.end(), [](int64_t n) { return n >= 0; }));
  }
  bool Walk(Its<A, GetLetter>& its) { return All(its.wish); }
  bool Walk(Its<A, UnreachableLetter>& its) { return All(its.node); }
  bool Walk(Its<A, ServerIsLetter>& its) { return All(its.node); }
  bool Walk(Its<A, GoneLetter>& its) {
    return All(its.node) && Must(its.node >= kLeastNode && its.node < kWorkersMost);
  }
  bool Walk(Its<A, Carriage>& its) {
    return All(its.from, its.to, its.bits, its.start_s, its.end_s, its.passed_on);
  }
  bool Walk(Its<A, GotLetter>& its) { return All(its.reign, its.wish); }
  bool Walk(Its<A, AskingLetter>& its) { return All(its.tree); }
  bool Walk(Its<A, Tree>& its) {
    return All(its.bytes, its.edges, its.by_packets, its.share, its.takes_s) &&
           Must(its.bytes > 0 && its.bytes <= kUpdateBytesMax && its.share >= 0 && its.share <= 1 &&
                its.takes_s >= 0);
  }
  bool Walk(Its<A, Hearing>& its) { return All(its.update, its.at_s); }
  bool Walk(Its<A, StripeLetter>& its) {
    return All(its.to) && Walk(its.letter) && All(its.reduce) &&
           Must(IsReplicaNode(its.to) || its.to == kServerNode || IsWorker(its.to));
  }
};

}  // namespace

std::string Encode(const Letter& letter) {
  std::string bytes{static_cast<char>(kLetterVersion), static_cast<char>(letter.index() + 1)};
  LetterWalk<FieldWriter> writer(&bytes);
  std::visit([&](const auto& its) { writer.Walk(its); }, letter);
  return bytes;
}

Status Decode(std::string_view bytes, Letter* letter) {
  *letter = Letter();
  if (bytes.size() < 2 || bytes.size() > kLetterBytesMax) {
    return Status::Corrupt("a letter of MLfabric has " + std::to_string(bytes.size()) + " bytes");
  }
  const auto version = static_cast<uint8_t>(bytes[0]);
  if (version != kLetterVersion) {
    return Status::Corrupt("a letter of MLfabric has version " + std::to_string(version) +
                           "; this node knows " + std::to_string(kLetterVersion));
  }
  LetterWalk<FieldReader> reader(bytes.substr(2), kLetterTextBytesMax, kListMost);
  const auto read = [&](auto& its) { return reader.Walk(its) && reader.at_end(); };
  // No letter has number 0: before the first there is none, either.
  const bool known = BecomeAt(static_cast<uint8_t>(bytes[1]) - size_t{1}, letter);
  if (known && std::visit(read, *letter)) return Status::Ok();
  *letter = Letter();
  return Status::Corrupt("a letter of MLfabric makes no sense");
}

}  // namespace mercury::fabric
