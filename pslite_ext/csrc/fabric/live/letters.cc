#include "fabric/live/letters.h"

#include "base/fields.h"

namespace mercury::fabric {
namespace {

using Writer = FieldWriter;
using Reader = FieldReader;

template <typename A, typename U>
bool Walk(A* a, U& update) {
  return a->Integer(update.worker) && a->Integer(update.number);
}

// Places rise from 1.
template <typename A, typename List>
bool Places(A* a, List& places) {
  if (!a->Length(places)) return false;
  int64_t before = 0;
  for (auto& place : places) {
    if (!a->Integer(place) || (kReads<A> && place <= before)) return false;
    before = place;
  }
  return true;
}

template <typename A, typename List>
bool Counts(A* a, List& counts) {
  if (!a->Length(counts)) return false;
  for (auto& count : counts) {
    if (!a->Integer(count) || (kReads<A> && count < 0)) return false;
  }
  return true;
}

template <typename A, typename List>
bool Updates(A* a, List& updates) {
  if (!a->Length(updates)) return false;
  int64_t before = 0;
  for (auto& update : updates) {
    if (!a->Integer(update.place) || !Walk(a, update.id) || !a->Integer(update.version) ||
        !a->Integer(update.round) || !Choice(a, update.reduce, 1)) {
      return false;
    }
    if (kReads<A> && (update.place <= before || update.version < 0 || update.round < 0 ||
                      update.round > update.place || (update.reduce && update.round == 0))) {
      return false;
    }
    before = update.place;
  }
  return true;
}

template <typename A, typename H>
bool WalkHop(A* a, H& hop) {
  if (!Choice(a, hop.goal, static_cast<int>(Goal::kReplica)) || !a->Integer(hop.from) ||
      !a->Integer(hop.to) || !Choice(a, hop.gathered, 1) || !Choice(a, hop.to_aggregator, 1) ||
      !Choice(a, hop.two_sums, 1) || !Places(a, hop.places) || !Walk(a, hop.update) ||
      !a->Integer(hop.bytes) || !a->Real(hop.start_s) || !a->Real(hop.end_s) ||
      !a->Length(hop.pieces)) {
    return false;
  }
  double before_s = hop.start_s;
  for (auto& piece : hop.pieces) {
    if (!a->Real(piece.start_s) || !a->Real(piece.end_s) || !a->Real(piece.bit_per_s)) return false;
    if (kReads<A> && (piece.start_s < before_s || piece.end_s < piece.start_s ||
                      piece.end_s > hop.end_s || piece.bit_per_s <= 0)) {
      return false;
    }
    before_s = piece.end_s;
  }
  return !kReads<A> || (hop.bytes >= 0 && hop.bytes <= 2 * kUpdateBytesMax);
}

template <typename A, typename O>
bool WalkOrder(A* a, O& order) {
  if (!Choice(a, order.kind, Order::kFail) || !a->Integer(order.node) ||
      !Updates(a, order.updates) || !Places(a, order.places) || !a->Integer(order.place) ||
      !Choice(a, order.even_arrived, 1) || !WalkHop(a, order.hop) || !Walk(a, order.update) ||
      !Choice(a, order.fate, static_cast<int>(Fate::kLost)) || !a->Text(order.text)) {
    return false;
  }
  const bool moves = order.kind == Order::kSend || order.kind == Order::kGather;
  return !kReads<A> || !moves || !order.hop.places.empty();
}

template <typename A, typename R>
bool WalkRule(A* a, R& rule) {
  return a->Real(rule.momentum) && Choice(a, rule.nesterov, 1) &&
         (!kReads<A> || (rule.momentum >= 0 && rule.momentum < 1));
}

template <typename A, typename J>
bool WalkJoining(A* a, J& joining) {
  return a->Text(joining.host) && a->Integer(joining.port) && a->Integer(joining.workers) &&
         Choice(a, joining.replica, 1) && a->Integer(joining.elements) &&
         a->Integer(joining.checksum) && Choice(a, joining.has_rule, 1) &&
         WalkRule(a, joining.rule) && a->Real(joining.link_bit_per_s) && a->Text(joining.told);
}

template <typename A, typename R>
bool WalkRoster(A* a, R& roster) {
  if (!a->Text(roster.identity) || !a->Integer(roster.delay_bound) ||
      !a->Integer(roster.staleness.updates) || !WalkRule(a, roster.rule) ||
      !a->Integer(roster.elements) || !Choice(a, roster.first_from_worker, 1) ||
      !a->Length(roster.weights)) {
    return false;
  }
  for (auto& weight : roster.weights) {
    if (!a->Real(weight)) return false;
  }
  if (!a->Length(roster.seats)) return false;
  for (auto& seat : roster.seats) {
    if (!a->Integer(seat.node) || !a->Text(seat.host) || !a->Integer(seat.port) ||
        !a->Real(seat.link_bit_per_s)) {
      return false;
    }
    if (kReads<A> && (seat.node < kReplicaNode || seat.node >= kWorkersMost || seat.port < 1 ||
                      seat.port > 65535)) {
      return false;
    }
  }
  return true;
}

template <typename A, typename List>
bool WalkOnward(A* a, List& onward) {
  if (!a->Length(onward)) return false;
  for (auto& next : onward) {
    if (!a->Integer(next.worker) || !a->Integer(next.wish)) return false;
    if (kReads<A> && (next.worker < 0 || next.worker >= kWorkersMost)) return false;
  }
  return true;
}

template <typename A, typename T>
bool WalkTree(A* a, T& tree) {
  if (!a->Integer(tree.bytes) || !a->Length(tree.edges)) return false;
  for (auto& edge : tree.edges) {
    if (!a->Integer(edge.from) || !a->Integer(edge.to)) return false;
    if (kReads<A> && (edge.from < kServerNode || edge.from >= kWorkersMost || edge.to < 0 ||
                      edge.to >= kWorkersMost)) {
      return false;
    }
  }
  return !kReads<A> || (tree.bytes > 0 && tree.bytes <= kUpdateBytesMax);
}

template <typename A, typename W>
bool WalkWaybill(A* a, W& waybill) {
  return a->Integer(waybill.number) && Choice(a, waybill.goal, static_cast<int>(Goal::kReplica)) &&
         Choice(a, waybill.to_aggregator, 1) && Places(a, waybill.places) &&
         Places(a, waybill.skipped) && a->Integer(waybill.version) && a->Integer(waybill.place) &&
         Counts(a, waybill.progress) && a->Integer(waybill.wish) && WalkOnward(a, waybill.onward);
}

template <typename A, typename W>
bool WalkWish(A* a, W& wish) {
  return a->Integer(wish.updates) && a->Integer(wish.reduce) && a->Integer(wish.number) &&
         (!kReads<A> || (wish.updates >= 0 && wish.reduce >= 0));
}

template <typename A, typename C>
bool WalkCarriage(A* a, C& carriage) {
  return a->Integer(carriage.from) && a->Integer(carriage.to) && a->Real(carriage.bits) &&
         a->Real(carriage.start_s) && a->Real(carriage.end_s);
}

template <typename A, typename L>
bool WalkLetter(A* a, L& letter) {
  switch (letter.kind) {
    case Letter::Kind::kRequest:
      return Walk(a, letter.request.id) && a->Integer(letter.request.version) &&
             a->Integer(letter.request.bytes) && a->Real(letter.request.norm) &&
             a->Real(letter.request.pushed_s) && Choice(a, letter.request.reduce, 1) &&
             Choice(a, letter.request.of_replica, 1);
    case Letter::Kind::kOrder:
      return WalkOrder(a, letter.order);
    case Letter::Kind::kNews:
      return Choice(a, letter.news.kind, News::kTookOver) && Places(a, letter.news.places) &&
             a->Integer(letter.news.place) && a->Integer(letter.news.version) &&
             a->Real(letter.history_norm);
    case Letter::Kind::kConfirm:
      return Updates(a, letter.applied);
    case Letter::Kind::kJoin:
      return WalkJoining(a, letter.joining);
    case Letter::Kind::kRoster:
      return WalkRoster(a, letter.roster);
    case Letter::Kind::kReady:
    case Letter::Kind::kBegin:
      return true;
    case Letter::Kind::kGet:
    case Letter::Kind::kGot:
      return WalkWish(a, letter.wish);
    case Letter::Kind::kTime:
      return a->Integer(letter.asked_us) && a->Integer(letter.answered_us);
    case Letter::Kind::kDelivered:
    case Letter::Kind::kAborted:
    case Letter::Kind::kModel:
      return WalkWaybill(a, letter.waybill);
    case Letter::Kind::kUnreachable:
    case Letter::Kind::kServerIs:
      return a->Integer(letter.node);
    case Letter::Kind::kCarried:
      return WalkCarriage(a, letter.carriage);
    case Letter::Kind::kAsking:
    case Letter::Kind::kTree:
      return WalkTree(a, letter.tree);
    case Letter::Kind::kHeard:
      return Walk(a, letter.hearing.update) && a->Real(letter.hearing.at_s);
  }
  return false;
}

}  // namespace

std::string Encode(const Letter& letter) {
  std::string bytes{static_cast<char>(kLetterVersion), static_cast<char>(letter.kind)};
  Writer writer(&bytes);
  WalkLetter(&writer, letter);
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
  letter->kind = static_cast<Letter::Kind>(bytes[1]);
  Reader reader(bytes.substr(2), kLetterTextBytesMax, kListMost);
  if (!WalkLetter(&reader, *letter) || !reader.at_end()) {
    *letter = Letter();
    return Status::Corrupt("a letter of MLfabric makes no sense");
  }
  return Status::Ok();
}

}  // namespace mercury::fabric
