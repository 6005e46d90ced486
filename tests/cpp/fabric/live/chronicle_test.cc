#include "fabric/live/chronicle.h"

#include <set>

#include "fabric/json.h"
#include "harness.h"

using namespace mercury::fabric;

namespace {

News Tells(News::Kind kind, const std::vector<int64_t>& places) {
  News news;
  news.kind = kind;
  news.places = places;
  news.version = 9;
  news.place = 8;
  return news;
}

}  // namespace

TEST(each_thing_that_happens_is_a_line) {
  Chronicle chronicle(1 << 20);
  chronicle.Asked({{2, 5}, 7, 400, 0.5}, 1.5);
  Order plan = MakeOrder(Order::kExpect, kServerNode);
  plan.updates = {{3, {2, 5}, 7}, {4, {0, 1}, 6}};
  chronicle.Ordered(plan, 1.75);
  Order send = MakeOrder(Order::kSend, 2);
  send.hop.from = 2;
  send.hop.to = kServerNode;
  send.hop.places = {3};
  send.hop.bytes = 400;
  send.hop.end_s = 2;
  chronicle.Ordered(send, 1.75);
  chronicle.Ordered(MakeOrder(Order::kForget, 2), 1.75);  // follows from the rest
  chronicle.SentOut(1.8125);
  chronicle.Heard({{2, 5}, 1.875}, 1.9375);
  chronicle.Told(Tells(News::kCommitted, {3, 4}), kServerNode, 2);
  chronicle.Told(Tells(News::kTookOver, {}), ReplicaNode(1), 3);
  Order whole = MakeOrder(Order::kSnapshot, kServerNode);
  whole.hop.to = ReplicaNode(2);
  chronicle.Ordered(whole, 3);
  Order report = MakeOrder(Order::kReport, 2);
  report.update = {2, 5};
  report.fate = Fate::kLost;
  chronicle.Ordered(report, 3);
  Carriage run;
  run.from = 2;
  run.to = kReplicaNode;
  run.bits = 3200;
  run.end_s = 1;
  chronicle.Carried(run, 4);
  chronicle.Gone(kServerNode, 5);
  CHECK_EQ(
      chronicle.Take(),
      R"({"t": 1.5, "event": "request", "worker": 2, "number": 5, "version": 7, "bytes": 400, "norm": 0.5, "pushed": 0}
{"t": 1.75, "event": "plan", "updates": [{"place": 3, "worker": 2, "number": 5, "version": 7}, {"place": 4, "worker": 0, "number": 1, "version": 6}]}
{"t": 1.75, "event": "hop", "from": 2, "to": "server", "goal": "server", "gathered": false, "places": [3], "bytes": 400, "start": 0, "end": 2}
{"t": 1.8125, "event": "sent_out"}
{"t": 1.9375, "event": "heard", "worker": 2, "number": 5, "at": 1.875}
{"t": 2, "event": "commit", "places": [3, 4], "version": 9}
{"t": 3, "event": "took_over", "node": "replica 1", "version": 9}
{"t": 3, "event": "whole_model", "to": "replica 2"}
{"t": 3, "event": "fate", "worker": 2, "number": 5, "fate": "lost"}
{"t": 4, "event": "carried", "from": 2, "to": "replica", "bits": 3200, "start": 0, "end": 1}
{"t": 5, "event": "gone", "node": "server"}
)");
  CHECK_EQ(chronicle.Take(), "");
}

TEST(every_kind_of_news_is_json_of_its_own) {
  Chronicle chronicle(1 << 20);
  std::set<std::string> events;
  for (int kind = News::kCommitted; kind <= News::kTookOver; ++kind) {
    chronicle.Told(Tells(static_cast<News::Kind>(kind), {1}), kReplicaNode, kind);
    Json line;
    CHECK_OK(ReadJson(chronicle.Take(), &line));
    events.insert(line.Find("event")->text);
  }
  CHECK_EQ(events.size(), News::kTookOver + 1);
  CHECK_EQ(events.count(""), 0);
}

TEST(what_finds_no_room_is_counted) {
  Chronicle chronicle(100);
  for (int i = 0; i < 4; ++i) chronicle.Gone(i, i);
  const std::string taken = chronicle.Take();
  CHECK_EQ(taken,
           "{\"t\": 0, \"event\": \"gone\", \"node\": 0}\n"
           "{\"t\": 1, \"event\": \"gone\", \"node\": 1}\n"
           "{\"event\": \"missed\", \"lines\": 2}\n");
  chronicle.Gone(7, 7);
  CHECK_EQ(chronicle.Take(), "{\"t\": 7, \"event\": \"gone\", \"node\": 7}\n");
}
