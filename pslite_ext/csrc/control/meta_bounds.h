// Is this buffer a meta that ps-lite's UnpackMeta can read without leaving it?
//
// ps-lite trusts the counts inside a meta; this is the check in front. Thread-safety: pure
// function.
#pragma once

#include <cstddef>

#include "base/status.h"

namespace mercury {

// Of one that is longer nothing would be read: who makes a body of unknown length looks first.
constexpr size_t kMetaBodyBytesMax = size_t{16} << 20;
constexpr int kMetaNodesMax = 4096;

// `meta` must be aligned to 8 bytes (UnpackMeta reads 64-bit fields in place).
Status CheckMeta(const char* meta, size_t bytes);

}  // namespace mercury
