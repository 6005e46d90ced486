// The numbers of the classic path's messages, as they travel in ps-lite's meta (classic_worker.h
// has the whole layout).
//
// Thread-safety: constants.
#pragma once

namespace mercury {

enum class StoreOperation : int { kInit = 1, kPush = 2, kPull = 3 };

// ps-lite's number for all that the classic path sends.
constexpr int kClassicApp = 0;

// The head of a push's or pull's message: its StoreOperation, and how many messages share the
// tensor's part on that server; the answer brings it back.
constexpr int kHeadBits = 8;
constexpr int MessagesOf(int head) { return head >> kHeadBits; }
// In the option of a push's or pull's request.
constexpr int kAsynchronousBit = 1 << 16;
// In the option of a pull's request that goes right behind its push.
constexpr int kBehindPushBit = 1 << 17;
// The head of a command that is a letter (letters/job_letters.h), as its answer is.
constexpr int kLetterHead = -0x6c657474;

}  // namespace mercury
