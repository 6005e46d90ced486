// Members of a job that is none, and what is done about them.
#pragma once

#include <string>
#include <utility>

#include "control/membership.h"

namespace mercury::testing {

inline Member M(Role role, int port, int hint = -1) {
  Member m;
  m.role = role;
  m.host = "10.0.0." + std::to_string(port % 7);
  m.port = port;
  m.rank_hint = hint;
  m.life = static_cast<uint64_t>(port) * 1000;
  return m;
}

inline const Action* Find(const Actions& actions, Action::Kind kind) {
  for (const Action& a : actions) {
    if (a.kind == kind) return &a;
  }
  return nullptr;
}

inline bool Says(const Action* action, const std::string& text) {
  if (action == nullptr) return false;
  const std::string said = action->status.ok() ? action->text : action->status.text();
  return said.find(text) != std::string::npos;
}

// Registers, and is reached at once.
inline Actions Join(SchedulerMembership* s, const Member& member, int64_t now_ms) {
  Actions actions = s->Register(member, now_ms);
  const int guest = s->members().empty() ? 0 : s->members().back().guest;
  for (Action& action : s->GuestIsThere(guest, now_ms)) actions.push_back(std::move(action));
  return actions;
}

inline MembershipTimes Times() { return {1000, 10000, 10000, 60000}; }

}  // namespace mercury::testing
