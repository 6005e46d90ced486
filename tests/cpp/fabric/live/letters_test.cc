#include "fabric/live/letters.h"

#include <algorithm>
#include <limits>

#include "harness.h"

using namespace mercury::fabric;
using namespace mercury::testing;
using mercury::Code;

namespace {

std::vector<int64_t> DrawPlaces(Random* random, uint64_t least) {
  std::vector<int64_t> places;
  int64_t place = 0;
  for (uint64_t left = least + random->Below(4); left > 0; --left) {
    place += random->Between(1, 1000);
    places.push_back(place);
  }
  return places;
}

UpdateId DrawId(Random* random) {
  return {static_cast<int>(random->Between(0, 100)), random->Between(1, int64_t{1} << 50)};
}

std::vector<Placed> DrawUpdates(Random* random) {
  std::vector<Placed> updates;
  for (const int64_t place : DrawPlaces(random, 0)) {
    const int64_t round = random->Between(0, place);
    updates.push_back({place, DrawId(random), random->Between(0, 1000), round});
    updates.back().reduce = round != 0 && random->OneIn(2);
  }
  return updates;
}

Letter Draw(Random* random) {
  Letter letter;
  letter.kind = static_cast<Letter::Kind>(random->Between(1, 20));
  if (letter.kind == Letter::Kind::kRequest) {
    letter.request = {DrawId(random), random->Between(0, 1000), random->Between(1, 1000), 0.5,
                      random->Unit(), random->OneIn(2),         random->OneIn(2)};
  } else if (letter.kind == Letter::Kind::kOrder) {
    Order& order = letter.order;
    order.kind = static_cast<Order::Kind>(random->Below(Order::kFail + 1));
    order.node = static_cast<int>(random->Between(-2, 100));
    order.updates = DrawUpdates(random);
    order.places = DrawPlaces(random, 0);
    order.place = random->Between(0, 1000);
    order.even_arrived = random->OneIn(2);
    order.hop.goal = random->OneIn(2) ? Goal::kServer : Goal::kReplica;
    order.hop.from = static_cast<int>(random->Between(0, 9));
    order.hop.to = static_cast<int>(random->Between(-2, 9));
    order.hop.gathered = random->OneIn(2);
    order.hop.to_aggregator = random->OneIn(2);
    order.hop.two_sums = random->OneIn(2);
    order.hop.places = DrawPlaces(random, 1);
    order.hop.update = DrawId(random);
    order.hop.bytes = random->Between(0, 1 << 30);
    order.hop.start_s = random->Unit();
    order.hop.end_s = order.hop.start_s;
    for (uint64_t left = random->Below(3); left > 0; --left) {
      const double start_s = order.hop.end_s + random->Unit();
      order.hop.end_s = start_s + random->Unit();
      order.hop.pieces.push_back({start_s, order.hop.end_s, 1 + random->Unit()});
    }
    order.update = DrawId(random);
    order.fate = static_cast<Fate>(random->Below(6));
    order.text = std::string(random->Below(20), 'x');
  } else if (letter.kind == Letter::Kind::kNews) {
    letter.news.kind = static_cast<News::Kind>(random->Below(News::kTookOver + 1));
    letter.news.places = DrawPlaces(random, 0);
    letter.news.place = random->Between(0, 1000);
    letter.news.version = random->Between(0, 1000);
    letter.history_norm = random->Unit();
  } else {
    letter.applied = DrawUpdates(random);
    letter.joining = {"10.0.0.1",
                      random->Between(1, 65535),
                      random->Between(1, 9),
                      random->OneIn(2),
                      random->Between(1, 1000),
                      random->Between(0, 1000),
                      random->OneIn(2),
                      {0.99 * random->Unit(), random->OneIn(2)},
                      random->Unit(),
                      "NAME=value\n"};
    letter.roster.identity = std::string(16, 'i');
    letter.roster.delay_bound = random->Between(1, 100);
    letter.roster.staleness.updates = random->Between(-1, 3);
    letter.roster.rule = {0.99 * random->Unit(), random->Below(2) == 1};
    letter.roster.elements = random->Between(1, 100);
    letter.roster.first_from_worker = random->Below(2) == 1;
    letter.roster.weights.assign(random->Below(3), random->Unit());
    for (uint64_t left = random->Below(4); left > 0; --left) {
      letter.roster.seats.push_back({static_cast<int>(left), "10.0.0.2", 77, 1e9});
    }
    letter.asked_us = random->Between(0, 1000);
    letter.answered_us = random->Between(0, 1000);
    letter.waybill = {random->Between(0, 9), random->OneIn(2) ? Goal::kServer : Goal::kReplica,
                      random->OneIn(2),      DrawPlaces(random, 0),
                      DrawPlaces(random, 0), random->Between(0, 9),
                      random->Between(0, 9), std::vector<int64_t>(random->Below(3), 7),
                      random->Between(0, 9), std::vector<Onward>(random->Below(3), {4, 5})};
    letter.wish = {random->Between(0, 9), random->Between(0, 9), random->Between(0, 9)};
    letter.tree = {random->Between(1, 1000), std::vector<Edge>(random->Below(3), {-1, 7})};
    letter.node = static_cast<int>(random->Between(-2, 9));
    letter.carriage = {1, 2, random->Unit(), random->Unit(), 1 + random->Unit()};
    letter.hearing = {DrawId(random), random->Unit()};
  }
  return letter;
}

}  // namespace

TEST(letters_read_back_the_same_and_no_other_bytes_are_one) {
  Random random;
  for (int round = 0; round < 3000; ++round) {
    const std::string bytes = Encode(Draw(&random));
    Letter read;
    REQUIRE_OK(Decode(bytes, &read));
    CHECK_TRUE(Encode(read) == bytes);
    CHECK_STATUS(Code::kCorrupt, Decode(bytes.substr(0, random.Below(bytes.size())), &read));
    CHECK_STATUS(Code::kCorrupt, Decode(bytes + '\0', &read));
    std::string other = bytes;
    for (uint64_t left = 1 + random.Below(3); left > 0; --left) {
      other[random.Below(other.size())] = static_cast<char>(random());
    }
    // Whatever is accepted is what somebody could have said.
    if (Decode(other, &read).ok()) CHECK_TRUE(Encode(read) == other);
  }
}

TEST(a_request_comes_through) {
  Letter letter;
  letter.request = {{3, 7}, 12, 400, 0.25};
  Letter read;
  REQUIRE_OK(Decode(Encode(letter), &read));
  CHECK_EQ(read.request.id.worker, 3);
  CHECK_EQ(read.request.id.number, 7);
  CHECK_EQ(read.request.version, 12);
  CHECK_EQ(read.request.bytes, 400);
  CHECK_EQ(read.request.norm, 0.25);
}

TEST(what_makes_no_sense_is_refused) {
  Letter read;
  const auto refused = [&read](const Letter& letter) {
    return Decode(Encode(letter), &read).code() == Code::kCorrupt;
  };
  Letter letter;
  letter.request.norm = std::numeric_limits<double>::quiet_NaN();
  CHECK_TRUE(refused(letter));
  letter.kind = Letter::Kind::kConfirm;
  letter.applied = {{2, {0, 1}, 0}, {2, {0, 2}, 0}};
  CHECK_TRUE(refused(letter));  // places rise
  letter.applied = {{2, {0, 1}, 0, 3}};
  CHECK_TRUE(refused(letter));  // a round begins with its first place
  letter.applied = {{2, {0, 1}, 0, 0, true}};
  CHECK_TRUE(refused(letter));  // an all-reduce is a round
  letter.kind = Letter::Kind::kOrder;
  letter.order.kind = Order::kGather;
  CHECK_TRUE(refused(letter));  // a group of nobody
  letter.order.hop.places = {1};
  CHECK_FALSE(refused(letter));
  letter.order.hop.pieces = {{0, 2, 1}};
  CHECK_TRUE(refused(letter));  // after the hop's end
  letter.order.hop.end_s = 2;
  CHECK_FALSE(refused(letter));
  letter.order.text = std::string(kLetterTextBytesMax + 1, 'x');
  CHECK_TRUE(refused(letter));
  letter.order.text.clear();
  letter.order.places.assign(kListMost + 1, 0);
  CHECK_TRUE(refused(letter));
  letter.kind = static_cast<Letter::Kind>(18);
  CHECK_TRUE(refused(letter));
  std::string bytes = Encode(Letter());
  bytes[0] = 2;
  CHECK_EQ(Decode(bytes, &read).text(), "a letter of MLfabric has version 2; this node knows 7");
  CHECK_STATUS(Code::kCorrupt, Decode("", &read));
}
