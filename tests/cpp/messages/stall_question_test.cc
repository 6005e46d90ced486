#include "messages/stall_question.h"

#include <string>
#include <tuple>

#include "harness.h"
#include "messages/agreement.h"

using namespace mercury;

TEST(a_question_is_read_as_it_was_written) {
  for (const StallQuestion asked : {StallQuestion{StallQuestion::Of::kPiece, 7, 4096},
                                    StallQuestion{StallQuestion::Of::kClaim, ~uint64_t{0}, 0}}) {
    StallQuestion read;
    REQUIRE_OK(Decode(Encode(asked), &read));
    CHECK_TRUE(read.of == asked.of && read.key == asked.key && read.offset == asked.offset);
  }
  const std::string good = Encode(StallQuestion());
  StallQuestion read;
  for (const std::string& bad :
       {std::string(), good + "0", good.substr(1), "x" + good.substr(1),
        good.substr(0, 5) + "g" + good.substr(6), good.substr(0, 20) + "-" + good.substr(21)}) {
    CHECK_STATUS(Code::kCorrupt, Decode(bad, &read));
  }
}

TEST(what_waits_is_named_and_what_is_owed) {
  TensorTraits traits;
  traits.key = 7;
  traits.name = "w";
  Operation sum;
  sum.tensor = std::make_shared<Tensor>(traits);
  const Stall of_sum = StallOf(sum, 4096);
  CHECK_TRUE(of_sum.question.of == StallQuestion::Of::kPiece);
  CHECK_EQ(of_sum.question.key, 7U);
  CHECK_EQ(of_sum.question.offset, 4096U);
  CHECK_EQ(of_sum.what, std::string("tensor 'w'"));
  CHECK_EQ(of_sum.owes, std::string("has not sent it all"));
  Operation claims;
  claims.kind = Operation::Kind::kCommand;
  claims.command.about.label = "tensor 'w' (key 3)";
  for (const auto& [of, what, owes] :
       {std::tuple{Claim::Of::kTensor, "tensor 'w' (key 3)", "has not said that it has it"},
        std::tuple{Claim::Of::kSums, "tensor 'w' (key 3)", "has not sent it all"},
        std::tuple{Claim::Of::kModel, "the list of the model's parameters",
                   "has not said which it has"}}) {
    claims.command.body = Encode(Claim{9, of, "text"});
    const Stall stall = StallOf(claims, 0);
    CHECK_TRUE(stall.question.of == StallQuestion::Of::kClaim);
    CHECK_EQ(stall.question.key, 9U);
    CHECK_EQ(stall.what, std::string(what));
    CHECK_EQ(stall.owes, std::string(owes));
  }
}

TEST(an_answer_is_ranks_and_nothing_else) {
  CHECK_EQ(EncodeRanks({}), std::string());
  CHECK_EQ(EncodeRanks({1, 3, 12}), std::string("1, 3, 12"));
  CHECK_TRUE(AreRanks(""));
  CHECK_TRUE(AreRanks("1, 3, 12"));
  CHECK_FALSE(AreRanks("1\n3"));
  CHECK_FALSE(AreRanks("worker 1"));
  CHECK_EQ(FirstRank("3, 12"), 3);
  for (const char* none : {"", ", ", "99999999999999", "x"}) CHECK_EQ(FirstRank(none), -1);
}
