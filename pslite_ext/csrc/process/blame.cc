#include "process/blame.h"

#include <algorithm>
#include <optional>
#include <string>

namespace mercury {
namespace {

bool BeginsWith(const std::string& text, const std::string& what) {
  return text.rfind(what, 0) == 0;
}

// What follows the name that `text` begins with, of a node that sends data: by its rank, or, under
// MLfabric, as the only one of its role. Null: it begins with none.
std::optional<std::string> AfterName(const std::string& text) {
  for (const std::string only : {"the server ", "the replica "}) {
    if (BeginsWith(text, only)) return text.substr(only.size());
  }
  for (Role role : {Role::kWorker, Role::kServer}) {
    const std::string name = std::string(Name(role)) + " ";
    if (!BeginsWith(text, name)) continue;
    const size_t end = std::min(text.find_first_not_of("0123456789", name.size()), text.size());
    if (end == name.size()) break;
    return text.substr(std::min(end + 1, text.size()));
  }
  return std::nullopt;
}

}  // namespace

bool BlamesAnother(const Status& status, const std::string& me) {
  if (status.ok()) return false;
  const std::string& text = status.message;
  if (!me.empty()) {
    if (text == "another node cannot reach " + me) return false;
    for (const std::string& mine : {me + " ", me + ":", "lost " + me + " "}) {
      if (BeginsWith(text, mine)) return false;
    }
  }
  // "worker 1 at 10.0.0.5:40123: ..." is what this node could not reach when it came.
  const std::optional<std::string> rest = AfterName(text);
  if (BeginsWith(rest.value_or(""), "at ") || BeginsWith(text, "the scheduler at ")) return false;
  // Who is lost need not have a rank. All else is somebody's if it says so.
  return status.code == Code::kPeerLost || rest.has_value();
}

bool BlamesAnother(const Status& status, int me) {
  return BlamesAnother(status, me == 0 ? std::string() : NodeName(me));
}

}  // namespace mercury
