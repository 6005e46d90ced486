#include "sums/codec.h"

#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "harness.h"

using namespace mercury;  // NOLINT: a test
using mercury::testing::Random;

namespace {

std::vector<const Codec*> All() {
  std::vector<const Codec*> all;
  for (int number = 0; number < 256; ++number) {
    if (const Codec* codec = FindCodec(static_cast<uint8_t>(number))) all.push_back(codec);
  }
  return all;
}

}  // namespace

TEST(every_codec_has_a_name_and_a_number_of_its_own) {
  std::set<std::string> names;
  for (const Codec* codec : All()) {
    CHECK_TRUE(names.insert(codec->name).second);
    CHECK_TRUE(FindCodec(std::string_view(codec->name)) == codec);
    CHECK_TRUE((codec == &PlainCodec(codec->dtype)) == codec->plain);
    CHECK_TRUE((codec->encode == nullptr) == codec->plain);
    if (codec->plain) CHECK_EQ(std::string(codec->name), Name(codec->dtype));
  }
  CHECK_EQ(names.size(), 10U);
  CHECK_TRUE(FindCodec(255) == nullptr && FindCodec("3bit") == nullptr);
}

TEST(a_range_is_as_long_as_its_parts) {
  for (const Codec* codec : All()) {
    const uint64_t together = codec->together();
    for (const uint64_t begin : {uint64_t{0}, together, 7 * together}) {
      for (uint64_t count = 0; count < 200; ++count) {
        CHECK_EQ(codec->bytes(begin) + codec->bytes(count), codec->bytes(begin + count));
        uint64_t elements = 0;
        REQUIRE_TRUE(codec->Elements(codec->bytes(count), count, &elements));
        CHECK_EQ(elements, count);
        const bool whole = count % together == 0;
        if (whole) CHECK_TRUE(codec->Elements(codec->bytes(count), 1000, &elements));
        if (whole) CHECK_EQ(elements, count);
      }
    }
    uint64_t elements = 0;
    CHECK_FALSE(codec->Elements(codec->bytes(together) + 1, 1000, &elements));
    CHECK_FALSE(codec->Elements(codec->bytes(2 * together), together, &elements));
  }
}

TEST(coded_by_parts_is_coded_at_once) {
  Random random;
  for (const Codec* codec : All()) {
    const uint64_t elements = 1 + random.Below(1000), together = codec->together();
    const Codec& plain = PlainCodec(codec->dtype);
    std::vector<char> coded(codec->bytes(elements)), whole(plain.bytes(elements)),
        parts(plain.bytes(elements));
    random.Fill(coded.data(), coded.size());
    codec->add(0.5F, coded.data(), elements, whole.data(), Into::kRoom);
    for (uint64_t at = 0; at < elements; at += together) {
      const uint64_t count = std::min(together, elements - at);
      codec->add(0.5F, coded.data() + codec->bytes(at), count, parts.data() + plain.bytes(at),
                 Into::kRoom);
    }
    CHECK_EQ(std::memcmp(whole.data(), parts.data(), whole.size()), 0);
  }
}

TEST(users_ask_for_what_is_not_plain) { CHECK_EQ(CompressionNames(), "1bit, 2bit"); }

TEST(what_a_codec_leaves_out_goes_with_the_next_gradient) {
  for (const char* name : {"1bit", "2bit"}) {
    const Codec* codec = FindCodec(std::string_view(name));
    constexpr uint64_t kElements = 100;
    std::vector<float> gradient(kElements, 0.3F), residual(kElements), sum(kElements);
    std::vector<char> coded(codec->bytes(kElements));
    for (int round = 0; round < 50; ++round) {
      codec->encode(0.5F, reinterpret_cast<const char*>(gradient.data()), residual.data(),
                    kElements, coded.data());
      codec->add(0.5F, coded.data(), kElements, reinterpret_cast<char*>(sum.data()), Into::kSum);
    }
    for (uint64_t i = 0; i < kElements; ++i) {
      CHECK_TRUE(std::abs(sum[i] + residual[i] - 15.0F) < 0.01F);
    }
  }
}
