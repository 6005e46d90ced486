#include "packets/links_beside.h"

#include <algorithm>
#include <map>
#include <string>

namespace mercury {

int LinksBeside(const std::vector<Member>& members, int me, int lanes, bool host_sums) {
  const auto self =
      std::find_if(members.begin(), members.end(), [me](const Member& m) { return m.id == me; });
  if (self == members.end()) return 0;
  int here[2] = {}, elsewhere[2] = {};  // workers, servers
  std::map<std::string, int> leaders;   // by host
  for (const Member& member : members) {
    if (member.role == Role::kScheduler) continue;
    if (host_sums && member.role == Role::kWorker) {
      const auto [first, fresh] = leaders.try_emplace(member.host, member.id);
      first->second = std::min(first->second, member.id);
      if (!fresh) continue;
    }
    ++(member.host == self->host ? here : elsewhere)[member.role == Role::kServer ? 1 : 0];
  }
  const bool carries = !host_sums || self->role == Role::kServer || leaders[self->host] == me;
  const int own = carries ? elsewhere[self->role == Role::kServer ? 0 : 1] : 0;
  return lanes * (here[0] * elsewhere[1] + here[1] * elsewhere[0]) - own;
}

}  // namespace mercury
