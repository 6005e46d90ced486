#include "fabric/net/spare_vectors.h"

#include <set>

#include "harness.h"

using namespace mercury::fabric;
using mercury::MomentumStride;
using mercury::StrideOf;

TEST(a_vector_that_nobody_holds_is_used_again) {
  std::shared_ptr<Vector> kept;
  {
    const SpareVectors spares;
    const Vector* first = spares.Get(5).get();
    kept = spares.Get(5);
    CHECK_TRUE(kept.get() == first);
    CHECK_TRUE(spares.Get(5).get() != first);
    CHECK_EQ(spares.Get(7)->size(), 7);
    CHECK_EQ(spares.Get(5)->size(), 5);
  }
  kept->back() = 1;  // it outlives them
}

TEST(few_vectors_wait_and_all_of_one_length) {
  const SpareVectors spares;
  std::set<const Vector*> given;
  {
    std::vector<std::shared_ptr<Vector>> held;
    for (size_t i = 0; i < 2 * kSparesMost; ++i) held.push_back(spares.Get(3));
    for (const auto& vector : held) given.insert(vector.get());
    CHECK_EQ(given.size(), 2 * kSparesMost);
    held.push_back(spares.Get(4));  // comes back last, when there are others
  }
  std::vector<std::shared_ptr<Vector>> held;
  size_t again = 0;
  for (size_t i = 0; i < kSparesMost; ++i) {
    held.push_back(spares.Get(3));
    again += given.count(held.back().get());
    CHECK_EQ(held.back()->size(), 3);
  }
  CHECK_EQ(again, kSparesMost);
}

TEST(what_others_hold_stays_as_it_is) {
  const SpareVectors spares;
  const Vector update(3, 4);
  auto sum = std::make_shared<Vector>(3, 1), step = std::make_shared<Vector>(3, 2);
  const Vector* const own = sum.get();
  AppendShared(spares, StrideOf(0.5, 1), &sum, &step, {update.data(), update.data()});
  CHECK_TRUE(sum.get() == own);
  CHECK_TRUE(*sum == Vector(3, 1 + 1 + 4) && *step == Vector(3, 1 + 4));
  const std::shared_ptr<const Vector> sent = sum;
  AppendShared(spares, StrideOf(0.5, 1), &sum, &step, {update.data(), update.data()});
  CHECK_TRUE(*sent == Vector(3, 6));
  CHECK_TRUE(*sum == Vector(3, 6 + 2.5F + 4) && *step == Vector(3, 2.5F + 4));
  // The two may begin as one.
  std::shared_ptr<Vector> both = std::make_shared<Vector>(3, 2), other = both;
  AppendShared(spares, StrideOf(0.5, 1), &both, &other, {update.data(), update.data()});
  CHECK_TRUE(*both == Vector(3, 2 + 1 + 4) && *other == Vector(3, 1 + 4));
  const std::shared_ptr<const Vector> plain = both;
  AppendShared(spares, MomentumStride(), &both, nullptr, {update.data(), update.data()});
  CHECK_TRUE(*plain == Vector(3, 7) && *both == Vector(3, 11));
}
