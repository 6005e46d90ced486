#include "packets/links_beside.h"

#include <algorithm>

namespace mercury {

int LinksBeside(const std::vector<Member>& members, int me, int lanes) {
  const auto self =
      std::find_if(members.begin(), members.end(), [me](const Member& m) { return m.id == me; });
  if (self == members.end()) return 0;
  int here[2] = {}, elsewhere[2] = {};  // workers, servers
  for (const Member& member : members) {
    if (member.role == Role::kScheduler) continue;
    ++(member.host == self->host ? here : elsewhere)[member.role == Role::kServer ? 1 : 0];
  }
  const int own = elsewhere[self->role == Role::kServer ? 0 : 1];
  return lanes * (here[0] * elsewhere[1] + here[1] * elsewhere[0]) - own;
}

}  // namespace mercury
