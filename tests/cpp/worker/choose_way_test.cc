// Which transport carries what, as a table of every kind of work and every kind of tensor.
#include "worker/choose_way.h"

#include "harness.h"

using namespace mercury;

namespace {

using Kind = Operation::Kind;

struct Row {
  Kind kind;
  bool packets, asynchronous, compressed;
  Way last_sum;
  Way way;
  Kind as;
};

constexpr Way kP = Way::kPackets, kM = Way::kMessages;
const Row kTable[] = {
    // kind         packets asyn.  compr. last    way  as
    {Kind::kSum, true, false, false, kM, kP, Kind::kSum},
    {Kind::kSum, true, true, false, kM, kM, Kind::kSum},
    {Kind::kSum, true, false, true, kM, kM, Kind::kSum},
    {Kind::kSum, false, false, false, kM, kM, Kind::kSum},
    {Kind::kSum, false, true, true, kM, kM, Kind::kSum},
    {Kind::kPush, true, false, false, kM, kM, Kind::kPush},
    {Kind::kPush, false, false, false, kM, kM, Kind::kPush},
    {Kind::kPull, true, false, false, kP, kP, Kind::kAgain},
    {Kind::kPull, true, false, true, kP, kP, Kind::kAgain},
    {Kind::kPull, true, false, false, kM, kM, Kind::kPull},
    {Kind::kPull, false, false, false, kM, kM, Kind::kPull},
    {Kind::kAgain, true, false, false, kP, kP, Kind::kAgain},
    {Kind::kAgain, false, false, false, kM, kM, Kind::kPull},
    {Kind::kFirstValue, true, false, false, kM, kM, Kind::kFirstValue},
    {Kind::kFirstValue, false, false, false, kM, kM, Kind::kFirstValue},
    {Kind::kRows, true, false, false, kM, kM, Kind::kRows},
    {Kind::kRows, false, false, false, kM, kM, Kind::kRows},
    {Kind::kCommand, true, false, false, kM, kM, Kind::kCommand},
};

}  // namespace

TEST(every_kind_of_work_has_its_way) {
  for (const Row& row : kTable) {
    TensorTraits traits;
    traits.asynchronous = row.asynchronous;
    Tensor tensor(traits);
    if (row.compressed) tensor.compression = Compression::kTwoBit;
    tensor.last_sum = row.last_sum;
    const Choice choice = ChooseWay(row.kind, tensor, row.packets);
    CHECK_TRUE(choice.way == row.way);
    CHECK_TRUE(choice.kind == row.as);
  }
}
