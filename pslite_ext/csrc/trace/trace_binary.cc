#include "trace/trace_binary.h"

#include <algorithm>

#include "trace/trace_text.h"

namespace mercury {
namespace {

constexpr uint32_t kHeaderField = 1, kBlockField = 2, kNoteField = 3;
constexpr uint32_t kListsField = 17, kSizeField = 18;
constexpr size_t kListsKept = 4096;

void AppendVarint(uint64_t value, std::string* out) {
  while (value > 0x7f) {
    out->push_back(static_cast<char>((value & 0x7f) | 0x80));
    value >>= 7;
  }
  out->push_back(static_cast<char>(value));
}

void AppendNumber(uint32_t field, uint64_t value, std::string* out) {
  AppendVarint(uint64_t{field} << 3, out);
  AppendVarint(value, out);
}

void AppendBytes(uint32_t field, const std::string& value, std::string* out) {
  AppendVarint(uint64_t{field} << 3 | 2, out);
  AppendVarint(value.size(), out);
  *out += value;
}

// A column; one of zeros is left out.
class Column {
 public:
  void Add(int64_t value) {
    any_ |= value != 0;
    AppendVarint(static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63), &packed_);
  }
  void AppendTo(uint32_t field, std::string* out) const {
    if (any_) AppendBytes(field, packed_, out);
  }

 private:
  std::string packed_;
  bool any_ = false;
};

}  // namespace

std::string TraceHeaderPiece(const TraceIdentity& identity) {
  std::string header;
  uint32_t field = 0;
  for (const std::string& text :
       {std::string("DLC1"), identity.host, identity.run, std::string(TraceModeName(identity)),
        std::string(TraceTrainingName(identity)), std::string(TraceRoleName(identity.role))}) {
    AppendBytes(++field, text, &header);
  }
  for (const uint64_t number : {uint64_t{identity.rank}, uint64_t{identity.workers},
                                uint64_t{identity.servers}, uint64_t{1}}) {
    AppendNumber(++field, number, &header);
  }
  std::string piece;
  AppendBytes(kHeaderField, header, &piece);
  return piece;
}

std::string TraceNotePiece(const std::string& note) {
  std::string line;
  AppendTraceNote(note, &line);
  std::string body, piece;
  AppendBytes(1, line.substr(2, line.size() - 3), &body);  // without "# " and the line feed
  AppendBytes(kNoteField, body, &piece);
  return piece;
}

std::string TraceBlocks::Encode(int64_t first_id, const std::vector<TraceRecord>& records) {
  Column columns[16];
  std::string lists;
  int64_t time = 0;
  for (const TraceRecord& r : records) {
    int64_t dep_num = r.dep_num;
    if (r.dep_kind == TraceDependency::kList) {
      if (lists_.size() >= kListsKept) lists_.clear();  // one that comes again is written again
      const auto [it, fresh] = lists_.emplace(r.list, lists_written_);
      if (fresh) {
        AppendBytes(kListsField, r.list, &lists);
        ++lists_written_;
      }
      dep_num = it->second;
    }
    const int64_t values[16] = {
        &r == records.data() ? first_id : 1,
        r.src,
        r.dst,
        r.length,
        r.num_pp,
        r.operation,
        r.key,
        r.op_num,
        r.operation == kTraceCommand || r.operation == kTraceReply ? 0 : int64_t{r.node},
        r.dep_type,
        r.d_time,
        r.time - time,
        static_cast<int64_t>(r.dep_kind),
        r.dep_key,
        dep_num,
        r.dep_node};
    time = r.time;
    for (size_t i = 0; i < 16; ++i) columns[i].Add(values[i]);
  }
  std::string block;
  for (uint32_t i = 0; i < 16; ++i) columns[i].AppendTo(i + 1, &block);
  AppendNumber(kSizeField, records.size(), &block);
  block += lists;
  std::string piece;
  AppendBytes(kBlockField, block, &piece);
  return piece;
}

}  // namespace mercury
