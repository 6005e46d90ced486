// What a server has answered, put where the operation wants it.
//
// Thread-safety: of one piece, one caller. Ownership: sets of rows share the answer's memory.
// Invariant: nothing is written that does not fit.
#pragma once

#include <cstddef>

#include "base/status.h"
#include "messages/partition.h"
#include "ps/ps.h"
#include "transport/operation.h"

namespace mercury {

// Of a pull, the answer for the `i`th piece; what is wrong with it is worded as the end of
// "... answered with".
Status TakeValue(const ps::SArray<char>& payload, const Piece& piece, size_t i, Operation* op);

}  // namespace mercury
