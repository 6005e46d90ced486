#include "fabric/net/assembly.h"

#include <algorithm>

#include "harness.h"

using namespace mercury::fabric;
using namespace mercury::testing;

namespace {

constexpr size_t kElements = 10;
constexpr size_t kServers = 3;

ModelLetter Letter(int64_t wish, int64_t version) {
  ModelLetter letter;
  letter.wish = wish;
  letter.version = version;
  return letter;
}

// A stripe that has come so far, of `value`.
std::shared_ptr<Inflow> Come(const Landing& landing, size_t elements, float value) {
  auto inflow = std::make_shared<Inflow>();
  inflow->sum = landing.sum;
  inflow->stripe = landing.stripe;
  inflow->elements = landing.stripe.elements();
  inflow->bytes = elements * sizeof(float);
  for (size_t at = 0; at < elements; ++at) (*landing.sum)[landing.stripe.In(at)] = value;
  return inflow;
}

}  // namespace

TEST(stripes_become_one_model_of_which_the_beginning_is_there_first) {
  Assembly assembly(kElements, kServers, {});
  const ModelLetter letter = Letter(4, 7);
  std::vector<std::shared_ptr<Inflow>> stripes(kServers);
  std::shared_ptr<const Inflow> whole;
  for (const size_t server : {2, 0, 1}) {  // blocks of three, and one more of the first
    const Landing landing = assembly.Into(server, letter);
    stripes[server] = Come(landing, 1, static_cast<float>(server));
    const auto first = assembly.Comes(server, letter, stripes[server]);
    CHECK_EQ(first != nullptr, server == 2);
    if (first != nullptr) whole = first;
    CHECK_EQ(whole->there(), server == 2 ? 0 : 1);
  }
  CHECK_TRUE(assembly.Take(letter).sum == nullptr);
  for (size_t server = 0; server < kServers; ++server) {
    const Landing landing{
        std::const_pointer_cast<Vector>(whole->sum), nullptr, {server, kServers, kElements}};
    *stripes[server] = *Come(landing, landing.stripe.elements(), static_cast<float>(server));
    const size_t there[] = {4, 7, 10};
    CHECK_EQ(whole->there(), there[server]);
  }
  CHECK_TRUE(whole->whole());
  const Cargo model = assembly.Take(letter);
  CHECK_TRUE(*model.sum == (Vector{0, 0, 0, 1, 1, 1, 2, 2, 2, 0}));
  CHECK_TRUE(assembly.Take(letter).sum == nullptr);  // it was given
}

TEST(an_older_model_comes_to_its_end_and_one_that_is_sent_again_is_another) {
  Assembly assembly(kElements, kServers, {});
  const auto begin = [&](size_t server, const ModelLetter& letter) {
    const Landing landing = assembly.Into(server, letter);
    return assembly.Comes(server, letter, Come(landing, 1, 0));
  };
  const auto one = begin(0, Letter(4, 7));
  CHECK_TRUE(begin(1, Letter(4, 7)) == nullptr);
  const auto again = begin(0, Letter(4, 7));
  CHECK_TRUE(again != nullptr && again != one);
  CHECK_TRUE(one->broken() && !again->broken());  // nobody waits for the rest of it
  const auto newer = begin(0, Letter(5, 7));
  CHECK_TRUE(newer != nullptr && !again->broken());  // others may wait for it, to whom it goes on
  const ModelLetter letter = Letter(4, 7);
  for (size_t server = 0; server < kServers; ++server) {
    const Stripe stripe{server, kServers, kElements};
    const Landing landing{std::const_pointer_cast<Vector>(again->sum), nullptr, stripe};
    if (server != 0) {
      CHECK_TRUE(assembly.Into(server, letter).sum == again->sum);
    }
    assembly.Comes(server, letter, Come(landing, stripe.elements(), 1));
  }
  CHECK_TRUE(*assembly.Take(letter).sum == Vector(kElements, 1));
  CHECK_FALSE(newer->broken());
  assembly.Clear();
  CHECK_TRUE(newer->broken());
  CHECK_TRUE(assembly.Take(Letter(5, 7)).sum == nullptr);
}

TEST(no_more_than_so_many_models_come_at_once) {
  Assembly assembly(kElements, kServers, {});
  std::vector<std::shared_ptr<const Inflow>> begun;
  for (int64_t wish = 100; begun.size() <= kTransfersMost; --wish) {
    const Landing landing = assembly.Into(0, Letter(wish, 1));
    begun.push_back(assembly.Comes(0, Letter(wish, 1), Come(landing, 1, 0)));
  }
  const auto broken = [](const auto& its) { return its->broken(); };
  CHECK_EQ(std::count_if(begun.begin(), begun.end(), broken), 1);
}

TEST(a_model_is_broken_if_one_of_its_stripes_is) {
  Assembly assembly(kElements, kServers, {});
  const ModelLetter letter = Letter(1, 1);
  const auto stripe = Come(assembly.Into(1, letter), 1, 0);
  const auto whole = assembly.Comes(1, letter, stripe);
  CHECK_FALSE(whole->broken());
  stripe->aborted = true;
  CHECK_TRUE(whole->broken());
  // The next one begins anew.
  CHECK_TRUE(assembly.Into(0, letter).sum != whole->sum);
}
