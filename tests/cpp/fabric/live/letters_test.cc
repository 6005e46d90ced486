#include "fabric/live/letters.h"

#include <algorithm>
#include <limits>

#include "base/crc32c.h"
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

Order DrawOrder(Random* random) {
  Order order;
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
  return order;
}

Attendance DrawRoster(Random* random) {
  Attendance roster;
  roster.identity = std::string(16, 'i');
  roster.delay_bound = random->Between(1, 100);
  roster.staleness.updates = random->Between(-1, 3);
  roster.rule = {0.99 * random->Unit(), random->Below(2) == 1};
  roster.elements = random->Between(1, 100);
  roster.first_from_worker = random->Below(2) == 1;
  roster.weights.assign(random->Below(3), 0.25);
  roster.codec = random->Between(0, 40);
  for (uint64_t left = random->Below(4); left > 0; --left) {
    roster.seats.push_back({static_cast<int>(left), "10.0.0.2", 77, 1e9});
  }
  return roster;
}

// One of each, in the order of their numbers.
std::vector<Letter> DrawAll(Random* random) {
  const auto few = [random] { return random->Between(0, 9); };
  const auto node = [random] { return static_cast<int>(random->Between(-2, 9)); };
  const Wish wish{few(), few(), few()};
  const Goal goal = random->OneIn(2) ? Goal::kServer : Goal::kReplica;
  const bool yes = random->OneIn(2), rule = random->OneIn(2);
  const Tree tree{random->Between(1, 1000), std::vector<Edge>(random->Below(3), {-1, 7}), yes,
                  random->Unit(), random->Unit()};
  return {
      Request{DrawId(random), few(), random->Between(1, 1000), 0.5, random->Unit(), yes, few()},
      DrawOrder(random),
      News{static_cast<News::Kind>(random->Below(News::kTookOver + 1)), DrawPlaces(random, 0),
           few(), few(), random->Unit()},
      ConfirmLetter{DrawUpdates(random)},
      Joining{"10.0.0.1",
              random->Between(1, 65535),
              few(),
              few(),
              few(),
              few(),
              few(),
              rule,
              {0.99 * random->Unit(), yes},
              random->Unit(),
              "NAME=value\n"},
      DrawRoster(random),
      ReadyLetter(),
      BeginLetter(),
      TimeLetter{few(), few()},
      UpdatesLetter{1 + few(), yes, goal, rule, yes, DrawPlaces(random, 1), DrawPlaces(random, 0)},
      AbortedLetter{few()},
      GetLetter{wish},
      ModelLetter{few(), yes, few(), few(), std::vector<int64_t>(random->Below(3), 7), few(),
                  std::vector<Onward>(random->Below(3), {3, 4, 5}), rule},
      UnreachableLetter{node()},
      ServerIsLetter{node()},
      Carriage{1, 2, random->Unit(), random->Unit(), 1 + random->Unit(), yes},
      GotLetter{few(), wish},
      AskingLetter{tree},
      tree,
      Hearing{DrawId(random), random->Unit()},
      StripeLetter{node(), {few(), yes, few(), few(), {}, few(), {}, rule}, rule},
      GoneLetter{node()},
  };
}

}  // namespace

TEST(letters_read_back_the_same_and_no_other_bytes_are_one) {
  Random random;
  for (int round = 0; round < 3000; ++round) {
    const std::vector<Letter> letters = DrawAll(&random);
    const size_t which = random.Below(letters.size());
    const std::string bytes = Encode(letters[which]);
    CHECK_EQ(static_cast<size_t>(bytes[1]), which + 1);
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

// Who changes what these bytes are raises kLetterVersion; who changes what is drawn, only the
// number.
TEST(bytes_stay_as_they_are) {
  Random random;
  random.seed(1);
  std::string bytes;
  for (const Letter& letter : DrawAll(&random)) bytes += Encode(letter);
  CHECK_EQ(mercury::Crc32c(0, bytes.data(), bytes.size()), 1007481905U);
}

TEST(a_request_comes_through) {
  Letter read;
  REQUIRE_OK(Decode(Encode(Request{{3, 7}, 12, 400, 0.25}), &read));
  const auto& request = std::get<Request>(read);
  CHECK_EQ(request.id.worker, 3);
  CHECK_EQ(request.id.number, 7);
  CHECK_EQ(request.version, 12);
  CHECK_EQ(request.bytes, 400);
  CHECK_EQ(request.norm, 0.25);
}

TEST(what_makes_no_sense_is_refused) {
  Letter read;
  const auto refused = [&read](const Letter& letter) {
    return Decode(Encode(letter), &read).code() == Code::kCorrupt;
  };
  Request request;
  request.norm = std::numeric_limits<double>::quiet_NaN();
  CHECK_TRUE(refused(request));
  CHECK_TRUE(refused(ConfirmLetter{{{2, {0, 1}, 0}, {2, {0, 2}, 0}}}));  // places rise
  CHECK_TRUE(refused(ConfirmLetter{{{2, {0, 1}, 0, 3}}}));  // a round begins with its first place
  CHECK_TRUE(refused(ConfirmLetter{{{2, {0, 1}, 0, 0, true}}}));  // an all-reduce is a round
  Order order;
  order.kind = Order::kGather;
  CHECK_TRUE(refused(order));  // a group of nobody
  order.hop.places = {1};
  CHECK_FALSE(refused(order));
  order.hop.pieces = {{0, 2, 1}};
  CHECK_TRUE(refused(order));  // after the hop's end
  order.hop.end_s = 2;
  CHECK_FALSE(refused(order));
  order.text = std::string(kLetterTextBytesMax + 1, 'x');
  CHECK_TRUE(refused(order));
  order.text.clear();
  order.places.assign(kListMost + 1, 0);
  CHECK_TRUE(refused(order));
  UpdatesLetter updates;
  CHECK_FALSE(refused(updates));
  updates.number = 1;
  updates.chained = true;
  CHECK_TRUE(refused(updates));  // along a chain, but of nobody
  updates.places = {1};
  CHECK_FALSE(refused(updates));
  CHECK_TRUE(refused(AskingLetter()));  // a model of nothing
  std::string bytes = Encode(BeginLetter());
  for (const char number : {'\0', '\x16', '\xff'}) {
    bytes[1] = number;
    CHECK_STATUS(Code::kCorrupt, Decode(bytes, &read));
  }
  bytes[0] = 2;
  CHECK_EQ(Decode(bytes, &read).text(), "a letter of MLfabric has version 2; this node knows 10");
  CHECK_STATUS(Code::kCorrupt, Decode("", &read));
}
