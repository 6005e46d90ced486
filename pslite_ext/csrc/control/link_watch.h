// Does what this node sends a peer arrive? For every link to a peer that is not the scheduler (the
// heartbeats watch that one), in both directions, by acknowledgements.
//
//   quiet --a message is sent--> waiting --all acknowledged--> quiet
//                                   \___nothing goes forward for the timeout___/--> silent
//                                   \___it has no connection for half of that___/--> cut
//
// Every message has a number. A peer acknowledges, once a tick, the last that it has received; the
// acknowledgement comes back on the connection on which messages came, which carries nothing else
// that way, so that it never waits behind tensors. Who waits and has nothing to send asks: the
// question has a number, too, so that a message that was lost leaves a gap in front of it, even if
// it was the last. A link on which all has been acknowledged is left in peace.
//
// A large message on a slow link takes its time. While bytes of messages go forward on its
// connection (`Moved`), the link is not silent. Bytes of questions do not count: a box on the way
// that takes everything and delivers nothing would look alive.
//
// Thread-safety: none; owned by the van's I/O loop. No clock, no sockets. Invariants: a link is
// reported once; a link that is quiet costs nothing.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace mercury {

class LinkWatch {
 public:
  // More than a question can have on the wire.
  static constexpr int64_t kQuestionBytesMax = 512;

  struct Due {
    std::vector<int> acknowledge;  // tell these what has been received of them: received()
    std::vector<int> ask;          // send these a question
    std::vector<int> silent;       // nothing has gone forward to these for too long
    std::vector<int> cut;          // a connection to these broke, and no other could be made
  };

  LinkWatch(int64_t interval_ms, int64_t timeout_ms)
      : interval_ms_(interval_ms), timeout_ms_(timeout_ms) {}

  void Sent(int peer, uint64_t number, int64_t now_ms);
  void Received(int peer, uint64_t number) { links_[peer].received = number; }
  void Acknowledged(int peer, uint64_t number, int64_t now_ms);
  // So many bytes of the connection to it have been taken by the other end's system. With another
  // `connection` they are counted anew.
  void Moved(int peer, int connection, int64_t bytes, int64_t now_ms);
  // Whether there is no connection to it any more.
  void Connected(int peer, bool connected, int64_t now_ms);
  // It has left in good order: nothing is expected of it.
  void Forget(int peer) { links_[peer].gone = true; }
  // The link has failed: it is not reported again.
  void Break(int peer) { links_[peer].broken = true; }
  bool gone(int peer) const;
  bool broken(int peer) const;
  uint64_t received(int peer) const;
  // Those that have not acknowledged everything.
  std::vector<int> Waiting() const;
  Due Tick(int64_t now_ms);

 private:
  struct Traffic {
    uint64_t sent = 0, acknowledged = 0;  // numbers of the last messages
    uint64_t received = 0, told = 0;
    int64_t sent_ms = 0;     // when something was last sent
    int64_t forward_ms = 0;  // when something last went forward, or began to wait
    int64_t down_ms = -1;    // since when there is no connection; -1: there is one
    int connection = -1;
    int64_t question_bytes = 0;
    int64_t moved_bytes = 0;  // of messages
    bool broken = false, gone = false;
    bool waits() const { return !broken && !gone && sent > acknowledged; }
  };

  const int64_t interval_ms_, timeout_ms_;
  int64_t last_tick_ms_ = 0;
  bool ticked_ = false;
  std::map<int, Traffic> links_;
};

}  // namespace mercury
