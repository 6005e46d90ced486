#include "messages/partition.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "harness.h"
#include "transport/server_shares.h"

using namespace mercury;
using mercury::testing::kCasesPart;
using mercury::testing::Random;

namespace {

constexpr uint64_t kSplit = 4000000;
constexpr uint64_t kPieceMax = uint64_t{64} << 20;

// A size of any order of magnitude up to 2^max_bits.
uint64_t SomeSize(Random* random, double max_bits) {
  return static_cast<uint64_t>(std::exp2(random->Unit() * max_bits));
}

struct Load {
  explicit Load(int servers) : bytes(static_cast<size_t>(servers)) {}
  void Add(const std::vector<Piece>& pieces) {
    for (const Piece& piece : pieces) bytes[static_cast<size_t>(piece.server)] += piece.bytes;
  }
  double most() const { return static_cast<double>(*std::max_element(bytes.begin(), bytes.end())); }
  double mean() const {
    return static_cast<double>(std::accumulate(bytes.begin(), bytes.end(), uint64_t{0})) /
           static_cast<double>(bytes.size());
  }
  std::vector<uint64_t> bytes;
};

}  // namespace

TEST(pieces_cover_the_tensor_in_order) {
  Random random;
  for (int run = 0; run < 3000; ++run) {
    const size_t element = size_t{1} << random.Below(4);
    const int servers = static_cast<int>(random.Between(1, 64));
    const uint64_t key = random.OneIn(2) ? random.Below(1000) : random();
    const uint64_t split = random.OneIn(4) ? 0 : SomeSize(&random, 30);
    const uint64_t bytes = SomeSize(&random, random.OneIn(10) ? 42.5 : 33) / element * element;
    const uint64_t piece_max = std::max(element + SomeSize(&random, 31), bytes / 5000);
    const auto pieces = Partition(key, bytes, element, ServerShares(servers), split, piece_max);
    REQUIRE_FALSE(pieces.empty());
    uint64_t at = 0;
    Load load(servers);
    for (const Piece& piece : pieces) {
      REQUIRE_TRUE(piece.server >= 0 && piece.server < servers);
      REQUIRE_EQ(piece.offset, at);
      REQUIRE_TRUE(piece.bytes <= piece_max);
      REQUIRE_TRUE(piece.bytes > 0 || bytes == 0);
      REQUIRE_EQ(piece.bytes % element, 0);
      at += piece.bytes;
    }
    load.Add(pieces);
    CHECK_EQ(at, bytes);
    CHECK_EQ(pieces[0].server, ServerShares(servers).Home(key));
    const auto [least, most] = std::minmax_element(load.bytes.begin(), load.bytes.end());
    if (bytes != 0 && bytes < split) {
      CHECK_EQ(*most, bytes);
    } else {
      CHECK_TRUE(*most - *least <= element);
    }
  }
}

TEST(ranges_are_as_long_as_the_shares) {
  Random random;
  for (int run = 0; run < 300; ++run) {
    const int servers = static_cast<int>(random.Between(1, 16));
    std::string text = std::to_string(random.Between(1, 9));
    uint64_t sum = std::stoull(text);
    std::vector<uint64_t> parts = {sum};
    for (int s = 1; s < servers; ++s) {
      parts.push_back(static_cast<uint64_t>(random.Below(10)));
      sum += parts.back();
      text += "," + std::to_string(parts.back());
    }
    ServerShares shares;
    REQUIRE_OK(ServerShares::FromText(text, servers, &shares));
    const uint64_t bytes = kSplit + SomeSize(&random, 30);
    Load load(servers);
    uint64_t at = 0;
    for (const Piece& piece : Partition(random(), bytes, 1, shares, kSplit, uint64_t{1} << 40)) {
      CHECK_EQ(piece.offset, at);
      at += piece.bytes;
      CHECK_EQ(load.bytes[static_cast<size_t>(piece.server)], 0);  // one range each
      load.bytes[static_cast<size_t>(piece.server)] = piece.bytes;
    }
    CHECK_EQ(at, bytes);
    for (size_t s = 0; s < parts.size(); ++s) {
      const double due =
          static_cast<double>(bytes) * static_cast<double>(parts[s]) / static_cast<double>(sum);
      CHECK_TRUE(std::abs(static_cast<double>(load.bytes[s]) - due) <= 10);
    }
  }
}

TEST(several_terabytes_in_messages_of_31_bits) {
  const uint64_t bytes = uint64_t{6} << 40;
  const auto pieces = Partition(7, bytes, 4, ServerShares(3), kSplit, (uint64_t{1} << 31) - 1);
  CHECK_EQ(pieces.size(), 3 * 1025);
  CHECK_EQ(pieces.back().offset + pieces.back().bytes, bytes);
}

TEST(an_empty_tensor_is_one_empty_piece) {
  for (const uint64_t split : {uint64_t{0}, kSplit}) {
    const auto pieces = Partition(5, 0, 4, ServerShares(7), split, kPieceMax);
    REQUIRE_EQ(pieces.size(), 1);
    CHECK_EQ(pieces[0].server, ServerShares(7).Home(5));
    CHECK_EQ(pieces[0].offset, 0);
    CHECK_EQ(pieces[0].bytes, 0);
  }
}

TEST(the_split_size_itself_is_split) {
  CHECK_EQ(Partition(1, kSplit - 4, 4, ServerShares(4), kSplit, kPieceMax).size(), 1);
  CHECK_EQ(Partition(1, kSplit, 4, ServerShares(4), kSplit, kPieceMax).size(), 4);
  CHECK_EQ(Partition(1, kSplit, 4, ServerShares(1), kSplit, kPieceMax).size(), 1);
  // Fewer elements than servers: no empty pieces.
  CHECK_EQ(Partition(1, 12, 4, ServerShares(8), 0, kPieceMax).size(), 3);
  // Whole on one server, but in messages that are not too long.
  const auto pieces = Partition(1, 1000, 4, ServerShares(8), 4000, 100);
  CHECK_EQ(pieces.size(), 10);
  CHECK_EQ(pieces.front().server, pieces.back().server);
}

TEST(a_last_element_cut_short_is_kept) {
  const auto pieces = Partition(1, 103, 4, ServerShares(4), 0, 12);
  CHECK_EQ(pieces.back().offset + pieces.back().bytes, 103);
  CHECK_TRUE(pieces.back().bytes <= 12);
}

// Two versions of this rule in one job would sum the wrong bytes: these numbers never change.
TEST(the_rule_is_the_one_it_always_was) {
  const std::vector<int> expected = {0, 4, 1, 5, 3, 0, 4, 2, 6, 3, 1, 5};
  for (size_t key = 0; key < expected.size(); ++key)
    CHECK_EQ(ServerShares(7).Home(key), expected[key]);
  CHECK_EQ(ServerShares(64).Home(UINT64_MAX), 24);
  const auto pieces = Partition(2, 44, 4, ServerShares(3), 0, 8);
  const std::vector<uint64_t> offsets = {0, 8, 16, 24, 32, 40};
  const std::vector<int> servers = {0, 0, 1, 1, 2, 2};
  REQUIRE_EQ(pieces.size(), offsets.size());
  for (size_t i = 0; i < pieces.size(); ++i) {
    CHECK_EQ(pieces[i].offset, offsets[i]);
    CHECK_EQ(pieces[i].server, servers[i]);
  }
}

TEST(the_same_question_has_the_same_answer) {
  Random random;
  for (int run = 0; run < 200; ++run) {
    const uint64_t key = random();
    const uint64_t bytes = SomeSize(&random, 35);
    const int servers = static_cast<int>(random.Between(1, 64));
    const auto a = Partition(key, bytes, 1, ServerShares(servers), kSplit, kPieceMax);
    const auto b = Partition(key, bytes, 1, ServerShares(servers), kSplit, kPieceMax);
    REQUIRE_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) {
      CHECK_EQ(a[i].server, b[i].server);
      CHECK_EQ(a[i].offset, b[i].offset);
      CHECK_EQ(a[i].bytes, b[i].bytes);
    }
  }
}

TEST(consecutive_keys_are_spread_evenly) {
  for (int servers = 1; servers <= 64; servers += kCasesPart) {
    for (uint64_t stride = 1; stride <= 8; ++stride) {
      std::vector<int> count(static_cast<size_t>(servers));
      const int keys = 20 * servers;
      for (int i = 0; i < keys; ++i) {
        ++count[static_cast<size_t>(ServerShares(servers).Home(static_cast<uint64_t>(i) * stride))];
      }
      const auto [least, most] = std::minmax_element(count.begin(), count.end());
      CHECK_TRUE(*least >= 15 && *most <= 25);
    }
  }
}

TEST(bytes_are_balanced_over_a_thousand_tensors) {
  Random random;
  for (const int servers : {2, 3, 4, 8, 16, 32, 64}) {
    Load load(servers);
    for (uint64_t key = 0; key < 1000; ++key) {
      load.Add(
          Partition(key, 4 * SomeSize(&random, 24), 4, ServerShares(servers), kSplit, kPieceMax));
    }
    // Tensors that are not split are as random as their sizes, so the bound is not tight.
    CHECK_TRUE(load.most() <= 1.35 * load.mean());
  }
}

TEST(weights_and_biases_are_balanced) {
  for (int servers = 1; servers <= 64; ++servers) {
    Load load(servers);
    for (uint64_t key = 0; key < 1000; ++key) {
      load.Add(Partition(key, key % 2 == 0 ? 2000000 : 2000, 4, ServerShares(servers), kSplit,
                         kPieceMax));
    }
    CHECK_TRUE(load.most() <= 1.3 * load.mean());
  }
}

TEST(rows_and_their_numbers_fit_a_message) {
  for (const uint64_t row_bytes : {1, 2, 4, 64, 4096, 1000003}) {
    for (const uint64_t bytes_max : {uint64_t{9}, uint64_t{1000}, uint64_t{64} << 20}) {
      const uint64_t bytes = RowsBytesMax(row_bytes, bytes_max), rows = bytes / row_bytes;
      CHECK_EQ(bytes % row_bytes, uint64_t{0});
      CHECK_TRUE(rows * (row_bytes + 8) <= bytes_max);
      CHECK_TRUE((rows + 1) * (row_bytes + 8) > bytes_max);
    }
  }
}
