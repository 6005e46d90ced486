#include "worker/tensors.h"

#include <string>

#include "harness.h"

using namespace mercury;

namespace {

TensorTraits Traits(uint64_t key, std::vector<uint64_t> shape, const std::string& name = "w") {
  TensorTraits traits;
  traits.key = key;
  traits.shape = std::move(shape);
  traits.name = name;
  return traits;
}

}  // namespace

TEST(an_announced_parameter_gives_its_tensors_index_name_and_priority) {
  Tensors tensors;
  tensors.Announce(7, "first", -1);
  tensors.Announce(8, "second", -2);
  tensors.Announce(7, "again", -9);
  std::shared_ptr<Tensor> dense, rows, unknown;
  REQUIRE_OK(tensors.Open(Traits(8, {2, 3}), 8, &dense));
  CHECK_EQ(dense->traits.index, 1U);
  CHECK_EQ(dense->traits.name, std::string("second"));
  CHECK_EQ(dense->traits.priority, -2);
  CHECK_EQ(dense->traits.bytes(), 24U);
  REQUIRE_OK(tensors.Open(Traits(80, {2, 3}), 8, &rows));
  CHECK_EQ(rows->traits.index, 1000001U);
  CHECK_EQ(rows->traits.name, std::string("second (rows)"));
  REQUIRE_OK(tensors.Open(Traits(9, {}, "own name"), 9, &unknown));
  CHECK_EQ(unknown->traits.index, 2U);
  CHECK_EQ(unknown->traits.name, std::string("own name"));
  CHECK_EQ(unknown->traits.elements(), 1U);
}

TEST(a_size_that_cannot_be_is_refused) {
  Tensors tensors;
  std::shared_ptr<Tensor> tensor;
  for (const uint64_t length : {uint64_t{1} << 32, ~uint64_t{0}}) {
    CHECK_TRUE(tensors.Open(Traits(1, {length, length}), 1, &tensor).code() ==
               Code::kInvalidArgument);
  }
  CHECK_OK(tensors.Open(Traits(2, {0, 7}), 2, &tensor));
  CHECK_EQ(tensor->traits.bytes(), 0U);
}

TEST(a_key_stands_for_one_shape_and_type_while_somebody_holds_it) {
  Tensors tensors;
  std::shared_ptr<Tensor> first, second;
  REQUIRE_OK(tensors.Open(Traits(7, {10, 20}), 7, &first));
  REQUIRE_OK(tensors.Open(Traits(7, {10, 20}), 7, &second));
  CHECK_TRUE(first == second);
  std::shared_ptr<Tensor> other;
  const Status status = tensors.Open(Traits(7, {20, 10}), 7, &other);
  CHECK_TRUE(status.code() == Code::kInvalidArgument);
  for (const char* words : {"'w'", "(10, 20)", "(20, 10)", "float32"}) {
    CHECK_TRUE(status.text().find(words) != std::string::npos);
  }
  first = second = nullptr;
  CHECK_OK(tensors.Open(Traits(7, {20, 10}), 7, &other));
}
