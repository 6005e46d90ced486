#include "process/blame.h"

#include <cctype>
#include <string>

namespace mercury {
namespace {

bool BeginsWith(const std::string& text, const std::string& what) {
  return text.rfind(what, 0) == 0;
}

// With a worker or a server that has a rank: "worker 1: ..." or "worker 1 has ...".
bool BeginsWithName(const std::string& text) {
  for (Role role : {Role::kWorker, Role::kServer}) {
    const std::string name = std::string(Name(role)) + " ";
    if (!BeginsWith(text, name) || text.size() == name.size()) continue;
    return std::isdigit(static_cast<unsigned char>(text[name.size()])) != 0;
  }
  return false;
}

}  // namespace

bool BlamesAnother(const Status& status, int me) {
  if (status.ok()) return false;
  const std::string& text = status.message;
  if (me != 0) {
    const std::string name = NodeName(me);
    for (const std::string& mine : {name + " ", name + ":", "lost " + name + " "}) {
      if (BeginsWith(text, mine)) return false;
    }
  }
  // Who is lost need not have a rank. All else is somebody's if it says so.
  return status.code == Code::kPeerLost || BeginsWithName(text);
}

}  // namespace mercury
