#include "trace/trace_binary.h"

#include <map>

#include "harness.h"

using namespace mercury;
namespace {

uint64_t Varint(const std::string& bytes, size_t* at) {
  uint64_t value = 0;
  for (unsigned shift = 0;; shift += 7) {
    const auto byte = static_cast<uint8_t>(bytes.at((*at)++));
    value |= uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return value;
  }
}

struct Message {
  std::map<uint32_t, std::vector<std::string>> bytes;
  std::map<uint32_t, uint64_t> numbers;
};

Message Parsed(const std::string& text) {
  Message message;
  for (size_t at = 0; at < text.size();) {
    const uint64_t tag = Varint(text, &at);
    const auto field = static_cast<uint32_t>(tag >> 3);
    if ((tag & 7) == 0) {
      message.numbers[field] = Varint(text, &at);
    } else {
      REQUIRE_EQ(tag & 7, 2U);
      const uint64_t size = Varint(text, &at);
      message.bytes[field].push_back(text.substr(at, size));
      at += size;
    }
  }
  return message;
}

std::vector<int64_t> Column(const Message& block, uint32_t field) {
  std::vector<int64_t> values;
  const auto found = block.bytes.find(field);
  if (found == block.bytes.end()) return values;
  const std::string& packed = found->second.at(0);
  for (size_t at = 0; at < packed.size();) {
    const uint64_t coded = Varint(packed, &at);
    values.push_back(static_cast<int64_t>(coded >> 1) ^ -static_cast<int64_t>(coded & 1));
  }
  return values;
}

TraceRecord Listed(int32_t op_num, const std::string& list) {
  TraceRecord record;
  record.op_num = op_num;
  record.time = 1000 + op_num;
  record.dep_kind = TraceDependency::kList;
  record.list = list;
  return record;
}

TEST(the_header_begins_with_its_mark) {
  TraceIdentity identity;
  identity.role = TraceRole::kServer;
  identity.rank = 7;
  identity.workers = 300;
  identity.host = "node-a";
  identity.run = "abc";
  identity.mercury = true;
  const std::string piece = TraceHeaderPiece(identity);
  CHECK_EQ(piece.substr(0, 1), "\x0a");
  CHECK_EQ(piece.substr(2, 6),
           "\x0a\x04"
           "DLC1");
  const Message header = Parsed(Parsed(piece).bytes.at(1).at(0));
  CHECK_EQ(header.bytes.at(2).at(0), "node-a");
  CHECK_EQ(header.bytes.at(3).at(0), "abc");
  CHECK_EQ(header.bytes.at(4).at(0), "mercury");
  CHECK_EQ(header.bytes.at(5).at(0), "synchronous");
  CHECK_EQ(header.bytes.at(6).at(0), "server");
  CHECK_EQ(header.numbers.at(7), 7);
  CHECK_EQ(header.numbers.at(8), 300);
}

TEST(a_block_holds_columns) {
  TraceBlocks blocks;
  TraceRecord negative = Listed(-2, "(1-w0.)");
  negative.d_time = -5;
  const Message block =
      Parsed(Parsed(blocks.Encode(40, {negative, Listed(6, "(5-w0.)"), Listed(10, "(1-w0.)")}))
                 .bytes.at(2)
                 .at(0));
  CHECK_EQ(block.numbers.at(18), 3);
  CHECK_TRUE(Column(block, 1) == (std::vector<int64_t>{40, 1, 1}));
  CHECK_TRUE(Column(block, 8) == (std::vector<int64_t>{-2, 6, 10}));
  CHECK_TRUE(Column(block, 11) == (std::vector<int64_t>{-5, 0, 0}));
  CHECK_TRUE(Column(block, 12) == (std::vector<int64_t>{998, 8, 4}));
  CHECK_TRUE(Column(block, 15) == (std::vector<int64_t>{0, 1, 0}));
  CHECK_EQ(block.bytes.count(5), 0);  // a column of zeros
  CHECK_TRUE(block.bytes.at(17) == (std::vector<std::string>{"(1-w0.)", "(5-w0.)"}));
}

TEST(lists_are_numbered_through_the_file) {
  TraceBlocks blocks;
  blocks.Encode(0, {Listed(2, "(1-w0.)")});
  const auto next = [&](const std::string& list) {
    const Message block = Parsed(Parsed(blocks.Encode(1, {Listed(6, list)})).bytes.at(2).at(0));
    const auto column = Column(block, 15);
    return std::make_pair(column.empty() ? 0 : column[0], block.bytes.count(17));
  };
  CHECK_TRUE(next("(1-w0.)") == std::make_pair(int64_t{0}, size_t{0}));
  CHECK_TRUE(next("(5-w0.)") == std::make_pair(int64_t{1}, size_t{1}));
  // Only so many are remembered; what comes again later gets a new number.
  for (int i = 0; i < 5000; ++i) blocks.Encode(2, {Listed(i, std::to_string(i))});
  CHECK_TRUE(next("(1-w0.)") == std::make_pair(int64_t{5002}, size_t{1}));
}

TEST(notes_are_pieces_of_their_own) {
  const Message note = Parsed(Parsed(TraceNotePiece("lost 12")).bytes.at(3).at(0));
  CHECK_EQ(note.bytes.at(1).at(0), "lost 12");
}

}  // namespace
