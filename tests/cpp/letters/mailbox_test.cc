#include "letters/mailbox.h"

#include <cstring>
#include <vector>

#include "harness.h"

using namespace mercury;
using mercury::testing::Random;

namespace {

constexpr size_t kPacket = 64, kMost = 1000;

}  // namespace

TEST(letters_of_any_length_come_in_order) {
  Random random;
  Mailbox here(kPacket, kMost), there(kPacket, kMost);
  std::vector<std::string> sent, heard;
  for (int i = 0; i < 200; ++i) {
    sent.emplace_back(1 + random.Below(kMost), static_cast<char>(i));
    here.Post(sent.back());
  }
  for (OutPacket packet; here.Next(&packet); packet = OutPacket()) {
    CHECK_TRUE(packet.header.length <= kPacket);
    char* target = nullptr;
    REQUIRE_OK(there.OnHeader(packet.header, &target));
    std::memcpy(target, packet.payload, packet.header.length);
    std::optional<std::string> letter;
    there.OnPacket(packet.header, &letter);
    if (letter) heard.push_back(*letter);
  }
  CHECK_TRUE(here.empty());
  CHECK_TRUE(heard == sent);
}

TEST(a_piece_that_does_not_fit_is_refused) {
  for (const auto& [size, offset, length] : std::vector<std::tuple<uint32_t, uint64_t, uint32_t>>{
           {kMost + 1, 0, 8}, {4, 0, 8}, {16, 8, 8}, {16, 0, 0}}) {
    Mailbox mailbox(kPacket, kMost);
    Header header;
    header.kind = PacketKind::kLetter;
    header.tensor = size;
    header.offset = offset;
    header.length = length;
    char* target = nullptr;
    CHECK_STATUS(Code::kCorrupt, mailbox.OnHeader(header, &target));
  }
}
