#include "sums/codec.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
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
    CHECK_TRUE(names.insert(codec->name + std::string(codec->plain ? "" : " on the wire")).second);
    CHECK_TRUE((FindCompression(codec->name) == codec) == !codec->plain);
    CHECK_TRUE((codec == &PlainCodec(codec->dtype)) == codec->plain);
    CHECK_TRUE((codec->encode == nullptr) == codec->is_sum());
    CHECK_TRUE(SumCodec(*codec).is_sum());
    CHECK_TRUE(&codec->sent_back().sent_back() == &codec->sent_back());
    if (codec->plain) CHECK_EQ(std::string(codec->name), Name(codec->dtype));
  }
  CHECK_TRUE(FindCodec(255) == nullptr && FindCompression("3bit") == nullptr);
  CHECK_TRUE(FindCompression("float32") == nullptr);
}

TEST(a_range_is_as_long_as_its_parts) {
  for (const Codec* codec : All()) {
    const uint64_t together = codec->together;
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
    const uint64_t elements = 1 + random.Below(1000), together = codec->together;
    const Codec& plain = SumCodec(*codec);
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

TEST(users_ask_for_what_is_not_plain) {
  CHECK_EQ(CompressionNames(), "1bit, 2bit, bf16, fp16, int8");
  CHECK_EQ(WireNames(), "float32, bf16, fp16, int8");
}

TEST(what_a_codec_leaves_out_goes_with_the_next_gradient) {
  for (const char* name : {"1bit", "2bit"}) {
    const Codec* codec = FindCompression(name);
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

TEST(as_many_as_fit_but_some) {
  for (const Codec* codec : All()) {
    CHECK_EQ(codec->MostIn(0), codec->together);
    for (const uint64_t bytes : {64U, 1000U, 65536U}) {
      const uint64_t most = codec->MostIn(bytes);
      CHECK_EQ(most % codec->together, 0U);
      CHECK_TRUE(codec->bytes(most) <= bytes || most == codec->together);
      CHECK_TRUE(codec->bytes(most + codec->together) > bytes);
    }
  }
}

// The relative squared errors of means that the design promises, for gradients of two shapes.
TEST(errors_of_sums_are_as_promised) {
  const struct {
    const char* codec;
    bool heavy;
    size_t workers;
    double least, most;
  } rows[] = {{"bf16", true, 2, 3e-6, 6e-6},  {"bf16", true, 8, 3e-6, 7e-6},
              {"bf16", false, 8, 2e-6, 6e-6}, {"fp16", false, 8, 1e-8, 2e-7},
              {"int8", false, 2, 6e-5, 8e-5}, {"int8", false, 8, 6e-5, 8e-5},
              {"int8", true, 2, 2e-4, 4e-4},  {"int8", true, 8, 2e-4, 4.5e-4}};
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> unit;
  constexpr uint64_t kElements = 1 << 16;
  for (const auto& row : rows) {
    const Codec& codec = *FindCompression(row.codec);
    std::vector<double> exact(kElements);
    std::vector<float> sum(kElements), back(kElements);
    std::vector<char> coded(codec.bytes(kElements));
    for (size_t w = 0; w < row.workers; ++w) {
      std::vector<float> values(kElements);
      for (uint64_t i = 0; i < kElements; ++i) {
        const double normal =
            std::sqrt(-2 * std::log(1 - unit(random))) * std::cos(6.283185307179586 * unit(random));
        values[i] = static_cast<float>(row.heavy ? normal * std::abs(normal * normal) : normal);
        exact[i] += values[i];
      }
      codec.encode(0, reinterpret_cast<const char*>(values.data()), nullptr, kElements,
                   coded.data());
      codec.add(0, coded.data(), kElements, reinterpret_cast<char*>(sum.data()), Into::kSum);
    }
    codec.encode(0, reinterpret_cast<const char*>(sum.data()), nullptr, kElements, coded.data());
    codec.add(0, coded.data(), kElements, reinterpret_cast<char*>(back.data()), Into::kRoom);
    double error = 0, all = 0;
    for (uint64_t i = 0; i < kElements; ++i) {
      error += (back[i] - exact[i]) * (back[i] - exact[i]);
      all += exact[i] * exact[i];
    }
    const bool as_promised = error / all >= row.least && error / all <= row.most;
    if (!as_promised) std::printf("%s %zu: %g\n", row.codec, row.workers, error / all);
    CHECK_TRUE(as_promised);
  }
}

namespace {

// What workers send so that each sum is exactly known, in whatever order it is made: whole numbers
// of one unit, so few of them that no addition is ever rounded. By worker; the sums.
struct Predictable {
  std::vector<std::vector<float>> copies;
  std::vector<float> sums;
};

Predictable Draw(Random* random, size_t workers, uint64_t elements, int64_t most, float unit,
                 bool blocks) {
  Predictable made{std::vector<std::vector<float>>(workers), {}};
  const auto n = static_cast<int64_t>(workers);
  const int64_t each = most / n;
  for (uint64_t i = 0; i < elements; ++i) {
    // In a block of int8's, the largest sets the scale, and sums are whole numbers of n units.
    const bool largest = blocks && i % 64 == 0;
    int64_t left = blocks ? n * random->Between(-each, each) : random->Between(-n * each, n * each);
    if (largest) left = n * most;
    made.sums.push_back(static_cast<float>(left) * unit);
    for (int64_t others = n - 1; others >= 0; --others) {
      const int64_t low = std::max(-each, left - others * each);
      const int64_t high = std::min(each, left + others * each);
      const int64_t part = largest ? most : random->Between(low, high);
      made.copies[static_cast<size_t>(others)].push_back(static_cast<float>(part) * unit);
      left -= part;
    }
  }
  return made;
}

}  // namespace

TEST(sums_that_can_be_foretold_are_exact) {
  const struct {
    const char* codec;
    int64_t most;  // whole numbers up to there have no rounding
  } rows[] = {{"bf16", 256}, {"fp16", 2048}, {"int8", 127}};
  Random random;
  constexpr uint64_t kElements = 300;
  for (const auto& row : rows) {
    const Codec& codec = *FindCompression(row.codec);
    for (size_t workers = 1; workers <= 16; ++workers) {
      const float unit = std::ldexp(1.0F, static_cast<int>(random.Between(-8, 4)));
      const Predictable given =
          Draw(&random, workers, kElements, row.most, unit, row.codec == std::string("int8"));
      std::vector<size_t> order(workers);
      for (size_t w = 0; w < workers; ++w) order[w] = w;
      std::vector<char> coded(codec.bytes(kElements));
      for (int turn = 0; turn < 3; ++turn) {
        for (size_t w = workers; w > 1; --w) std::swap(order[w - 1], order[random.Below(w)]);
        std::vector<float> sum(kElements), back(kElements);
        for (const size_t w : order) {
          codec.encode(0, reinterpret_cast<const char*>(given.copies[w].data()), nullptr, kElements,
                       coded.data());
          codec.add(0, coded.data(), kElements, reinterpret_cast<char*>(sum.data()),
                    w == order[0] ? Into::kRoom : Into::kSum);
        }
        CHECK_TRUE(sum == given.sums);
        codec.encode(0, reinterpret_cast<const char*>(sum.data()), nullptr, kElements,
                     coded.data());
        codec.add(0, coded.data(), kElements, reinterpret_cast<char*>(back.data()), Into::kRoom);
        CHECK_TRUE(back == given.sums);
      }
    }
  }
}
