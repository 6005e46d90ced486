// Which of the lanes that carry packets to a peer is called when there is one to send.
//
//                  +---- its link is full, or not there ----+
//                  v                                        |
//   full --asks--> working --got none--> resting --called--> working
//
// A lane that works asks again before it rests, or says that its link is full. So another is called
// only when none works, and what one link can carry stays on one: to call a lane for each packet
// costs more than the packet, where no core is free for it.
//
// Thread-safety: none. Invariant: while there is a packet for a peer, each lane whose link to it
// has room works, or another one does.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "packets/lane_endpoint.h"

namespace mercury {

class LaneCalls {
 public:
  // Has the lane ask. It is called with whatever the endpoint has locked.
  using Wake = std::function<void(int lane)>;

  // Only the first `carriers` carry what is offered.
  LaneCalls(int peers, int lanes, int carriers, Wake wake)
      : lanes_(lanes),
        carriers_(carriers),
        wake_(std::move(wake)),
        states_(static_cast<size_t>(peers * lanes), State::kFull) {}

  // The lane asks for a packet.
  void Asks(int peer, int lane) { Of(peer, lane) = State::kWorks; }
  // It has got none.
  void Rests(int peer, int lane) { Of(peer, lane) = State::kRests; }
  // It asks no more until its link has room.
  void Full(int peer, int lane) { Of(peer, lane) = State::kFull; }
  // There is something for the peer. `by`: the lane whose turn it is, or -1; where its link has
  // room, it asks before the turn is over.
  void Offer(int peer, int by) {
    if (lanes_ == 1) return;
    State* const first = &Of(peer, 0);
    State* const end = first + carriers_;
    if (std::find(first, end, State::kWorks) != end) return;
    State* const called = by >= 0 && by < carriers_ && first[by] == State::kRests
                              ? first + by
                              : std::find(first, end, State::kRests);
    if (called == end) return;
    *called = State::kWorks;
    if (called != first + by) wake_(static_cast<int>(called - first));
  }
  // There is something that this lane alone carries, whether or not others work.
  void OfferTo(int peer, int lane) {
    if (lanes_ == 1 || Of(peer, lane) != State::kRests) return;
    Of(peer, lane) = State::kWorks;
    wake_(lane);
  }

 private:
  enum class State : char { kFull, kWorks, kRests };

  State& Of(int peer, int lane) { return states_[static_cast<size_t>(LinkOf(peer, lane, lanes_))]; }

  const int lanes_, carriers_;
  const Wake wake_;
  std::vector<State> states_;
};

}  // namespace mercury
