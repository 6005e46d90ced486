#include "packets/row_sum.h"

#include <cstring>
#include <map>
#include <string>

#include "harness.h"

using namespace mercury;  // NOLINT: a test
using mercury::testing::Random;

namespace {

constexpr uint64_t kRowBytes = 8;  // two int32

std::string SetOf(const std::map<int64_t, int32_t>& rows) {
  std::vector<int64_t> numbers;
  std::vector<int32_t> values;
  for (const auto& [row, value] : rows) {
    numbers.push_back(row);
    values.insert(values.end(), {value, -value});
  }
  std::string set(SetBytes(rows.size(), kRowBytes), '\0');
  EncodeSet(numbers.data(), reinterpret_cast<const char*>(values.data()), numbers.size(), kRowBytes,
            set.data());
  return set;
}

struct Server {
  explicit Server(size_t num_workers) : workers(num_workers) {}
  Status Send(size_t worker, uint64_t at, const std::string& part, bool* whole) {
    Block block;
    const auto length = static_cast<uint32_t>(part.size());
    const Status status = sum.Begin(worker, workers, at, length, &pool, &block);
    if (!status.ok()) return status;
    std::memcpy(block.get() + at, part.data(), part.size());
    return sum.End(worker, at, length, block, &pool, whole);
  }
  size_t workers;
  PacketPool pool{1 << 20};
  RowSum sum{DType::kInt32, kRowBytes, 10, 29};
};

}  // namespace

TEST(sets_in_parts_add_up_row_by_row) {
  Random random;
  for (int trial = 0; trial < 300; ++trial) {
    const size_t workers = 1 + random.Below(4);
    const bool deterministic = random.OneIn(2);
    Server server(workers);
    for (int round = 0; round < 3; ++round) {
      std::map<int64_t, int32_t> expected;
      std::vector<std::string> sets(workers);
      for (auto& set : sets) {
        std::map<int64_t, int32_t> rows;
        for (uint64_t i = random.Below(20); i != 0; --i) {
          rows[10 + static_cast<int64_t>(random.Below(20))] =
              static_cast<int32_t>(random.Below(1000));
        }
        for (const auto& [row, value] : rows) expected[row] += value;
        set = SetOf(rows);
      }
      std::vector<size_t> at(workers);
      for (size_t open = workers; open != 0;) {
        const size_t w = random.Below(workers);
        if (at[w] == sets[w].size()) continue;
        const size_t length = std::min<size_t>(sets[w].size() - at[w], 8 + random.Below(100));
        bool whole = false;
        REQUIRE_OK(server.Send(w, at[w], sets[w].substr(at[w], length), &whole));
        at[w] += length;
        CHECK_EQ(whole, at[w] == sets[w].size());
        if (!whole) continue;
        REQUIRE_OK(server.sum.Merge(w, deterministic));
        --open;
      }
      REQUIRE_OK(server.sum.Finish(&server.pool));
      const std::string sum(server.sum.value().get(), server.sum.value_bytes());
      CHECK_TRUE(sum == SetOf(expected));
    }
  }
}

TEST(what_is_no_set_of_these_rows_is_refused) {
  bool whole = false;
  const std::string good = SetOf({{10, 1}, {12, 2}});
  Server server(2);
  CHECK_STATUS(Code::kCorrupt, server.Send(0, 0, good.substr(0, 7), &whole));
  CHECK_STATUS(Code::kCorrupt, server.Send(0, 8, good.substr(8), &whole));
  CHECK_STATUS(Code::kCorrupt, server.Send(0, 0, good + "x", &whole));
  Server many(1);
  std::string count(8, '\0');
  count[0] = 21;  // of 20 rows
  CHECK_STATUS(Code::kCorrupt, many.Send(0, 0, count, &whole));
  Server huge(1);
  CHECK_STATUS(Code::kCorrupt, huge.Send(0, 0, std::string(8, '\x7f'), &whole));
  for (const auto& rows : {std::map<int64_t, int32_t>{{9, 1}}, {{30, 1}}, {{-1, 1}}}) {
    for (const bool deterministic : {false, true}) {
      Server other(1);
      REQUIRE_OK(other.Send(0, 0, SetOf(rows), &whole));
      CHECK_STATUS(Code::kCorrupt, other.sum.Merge(0, deterministic));
    }
  }
}

TEST(without_memory_it_says_so) {
  bool whole = false;
  Server server(1);
  server.pool.~PacketPool();
  new (&server.pool) PacketPool(64);
  std::map<int64_t, int32_t> rows;
  for (int64_t row = 10; row < 30; ++row) rows[row] = 1;
  const std::string set = SetOf(rows);
  CHECK_STATUS(Code::kExhausted, server.Send(0, 0, set.substr(0, 64), &whole));
}

// More than any packet: there is room for all of a set once its first part says how much that is.
TEST(a_set_may_have_hundreds_of_megabytes) {
  constexpr uint64_t kLargeRow = 1 << 20, kRows = 200;
  PacketPool pool(0);
  RowSum sum(DType::kInt32, kLargeRow, 0, kRows - 1);
  Block block;
  REQUIRE_OK(sum.Begin(0, 1, 0, 8, &pool, &block));
  std::memset(block.get(), 0, 8);
  *block = static_cast<char>(kRows - 80);
  bool whole = true;
  REQUIRE_OK(sum.End(0, 0, 8, block, &pool, &whole));
  CHECK_FALSE(whole);
  REQUIRE_OK(sum.Begin(0, 1, 8, 4096, &pool, &block));
  CHECK_TRUE(pool.bytes_handed_out() >= (kRows - 80) * kLargeRow);
}

TEST(the_same_of_a_set_on_two_links_is_refused) {
  Server server(1);
  const std::string set = SetOf({{10, 1}, {12, 2}});
  const auto length = static_cast<uint32_t>(set.size());
  Block one, other;
  REQUIRE_OK(server.sum.Begin(0, 1, 0, length, &server.pool, &one));
  REQUIRE_OK(server.sum.Begin(0, 1, 0, 8, &server.pool, &other));
  std::memcpy(one.get(), set.data(), set.size());
  std::memset(other.get(), 0, 8);
  bool whole = false;
  REQUIRE_OK(server.sum.End(0, 0, length, one, &server.pool, &whole));
  CHECK_TRUE(whole);
  CHECK_STATUS(Code::kCorrupt, server.sum.End(0, 0, 8, other, &server.pool, &whole));
}
