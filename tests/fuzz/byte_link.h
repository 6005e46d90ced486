// One direction of a link in a fuzz target: bytes that a peer may have sent, given to an end.
#pragma once

#include <algorithm>
#include <cstring>

#include "fuzz.h"
#include "links/endpoint.h"
#include "links/packet_reader.h"

class ByteLink : private mercury::PacketSink {
 public:
  ByteLink(mercury::Endpoint* end, int peer, size_t packet_bytes_max, bool checksum)
      : end_(end), peer_(peer), reader_(packet_bytes_max, checksum, this) {}

  // Nothing is fed to a link that has failed.
  void Feed(const uint8_t* data, size_t bytes, int64_t now_us) {
    now_us_ = now_us;
    while (bytes != 0 && status_.ok()) {
      iovec pieces[2];
      const int count = reader_.Targets(pieces);
      FUZZ_REQUIRE(count >= 1 && count <= 2);
      size_t read = 0;
      for (int i = 0; i < count; ++i) {
        const size_t n = std::min(bytes, pieces[i].iov_len);
        std::memcpy(pieces[i].iov_base, data, n);
        data += n;
        bytes -= n;
        read += n;
      }
      FUZZ_REQUIRE(read != 0);
      status_ = reader_.Advance(read);
      FUZZ_REQUIRE(status_.ok() == status_.text().empty());
    }
  }
  const mercury::Status& status() const { return status_; }

 private:
  mercury::Status OnHeader(const mercury::Header& header, char** target) override {
    return end_->OnHeader(peer_, header, now_us_, target);
  }
  mercury::Status OnPacket(const mercury::Header& header) override {
    return end_->OnPacket(peer_, header, now_us_);
  }

  mercury::Endpoint* const end_;
  const int peer_;
  mercury::PacketReader reader_;
  mercury::Status status_;
  int64_t now_us_ = 0;
};
