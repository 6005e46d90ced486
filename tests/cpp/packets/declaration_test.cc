#include "packets/declaration.h"

#include <set>
#include <string>
#include <vector>

#include "harness.h"
#include "hex.h"

using namespace mercury;  // NOLINT: a test
using mercury::testing::Hex;

TEST(golden_bytes_of_a_declaration) {
  Declaration d;
  d.key = 0x1122334455667788;
  d.elements = 1000;
  d.dtype = DType::kBfloat16;
  d.index = 0x0405;
  d.codec = PlainCodec(d.dtype).number;
  d.parameter = 0.5F;
  d.asynchronous = true;
  d.name = "fc1_weight";
  const std::string bytes = Encode(d);
  CHECK_EQ(Hex(bytes.data(), bytes.size()),
           "8877665544332211"
           "e803000000000000"
           "0c0c010005040000"
           "0000003f01000000"
           "0000000000000000"
           "6663315f776569676874");
  CHECK_EQ(d.bytes(), 2000U);
}

TEST(declarations_come_back_as_they_were) {
  mercury::testing::Random random;
  const DType types[] = {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kUint8,
                         DType::kInt32,   DType::kInt8,    DType::kInt64,   DType::kBfloat16};
  for (int trial = 0; trial < 500; ++trial) {
    Declaration d;
    d.key = random();
    d.dtype = types[random.Below(std::size(types))];
    d.codec = PlainCodec(d.dtype).number;
    if (d.dtype == DType::kFloat32 && random.OneIn(2)) d.codec = FindCompression("2bit")->number;
    d.parameter = random.Float(-9, 9);
    d.asynchronous = random.OneIn(2);
    d.elements = random.Below(kTensorBytesMax / ElementBytes(d.dtype) + 1);
    if (FindCodec(d.codec)->plain && !d.asynchronous && random.OneIn(2)) {
      d.row_elements = 1 + random.Below(1000);
      d.elements = d.elements / d.row_elements * d.row_elements;
    }
    d.index = static_cast<uint32_t>(random());
    d.name.resize(random.Below(kTensorNameBytesMax + 1));
    random.Fill(d.name.data(), d.name.size());
    const std::string bytes = Encode(d);
    Declaration back;
    REQUIRE_OK(Decode(bytes.data(), bytes.size(), &back));
    CHECK_EQ(back.key, d.key);
    CHECK_EQ(back.elements, d.elements);
    CHECK_EQ(back.index, d.index);
    CHECK_EQ(back.codec, d.codec);
    CHECK_EQ(back.parameter, d.parameter);
    CHECK_EQ(back.asynchronous, d.asynchronous);
    CHECK_EQ(back.row_elements, d.row_elements);
    CHECK_TRUE(back.dtype == d.dtype && back.name == d.name);
    CHECK_TRUE(d.bytes() <= kTensorBytesMax);
  }
}

TEST(long_names_are_cut_so_that_the_packet_stays_legal) {
  Declaration d;
  d.name.assign(5000, 'x');
  const std::string bytes = Encode(d);
  Header h;
  h.kind = PacketKind::kDeclare;
  h.length = static_cast<uint32_t>(bytes.size());
  CHECK_OK(Decode(Encode(h).data(), 64, &h));
  Declaration back;
  CHECK_OK(Decode(bytes.data(), bytes.size(), &back));
  CHECK_EQ(back.name.size(), kTensorNameBytesMax);
}

TEST(declarations_that_make_no_sense) {
  Declaration d;
  d.elements = 10;
  const std::string right = Encode(d);
  for (size_t bytes = 0; bytes < right.size(); ++bytes) {
    CHECK_STATUS(Code::kCorrupt, Decode(right.data(), bytes, &d));
  }
  std::set<int> known;
  for (int type = 0; type < 256; ++type) {
    std::string bytes = right;
    bytes[16] = bytes[17] = static_cast<char>(type);
    const Status status = Decode(bytes.data(), bytes.size(), &d);
    if (status.ok()) known.insert(type);
    CHECK_TRUE(status.ok() || status.code() == Code::kCorrupt);
  }
  CHECK_TRUE((known == std::set<int>{0, 1, 2, 3, 4, 5, 6, 12}));
  // As many bytes as may be, one element more, and as many as overflow.
  Declaration big;
  big.dtype = DType::kFloat64;
  big.codec = PlainCodec(big.dtype).number;
  for (const uint64_t elements : {kTensorBytesMax / 8 + 1, uint64_t{1} << 61, ~uint64_t{0}}) {
    big.elements = elements;
    const std::string bytes = Encode(big);
    CHECK_STATUS(Code::kCorrupt, Decode(bytes.data(), bytes.size(), &d));
  }
  big.elements = kTensorBytesMax / 8;
  const std::string bytes = Encode(big);
  CHECK_OK(Decode(bytes.data(), bytes.size(), &d));
  // Another type's codec, more than a boolean, a copy of nobody, rows that do not fit, and what is
  // not a number.
  for (const auto& [at, value] : std::vector<std::pair<size_t, char>>{
           {17, 1}, {17, 99}, {18, 2}, {19, 1}, {28, 0}, {32, 3}}) {
    std::string wrong = right;
    wrong[at] = value;
    CHECK_STATUS(Code::kCorrupt, Decode(wrong.data(), wrong.size(), &d));
  }
  // Nobody can send for others what each must send for itself.
  Declaration together;
  together.workers = 4;
  together.elements = 12;
  const auto decoded = [&d](const Declaration& declared) {
    const std::string text = Encode(declared);
    return Decode(text.data(), text.size(), &d);
  };
  CHECK_OK(decoded(together));
  CHECK_EQ(d.workers, 4U);
  Declaration rows = together, coded = together, asynchronous = together;
  rows.row_elements = 3;
  coded.codec = FindCompression("2bit")->number;
  asynchronous.asynchronous = true;
  for (const Declaration& each : {rows, coded, asynchronous}) {
    CHECK_STATUS(Code::kCorrupt, decoded(each));
  }
  // Rows, in a tensor without any, of more bytes than a tensor may have, and of as many as
  // overflow.
  for (const DType type : {DType::kFloat64, DType::kFloat32, DType::kFloat16}) {
    Declaration empty;
    empty.dtype = type;
    empty.codec = PlainCodec(type).number;
    empty.row_elements = kTensorBytesMax / ElementBytes(type);
    CHECK_OK(decoded(empty));
    for (const uint64_t row : {empty.row_elements + 1, ~uint64_t{7} / ElementBytes(type)}) {
      empty.row_elements = row;
      CHECK_STATUS(Code::kCorrupt, decoded(empty));
    }
  }
  std::string infinite = right;
  infinite[26] = '\x80';
  infinite[27] = '\x7f';
  CHECK_STATUS(Code::kCorrupt, Decode(infinite.data(), infinite.size(), &d));
}

TEST(a_place_of_rows_is_a_slot_and_a_byte) {
  for (const uint64_t slot : {uint64_t{0}, uint64_t{7}, (uint64_t{1} << 24) - 1}) {
    for (const uint64_t at : {uint64_t{0}, uint64_t{1}, (uint64_t{1} << 40) - 1}) {
      const RowPlace place = RowPlaceOf(OffsetOf({slot, at}));
      CHECK_EQ(place.slot, slot);
      CHECK_EQ(place.at, at);
    }
  }
}
