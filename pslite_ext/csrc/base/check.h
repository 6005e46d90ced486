// What is false only if the core itself is wrong. Builds with sanitizers and debug builds look, and
// end the process at once; in all others a check is compiled, so that it stays true to the code,
// and never evaluated.
//
// What a peer, a file or a script says is no matter for a check: they get a Status.
//
// Thread-safety: a check reads what its function may read.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace mercury {

[[noreturn]] inline void EndAtCheck(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "%s:%d: MERCURY_CHECK(%s) does not hold\n", file, line, condition);
  std::abort();
}

}  // namespace mercury

#ifdef MERCURY_CHECKED
#define MERCURY_CHECK(condition) \
  ((condition) ? void() : ::mercury::EndAtCheck(__FILE__, __LINE__, #condition))
#else
#define MERCURY_CHECK(condition) static_cast<void>(false && (condition))
#endif
