// A job's letters from end to end: workers' errands, and servers' clerks, with nothing between
// them.
#include "letters/errands.h"

#include <deque>

#include "harness.h"
#include "letters/clerk.h"
#include "letters/mailbox.h"

using namespace mercury;

namespace {

constexpr int64_t kSecond = 1000000;

struct Job {
  explicit Job(int num_workers, int num_servers = 2, bool servers_may_go = false) {
    StallTimes stall;
    stall.warn_us = 30 * kSecond;
    stall.end_us = 100 * kSecond;
    for (int s = 0; s < num_servers; ++s) clerks.push_back(NewClerk(num_workers, s));
    for (int w = 0; w < num_workers; ++w) {
      errands.push_back(std::make_unique<Errands>(
          ErrandsOptions{ServerShares(num_servers), stall,
                         [this](int worker, const std::string& /*line*/) { ended_by = worker; },
                         nullptr, servers_may_go},
          [this, w](int server, const JobLetter& letter) {
            mail.push_back([this, w, server, bytes = Encode(letter)] {
              CHECK_OK(clerks[static_cast<size_t>(server)]->Hear(w, bytes));
            });
          },
          [this](const std::string& line) { lines.push_back(line); }));
    }
  }
  std::unique_ptr<Clerk> NewClerk(int num_workers, int s) {
    return std::make_unique<Clerk>(
        num_workers,
        [this, s](int worker, const JobLetter& letter) {
          if (worker == deaf) return;
          mail.push_back([this, s, worker, bytes = Encode(letter)] {
            std::vector<Over> over;
            CHECK_OK(errands[static_cast<size_t>(worker)]->Hear(s, bytes, now_us, &over));
            FinishAll(over);
          });
        },
        [this](int head, const std::string& body) {
          obeyed.push_back(std::to_string(head) + body);
          return body == "no" ? Status::Internal("it cannot") : Status::Ok();
        },
        [](uint64_t key, uint64_t offset) {
          return std::vector<int>{static_cast<int>(key), static_cast<int>(offset)};
        });
  }
  void Deliver() {
    for (; !mail.empty(); mail.pop_front()) mail.front()();
  }
  // Its letters go with it.
  void Lose(int server) {
    const auto s = static_cast<size_t>(server);
    clerks[s] = NewClerk(static_cast<int>(errands.size()), server);
    for (const auto& each : errands) each->Moved(server);
  }
  // What became of it: kCodes while it is open.
  std::shared_ptr<int> Ask(int worker, Operation::Command command) {
    auto code = std::make_shared<int>(kCodes);
    auto op = std::make_shared<Operation>();
    op->kind = Operation::Kind::kCommand;
    op->command = std::move(command);
    op->done = [code, this](const Status& status) {
      *code = static_cast<int>(status.code());
      text = status.text();
    };
    std::vector<Over> over;
    errands[static_cast<size_t>(worker)]->Begin(op, now_us, &over);
    FinishAll(over);
    return code;
  }
  static Operation::Command Says(uint64_t subject, const std::string& what) {
    Operation::Command command;
    command.claim = Claim{subject, Claim::Kind::kTensor, what};
    command.about = {Subject::kTensor, subject, "tensor 'w'"};
    return command;
  }

  // The parameter's question of that number, and a store's of that step: each its own subject.
  static Operation::Command SaysManner(uint64_t parameter, uint64_t number) {
    Operation::Command command = Says(1000000 * (parameter + 1) + number, "whole arrays");
    command.claim->of = Claim::Kind::kSums;
    command.about.key = parameter;
    return command;
  }
  static Operation::Command SaysStep(uint64_t step) {
    const uint64_t subject = (uint64_t{1} << 40) + step;
    Operation::Command command = Says(subject, "lr = 1 from update 1 on");
    command.claim->of = Claim::Kind::kSteps;
    command.about = {Subject::kModel, subject, "the workers' optimizers differ"};
    return command;
  }

  std::vector<std::unique_ptr<Clerk>> clerks;
  std::vector<std::unique_ptr<Errands>> errands;
  std::deque<std::function<void()>> mail;
  std::vector<std::string> obeyed, lines;
  std::string text;
  int ended_by = -1;
  int deaf = -1;  // a worker that servers' answers do not reach
  int64_t now_us = 0;
};

}  // namespace

TEST(a_claim_is_answered_when_all_have_said_the_same) {
  Job job(2);
  const auto first = job.Ask(0, Job::Says(5, "float32"));
  job.Deliver();
  CHECK_EQ(*first, kCodes);
  const auto second = job.Ask(1, Job::Says(5, "float32"));
  job.Deliver();
  CHECK_EQ(*first, 0);
  CHECK_EQ(*second, 0);
}

TEST(who_disagrees_is_told_about_what) {
  Job job(2);
  const auto first = job.Ask(0, Job::Says(5, "float32"));
  const auto second = job.Ask(1, Job::Says(5, "float16"));
  job.Deliver();
  for (const auto& code : {first, second}) {
    CHECK_EQ(*code, static_cast<int>(Code::kInvalidArgument));
  }
  CHECK_EQ(job.text.substr(0, 23), "tensor 'w': worker 0 ha");
}

TEST(who_leaves_is_not_waited_for) {
  Job job(2);
  const auto first = job.Ask(0, Job::Says(5, "float32"));
  job.Deliver();
  for (auto& clerk : job.clerks) clerk->Departed(1);
  job.Deliver();
  CHECK_EQ(*first, static_cast<int>(Code::kInvalidArgument));
}

TEST(a_command_is_over_when_all_servers_have_obeyed) {
  Job job(1, 3);
  Operation::Command command;
  command.head = 7;
  command.body = "x";
  const auto code = job.Ask(0, command);
  for (int server = 0; server < 3; ++server) {
    CHECK_EQ(*code, kCodes);
    job.mail.front()();
    job.mail.pop_front();
  }
  CHECK_TRUE(job.obeyed == std::vector<std::string>({"7x", "7x", "7x"}));
  job.Deliver();
  CHECK_EQ(*code, 0);
  command.body = "no";
  const auto refused = job.Ask(0, command);
  job.Deliver();
  CHECK_EQ(*refused, static_cast<int>(Code::kInternal));
  command.body.assign(kClaimTextBytesMax + 1, 'x');
  CHECK_EQ(*job.Ask(0, command), static_cast<int>(Code::kInvalidArgument));
}

TEST(whom_a_claim_waits_for_is_asked_and_said_and_ends_the_job_at_last) {
  Job job(3);
  const auto code = job.Ask(1, Job::Says(5, "float32"));
  job.Deliver();
  for (; job.ended_by < 0 && job.now_us < 400 * kSecond; job.now_us += kSecond) {
    if (job.now_us == 50 * kSecond) job.now_us += 100 * kSecond;  // this process stands still
    job.errands[1]->Tick(job.now_us);
    job.Deliver();
  }
  CHECK_EQ(job.ended_by, 0);
  CHECK_TRUE(job.now_us >= 200 * kSecond && job.lines.size() >= 2);
  CHECK_EQ(job.lines[0], "tensor 'w' has waited for 30 s: worker 0, 2 has not said that it has it");
  CHECK_TRUE(job.errands[1]->Waiting(job.now_us).find("tensor 'w'") == 0);
  CHECK_EQ(*code, kCodes);
}

TEST(of_a_piece_the_server_says_who_has_not_sent_it) {
  Job job(1);
  job.errands[0]->AskAbout(1, {0, MissingLetter::Kind::kPiece, 3, 4}, "tensor 'x'", "owes it", 0, 0,
                           5 * kSecond);
  job.Deliver();
  REQUIRE_EQ(job.lines.size(), 1U);
  CHECK_EQ(job.lines[0], "tensor 'x' has waited for 5 s: worker 3, 4 owes it");
}

TEST(when_the_job_fails_all_is_over_and_late_answers_are_nothing) {
  Job job(2);
  const auto code = job.Ask(0, Job::Says(5, "float32"));
  job.Ask(1, Job::Says(5, "float32"));
  std::vector<Over> over;
  job.errands[0]->Fail(Status::PeerLost("why"), &over);
  FinishAll(over);
  CHECK_EQ(*code, static_cast<int>(Code::kPeerLost));
  job.Deliver();
  CHECK_EQ(*code, static_cast<int>(Code::kPeerLost));
}

TEST(a_letter_to_the_wrong_end_is_refused) {
  Job job(1);
  std::vector<Over> over;
  CHECK_STATUS(Code::kCorrupt, job.clerks[0]->Hear(0, Encode(AnswerLetter{1, "", {}})));
  CHECK_STATUS(Code::kCorrupt, job.clerks[0]->Hear(0, "nonsense"));
  CHECK_STATUS(Code::kCorrupt, job.errands[0]->Hear(0, Encode(CommandLetter{1, 2, "x"}), 0, &over));
  const auto code = job.Ask(0, Job::Says(5, "float32"));
  const int home = ServerShares(2).Home(5);
  CHECK_STATUS(Code::kCorrupt,
               job.errands[0]->Hear(1 - home, Encode(AnswerLetter{1, "", {}}), 0, &over));
  CHECK_EQ(*code, kCodes);
}

// Its tickets are those of whoever takes its place.
TEST(who_is_forgotten_is_not_answered) {
  std::vector<int> answered;
  Clerk clerk(
      2, [&](int worker, const JobLetter& /*letter*/) { answered.push_back(worker); },
      [](int /*head*/, const std::string& /*body*/) { return Status::Ok(); });
  const std::string claim = Encode(ClaimLetter{1, {7, Claim::Kind::kTensor, "(4,)"}});
  CHECK_OK(clerk.Hear(0, claim));
  clerk.Forget(0);
  CHECK_OK(clerk.Hear(1, claim));
  CHECK_TRUE(answered == std::vector<int>({1}));
}

TEST(a_worker_that_asks_and_does_not_listen_is_refused) {
  const std::string command = Encode(CommandLetter{1, 99, ""});
  const std::string missing = Encode(MissingLetter{1, MissingLetter::Kind::kClaim, 7, 0});
  const std::string claim = Encode(ClaimLetter{1, {7, Claim::Kind::kTensor, "(4,)"}});
  for (const std::string& letter : {command, missing, claim}) {
    Mailbox mailboxes[] = {{64, 1000}, {64, 1000}};
    Clerk clerk(
        2, [&](int worker, const JobLetter& answer) { mailboxes[worker].Post(Encode(answer)); },
        [](int /*head*/, const std::string& /*body*/) { return Status::Ok(); }, nullptr, false,
        [&](int worker) { return mailboxes[worker].unsent(); });
    if (letter == claim) CHECK_OK(clerk.Hear(1, claim));  // all agree, and each is answered at once
    size_t heard = 0;
    while (heard < 100000 && clerk.Hear(0, letter).ok()) ++heard;
    CHECK_EQ(heard, Clerk::kUnsentMax);
    CHECK_STATUS(Code::kCorrupt, clerk.Hear(0, letter));
    CHECK_OK(clerk.Hear(1, missing));
    for (OutPacket packet; mailboxes[0].Next(&packet); packet = OutPacket()) {
    }
    CHECK_OK(clerk.Hear(0, letter));
  }
}

TEST(the_same_claim_again_and_again_is_refused) {
  size_t answers = 0;
  Clerk clerk(
      2, [&](int /*worker*/, const JobLetter& /*answer*/) { ++answers; },
      [](int /*head*/, const std::string& /*body*/) { return Status::Ok(); });
  const std::string claim = Encode(ClaimLetter{1, {7, Claim::Kind::kTensor, "(4,)"}});
  size_t heard = 0;
  while (heard <= Clerk::kOpenMax && clerk.Hear(0, claim).ok()) ++heard;
  CHECK_EQ(heard, Clerk::kOpenMax);
  CHECK_STATUS(Code::kCorrupt, clerk.Hear(0, claim));
  CHECK_OK(clerk.Hear(1, claim));
  CHECK_EQ(answers, heard + 1);
  CHECK_OK(clerk.Hear(0, claim));  // those are open no more
}

TEST(what_another_worker_still_waits_for_is_said_again) {
  Job job(2, 1, true);
  const auto both_say = [&job](const Operation::Command& command) {
    job.Ask(0, command);
    return job.Ask(1, command);
  };
  for (uint64_t step = 1; step <= 300; ++step) both_say(Job::SaysStep(step));
  for (uint64_t number = 1; number <= 5; ++number) {
    both_say(Job::SaysManner(5, number));
    job.Deliver();
  }
  job.deaf = 1;
  std::vector<std::shared_ptr<int>> waits;
  waits.push_back(both_say(Job::Says(5, "float32")));
  // A whole sum and one by rows wait at once.
  for (const uint64_t number : {6, 7}) waits.push_back(both_say(Job::SaysManner(5, number)));
  waits.push_back(both_say(Job::SaysStep(301)));
  job.Deliver();
  for (const auto& code : waits) CHECK_EQ(*code, kCodes);
  job.deaf = -1;
  job.Lose(0);
  job.Deliver();
  for (const auto& code : waits) CHECK_EQ(*code, 0);
}

// However long a job lasts, and however often the tensors of a job of many parameters are opened.
TEST(claims_that_come_again_and_again_do_not_pile_up) {
  constexpr uint64_t kParameters = 3000;
  Job job(1, 1, true);
  for (uint64_t number = 1; number <= 5; ++number) {
    for (uint64_t parameter = 0; parameter < kParameters; ++parameter) {
      job.Ask(0, Job::Says(parameter, "float32"));
      job.Ask(0, Job::SaysManner(parameter, number));
    }
  }
  for (uint64_t step = 0; step < 10000; ++step) job.Ask(0, Job::SaysStep(step));
  job.Deliver();
  job.errands[0]->Moved(0);
  CHECK_TRUE(job.mail.size() <= 3 * kParameters + 1000);
  CHECK_TRUE(job.mail.size() >= 3 * kParameters);
}
