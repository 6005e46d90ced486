#include "base/status.h"

#include "harness.h"

using namespace mercury;  // NOLINT: a test

namespace {

Status Random(mercury::testing::Random* random) {
  const auto below = [&](uint64_t n) { return random->Below(n); };
  const auto word = [&] {
    std::string text;
    for (uint64_t i = below(200); i != 0; --i) text += "ab \n\t:'"[below(8)];
    return text;
  };
  Status status(static_cast<Code>(1 + below(kCodes - 1)), "x" + word() + "x");
  const auto fault = static_cast<Blame::Fault>(below(kFaults));
  std::vector<Party> parties;
  for (uint64_t i = fault == Blame::kNobody ? 0 : 1 + below(3); i != 0; --i) {
    parties.push_back(
        {static_cast<Role>(below(kRoles)), static_cast<int>(below(1000)) - 1, word()});
  }
  return status.By({fault, parties})
      .About({static_cast<Subject::Kind>(below(kSubjects)), (*random)() >> 1, word()})
      .Of(static_cast<Code>(below(kCodes)));
}

}  // namespace

TEST(what_is_derived_from_a_failure_has_its_number) {
  const Status first = Status::Timeout("late");
  const Status same = first.By({Blame::kDid, NodeId(Role::kWorker, 1)}).Saying("very late");
  CHECK_EQ(first.number(), same.number());
  CHECK_TRUE(first.number() != Status::Timeout("late").number());
  CHECK_EQ(first.text(), std::string("late"));
  CHECK_EQ(same.text(), std::string("worker 1: very late"));
  CHECK_OK(Status::Ok().By({Blame::kDid, 9}).As(Code::kInternal));
}

TEST(a_text_is_made_of_what_is_known) {
  const Party worker{Role::kWorker, 1, "10.0.0.5:4"}, server{Role::kServer, 0, ""};
  const Subject tensor{Subject::kTensor, 3, "tensor 'w' (key 3)"};
  const Status status = Status::PeerLost("why");
  for (const auto& [blame, text] : std::vector<std::pair<Blame, std::string>>{
           {{}, "tensor 'w' (key 3): why"},
           {{Blame::kNamed, worker}, "tensor 'w' (key 3): why"},
           {{Blame::kDid, worker}, "worker 1: tensor 'w' (key 3): why"},
           {{Blame::kLost, {worker, server}},
            "lost worker 1 (10.0.0.5:4), server 0: tensor 'w' (key 3): why"},
           {{Blame::kEnded, worker}, "worker 1 ended: tensor 'w' (key 3): why"},
           {{Blame::kApart, {worker, server, worker, server}},
            "worker 1 and server 0, worker 1 and server 0 cannot reach each other: tensor 'w' "
            "(key 3): why"},
           {{Blame::kUnreached, worker}, "worker 1 at 10.0.0.5:4: tensor 'w' (key 3): why"}}) {
    CHECK_EQ(status.By(blame).About(tensor).text(), text);
  }
}

TEST(a_failure_arrives_as_it_was_sent) {
  mercury::testing::Random random;
  for (int i = 0; i < 2000; ++i) {
    const Status sent = Random(&random);
    Status heard;
    Decode(Encode(sent, 1 << 20) + std::string(random.Below(9), ' '), &heard);
    CHECK_TRUE(heard.code() == sent.code() && heard.cause() == sent.cause());
    CHECK_EQ(heard.detail(), sent.detail());
    CHECK_TRUE(heard.subject().Is(sent.subject()));
    CHECK_TRUE(heard.blame().fault == sent.blame().fault);
    REQUIRE_EQ(heard.blame().parties.size(), sent.blame().parties.size());
    for (size_t p = 0; p < heard.blame().parties.size(); ++p) {
      CHECK_TRUE(heard.blame().parties[p].Is(sent.blame().parties[p]));
    }
  }
}

TEST(what_does_not_fit_is_left_out) {
  const std::vector<Party> many(200, Party{Role::kWorker, 7, std::string(100, 'h')});
  const Subject subject{Subject::kTensor, 5, std::string(1000, 'l')};
  const Status sent =
      Status::PeerLost(std::string(5000, 'd')).By({Blame::kLost, many}).About(subject);
  const std::string text = Encode(sent);
  CHECK_TRUE(text.size() <= kFailureBytesMax);
  Status heard;
  Decode(text, &heard);
  CHECK_STATUS(Code::kPeerLost, heard);
  CHECK_TRUE(heard.subject().Is(subject));
  CHECK_TRUE(!heard.blame().parties.empty() && heard.blame().parties[0].Is(many[0]));
  CHECK_TRUE(heard.detail().size() > 100);
}

TEST(what_cannot_be_read_is_still_a_failure) {
  const std::string good = Encode(Status::PeerLost("why").By({Blame::kDid, 9}));
  for (size_t size = 0; size + 3 < good.size(); ++size) {
    Status heard;
    Decode(good.substr(0, size), &heard);
    CHECK_STATUS(Code::kCorrupt, heard);
  }
  for (const char* text : {"0 0 0 0 0 0 \n", "3 0 2 0 0 0 \n", "3 0 0 1 0 0 \n1 2 \n",
                           "3 9 0 0 0 0 \n", "-3 0 0 0 0 0 \n", "3 0 2 99 0 0 \n"}) {
    Status heard;
    Decode(text, &heard);
    CHECK_STATUS(Code::kCorrupt, heard);
  }
}

TEST(other_words_change_nothing_else) {
  const Status status = Status::PeerLost("why").By({Blame::kLost, NodeId(Role::kWorker, 1)});
  SetWording([](const Status& /*status*/) { return std::string("?"); });
  CHECK_EQ(status.text(), std::string("?"));
  Status heard;
  Decode(Encode(status), &heard);
  SetWording(nullptr);
  CHECK_EQ(heard.text(), std::string("lost worker 1: why"));
}
