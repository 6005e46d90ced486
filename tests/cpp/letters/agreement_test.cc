#include "letters/agreement.h"

#include <map>
#include <random>
#include <string>
#include <vector>

#include "harness.h"

using namespace mercury;

namespace {

struct Server {
  explicit Server(int workers, bool elastic = false) : agreement(workers, elastic) {}
  uint64_t Hear(int worker, uint64_t subject, const std::string& text,
                Claim::Kind of = Claim::Kind::kTensor) {
    std::vector<Agreement::Verdict> verdicts;
    agreement.Hear(worker, {subject, of, text}, ++tickets, &verdicts);
    Take(verdicts);
    return tickets;
  }
  void Departed(int worker) {
    std::vector<Agreement::Verdict> verdicts;
    agreement.Departed(worker, &verdicts);
    Take(verdicts);
  }
  void Release(uint64_t subject) {
    std::vector<Agreement::Verdict> verdicts;
    agreement.Release(subject, &verdicts);
    Take(verdicts);
  }
  void Take(const std::vector<Agreement::Verdict>& verdicts) {
    for (const auto& verdict : verdicts) {
      CHECK_TRUE(answers.emplace(verdict.ticket, verdict.status).second);  // one each
    }
  }
  bool Answered(uint64_t ticket) const { return answers.count(ticket) != 0; }
  std::string Says(uint64_t ticket) const {
    CHECK_TRUE(answers.at(ticket).code() == Code::kInvalidArgument);
    return answers.at(ticket).text();
  }
  Agreement agreement;
  uint64_t tickets = 0;
  std::map<uint64_t, Status> answers;
};

// Said by both, twice: it is forgotten once agreed on.
void SaysTheSameEachTime(Server* server, const std::string& text, Claim::Kind of) {
  for (int round = 0; round < 2; ++round) {
    const auto first = server->Hear(0, 7, text, of);
    CHECK_FALSE(server->Answered(first));
    const auto second = server->Hear(1, 7, text, of);
    CHECK_OK(server->answers.at(first));
    CHECK_OK(server->answers.at(second));
  }
}

const char kShape[] = "float32 of shape (10, 20)", kOther[] = "float32 of shape (20, 10)";

}  // namespace

TEST(all_hear_once_the_last_has_spoken) {
  Server server(3);
  const auto a = server.Hear(2, 7, kShape), b = server.Hear(0, 7, kShape);
  CHECK_FALSE(server.Answered(a) || server.Answered(b));
  const auto again = server.Hear(0, 7, kShape);
  CHECK_FALSE(server.Answered(again));
  const auto c = server.Hear(1, 7, kShape);
  for (const uint64_t ticket : {a, b, c, again}) CHECK_OK(server.answers.at(ticket));
  const auto later = server.Hear(1, 7, kShape);
  CHECK_OK(server.answers.at(later));
}

TEST(a_difference_is_told_to_all_at_once_and_for_good) {
  Server server(3);
  const auto a = server.Hear(0, 7, kShape), other = server.Hear(0, 8, kShape);
  const auto b = server.Hear(2, 7, kOther);
  const std::string says = server.Says(a);
  CHECK_EQ(says,
           std::string("worker 0 has float32 of shape (10, 20), worker 2 has float32 of shape "
                       "(20, 10): all workers must use the same shape and type"));
  CHECK_EQ(server.Says(b), says);
  const auto c = server.Hear(1, 7, kShape);
  CHECK_EQ(server.Says(c), says);
  CHECK_FALSE(server.Answered(other));
}

TEST(models_must_have_the_same_keys_by_whatever_names) {
  Server server(2);
  const auto of = Claim::Kind::kModel;
  const auto a = server.Hear(0, 1, "0\tdense0_weight\n1\tdense0_bias\n", of);
  const auto b = server.Hear(1, 1, "0\tdense2_weight\n1\tdense2_bias\n", of);
  CHECK_OK(server.answers.at(a));
  CHECK_OK(server.answers.at(b));
  server.Hear(0, 2, "0\tw\n1\tb\n", of);
  const auto more = server.Hear(1, 2, "0\tw\n1\tb\n2\tw2\n3\tb2\n", of);
  CHECK_EQ(server.Says(more),
           std::string("worker 1 has key 2 ('w2') and 1 more, which worker 0 does not have: all "
                       "workers must train the same model"));
  server.Hear(0, 3, "0\tw\n'b'\tb\n", of);
  const auto fewer = server.Hear(1, 3, "0\tw\n", of);
  CHECK_EQ(server.Says(fewer),
           std::string("worker 0 has key 'b' ('b'), which worker 1 does not have: all workers must "
                       "train the same model"));
  const auto odd = server.Hear(0, 4, "no tab", of);
  CHECK_FALSE(server.Answered(odd));
  const auto none = server.Hear(1, 4, "", of);
  CHECK_TRUE(server.Says(none).find("key no tab ('')") != std::string::npos);
}

TEST(who_has_left_and_never_had_it_is_named) {
  Server server(2);
  const auto shared = server.Hear(0, 1, kShape);
  const auto alone = server.Hear(1, 2, kShape);
  server.Departed(0);
  CHECK_EQ(server.Says(alone),
           std::string("worker 1 has it, worker 0 does not have it and has finished"));
  const auto late = server.Hear(1, 3, kShape);
  CHECK_TRUE(server.Says(late).find("worker 0 does not have it") != std::string::npos);
  const auto both = server.Hear(1, 1, kShape);
  CHECK_OK(server.answers.at(both));
  CHECK_OK(server.answers.at(shared));
  server.Departed(1);
  server.Departed(5);
}

TEST(how_to_sum_is_asked_anew_each_time) {
  const auto sums = Claim::Kind::kSums;
  Server server(2);
  SaysTheSameEachTime(&server, "whole arrays", sums);
  const auto first = server.Hear(1, 8, "row_sparse arrays", sums);
  const auto second = server.Hear(0, 8, "whole arrays", sums);
  for (const uint64_t ticket : {first, second}) {
    CHECK_EQ(server.Says(ticket),
             std::string("worker 1 pushes row_sparse arrays, worker 0 pushes whole arrays: all "
                         "workers must push the same kind, compressed alike, and have the same "
                         "optimizer"));
  }
}

TEST(steps_are_compared_anew_each_time) {
  const auto steps = Claim::Kind::kSteps;
  Server server(2);
  SaysTheSameEachTime(&server, "lr = 1 from update 1 on", steps);
  const auto first = server.Hear(0, 8, "lr = 1 from update 1 on", steps);
  const auto second = server.Hear(1, 8, "lr = 2 from update 1 on", steps);
  for (const uint64_t ticket : {first, second}) {
    CHECK_EQ(
        server.Says(ticket),
        std::string("worker 0 has lr = 1 from update 1 on; worker 1 has lr = 2 from update 1 on: "
                    "all workers' optimizers must be told the same at each step"));
  }
  const auto alone = server.Hear(0, 9, "lr = 1 from update 1 on", steps);
  CHECK_FALSE(server.Answered(alone));
  server.Departed(1);
  CHECK_OK(server.answers.at(alone));
}

TEST(of_how_to_sum_who_has_left_says_nothing) {
  Server server(3);
  const auto before = server.Hear(0, 7, "whole arrays", Claim::Kind::kSums);
  const auto other = server.Hear(0, 9, kShape);
  CHECK_TRUE(server.agreement.Missing(7) == (std::vector<int>{1, 2}));
  CHECK_TRUE(server.agreement.Missing(6).empty());
  server.Departed(2);
  CHECK_FALSE(server.Answered(before));
  CHECK_TRUE(server.agreement.Missing(7) == std::vector<int>{1});
  CHECK_TRUE(server.Answered(other));
  const auto more = server.Hear(0, 8, "whole arrays", Claim::Kind::kSums);
  server.Departed(1);
  CHECK_OK(server.answers.at(before));
  CHECK_OK(server.answers.at(more));
  const auto alone = server.Hear(0, 10, "whole arrays", Claim::Kind::kSums);
  CHECK_OK(server.answers.at(alone));
}

TEST(who_comes_in_a_place_says_what_the_others_say_from_then_on) {
  Server server(2, true);
  server.Departed(1);
  const auto alone = server.Hear(0, 7, kShape);
  CHECK_OK(server.answers.at(alone));
  server.agreement.Comes(1);
  const auto waits = server.Hear(0, 8, kShape);
  CHECK_FALSE(server.Answered(waits));
  CHECK_TRUE(server.agreement.Missing(8) == std::vector<int>{1});
  const auto late = server.Hear(1, 7, kShape);  // what had been agreed on before
  const auto other = server.Hear(1, 8, kShape);
  for (const auto ticket : {late, waits, other}) CHECK_OK(server.answers.at(ticket));
  // What the one before it had said of what is open, it has not.
  const auto open = server.Hear(1, 9, "whole arrays", Claim::Kind::kSums);
  server.Departed(1);
  server.agreement.Comes(1);
  const auto again = server.Hear(0, 9, "whole arrays", Claim::Kind::kSums);
  CHECK_FALSE(server.Answered(open) || server.Answered(again));
}

TEST(what_nobody_uses_any_more_is_waited_for_by_nobody) {
  Server server(3, true);
  const auto before = server.Hear(0, 7, kShape);
  CHECK_FALSE(server.Answered(before));
  server.Release(7);
  CHECK_OK(server.answers.at(before));
  // Whoever says so later, too.
  const auto after = server.Hear(1, 7, kOther);
  CHECK_OK(server.answers.at(after));
  server.Release(8);
  const auto other = server.Hear(0, 8, kShape);
  CHECK_OK(server.answers.at(other));
  server.agreement.Comes(2);
  server.Departed(2);
}

// However many newcomers there have been, and whichever server has anything to do with it.
TEST(what_is_released_is_not_counted_nor_kept_for_good) {
  Server server(2, true);
  const auto before = server.Hear(0, 7, kShape);
  server.Release(7);
  CHECK_OK(server.answers.at(before));
  for (uint64_t subject = 8; subject < 8 + Agreement::kSubjectsMax; ++subject) {
    server.Release(subject);
  }
  const auto last = server.Hear(0, 7 + Agreement::kSubjectsMax, kShape);
  CHECK_OK(server.answers.at(last));
  const auto first = server.Hear(0, 1, kShape), second = server.Hear(1, 1, kShape);
  CHECK_OK(server.answers.at(first));
  CHECK_OK(server.answers.at(second));
  const auto again = server.Hear(0, 7, kShape);  // as if it were another
  CHECK_FALSE(server.Answered(again));
}

TEST(a_claim_from_outside_the_job_is_answered_too) {
  Server server(2);
  for (const int worker : {-1, 2}) {
    const auto ticket = server.Hear(worker, 1, kShape);
    CHECK_TRUE(server.answers.at(ticket).code() == Code::kCorrupt);
  }
}

TEST(every_claim_gets_one_verdict_in_any_order) {
  for (uint32_t seed = 0; seed < 500; ++seed) {
    std::mt19937 random(seed);
    const int workers = 1 + static_cast<int>(random() % 4);
    Server server(workers);
    for (int i = 0; i < 40; ++i) {
      const int worker = static_cast<int>(random() % static_cast<uint32_t>(workers));
      server.Hear(worker, random() % 3, random() % 10 == 0 ? kOther : kShape);
      if (random() % 20 == 0) server.Departed(worker);
    }
    for (int worker = 0; worker < workers; ++worker) server.Departed(worker);
    CHECK_EQ(server.answers.size(), server.tickets);
  }
}
