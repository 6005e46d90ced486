// Workers that come while the job runs: a part of the C API.
#include "process/c_api.h"
#include "process/node.h"
#include "process/returned.h"
#include "transport/operation.h"

using mercury::Admission;
using mercury::Node;

int mercury_places(void) { return Node::Get().Places(); }

int mercury_outside(int* entry) {
  *entry = Node::Get().entry();
  return Node::Get().Outside() ? 1 : 0;
}

int mercury_came_late(void) { return Node::Get().came_late() ? 1 : 0; }

int mercury_next_to_let_in(int* entry) {
  const mercury::Newcomer newcomer = Node::Get().NextToLetIn();
  *entry = newcomer.entry;
  return newcomer.rank;
}

void mercury_say_admission(int rank, int entry, int admission) {
  Node::Get().SayAdmission({rank, entry}, static_cast<Admission>(admission));
}

int mercury_wait_admission(int rank, int entry, int admission, int slice_ms) {
  mercury::Status status;
  const bool over = Node::Get().WaitAdmission({rank, entry}, static_cast<Admission>(admission),
                                              slice_ms, &status);
  return over ? mercury::Return(status) : MERCURY_NOT_YET;
}

void mercury_do_without(int rank, const char* why) { Node::Get().DoWithout(rank, why); }

const char* mercury_standing(void) {
  return mercury::Text([] { return Node::Get().Standing(); }, "");
}

int mercury_enter(const char* standing) {
  return mercury::Guarded([&] { return Node::Get().Enter(standing); });
}

int mercury_let_in_head(void) { return mercury::kLetInHead; }
int mercury_release_head(void) { return mercury::kReleaseHead; }
