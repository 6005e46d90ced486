#include "process/blame.h"

#include <algorithm>

namespace mercury {

bool BlamesAnother(const Status& status, const std::optional<Party>& me) {
  const Blame& blame = status.blame();
  switch (blame.fault) {
    case Blame::kNobody:
      return status.code() == Code::kPeerLost;  // who is lost need not have a rank
    case Blame::kUnreached:
      return false;
    case Blame::kApart:  // neither of the two, so the one that is named first
    case Blame::kNamed:
    case Blame::kDid:
    case Blame::kEnded:
      return !me || !blame.parties[0].Is(*me);
    case Blame::kLost:
      return !me || std::none_of(blame.parties.begin(), blame.parties.end(),
                                 [&](const Party& party) { return party.Is(*me); });
  }
  return false;
}

bool BlamesAnother(const Status& status, int me) {
  return BlamesAnother(status,
                       me == 0 ? std::nullopt : std::optional(Party{RoleOf(me), RankOf(me), ""}));
}

}  // namespace mercury
