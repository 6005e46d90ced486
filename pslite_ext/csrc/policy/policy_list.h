// All policies, one line each: nothing else in the core lists them.
//
// The number travels on the wire and is never used again for another policy. A *unit* (policy.h) is
// a slot, a whole tensor, or a partition of MERCURY_PARTITION_BYTES, by default so many bytes.
// `acknowledges`: servers tell that a unit has arrived, which is what stop-and-wait waits for. Sums
// would not do, for two workers that start with different tensors would wait for each other.
//
// Thread-safety: constants.
#pragma once

// clang-format off
#define MERCURY_POLICIES(POLICY)                                                            \
  /*     kind           number  name             made by            unit       bytes    acknowledges */ \
  POLICY(kPriority,      0,     "priority",      MakePacketPolicy,  kSlot,      0,       false)  \
  POLICY(kFifo,          1,     "fifo",          MakePacketPolicy,  kSlot,      0,       false)  \
  POLICY(kWfbp,          2,     "wfbp",          MakeUnitPolicy,    kTensor,    0,       false)  \
  POLICY(kP3,            3,     "p3",            MakeUnitPolicy,    kPartition, 200000,  true)   \
  POLICY(kByteScheduler, 4,     "bytescheduler", MakeUnitPolicy,    kPartition, 4 << 20, true)   \
  POLICY(kProphet,       5,     "prophet",       MakeProphetPolicy, kSlot,      0,       false)
// clang-format on
