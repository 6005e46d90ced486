// How a failure is told: the one place that makes a sentence of a Status.
#include <atomic>

#include "base/status.h"

namespace mercury {
namespace {

std::atomic<Wording> g_wording{nullptr};

std::string List(const std::vector<Party>& parties, bool with_addresses) {
  std::string names;
  for (const Party& party : parties) {
    names += (names.empty() ? "" : ", ") + NodeName(party.role, party.rank);
    if (with_addresses && !party.address.empty()) names += " (" + party.address + ")";
  }
  return names;
}

std::string Pairs(const std::vector<Party>& parties) {
  std::string names;
  for (size_t i = 0; i < parties.size(); ++i) {
    names += i == 0 ? "" : i % 2 == 0 ? ", " : " and ";
    names += List({parties[i]}, false);
  }
  return names;
}

std::string Lead(const Blame& blame) {
  switch (blame.fault) {
    case Blame::kNobody:
    case Blame::kNamed:
      return "";
    case Blame::kDid:
      return List(blame.parties, false) + ": ";
    case Blame::kLost:
      return "lost " + List(blame.parties, true) + ": ";
    case Blame::kEnded:
      return List(blame.parties, false) + " ended: ";
    case Blame::kApart:
      return Pairs(blame.parties) + " cannot reach each other: ";
    case Blame::kUnreached:
      return List(blame.parties, false) + " at " + blame.parties[0].address + ": ";
  }
  return "";
}

std::string English(const Status& status) {
  const std::string& label = status.subject().label;
  return Lead(status.blame()) + (label.empty() ? "" : label + ": ") + status.detail();
}

}  // namespace

std::string Status::text() const {
  if (ok()) return {};
  const Wording wording = g_wording;
  return wording != nullptr ? wording(*this) : English(*this);
}

void SetWording(Wording wording) { g_wording = wording; }

}  // namespace mercury
