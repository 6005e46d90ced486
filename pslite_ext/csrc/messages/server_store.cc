#include "messages/server_store.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/node_name.h"

namespace mercury {
namespace {

constexpr size_t kAdoptBytesMin = 8192;

std::string Shape(uint64_t bytes, DType dtype, uint32_t row_bytes) {
  return std::to_string(bytes) + " bytes of " + (row_bytes != 0 ? "row-sparse " : "") + Name(dtype);
}

// The rows of a piece: those that its bytes are of.
SparseSum RowsOf(const StoreRequest& request) {
  const uint64_t end = request.offset + request.bytes;
  return {request.dtype, request.row_bytes,
          static_cast<int64_t>(request.offset / request.row_bytes),
          static_cast<int64_t>(end / request.row_bytes) - 1};
}

}  // namespace

void ServerStore::Handle(StoreRequest request, std::vector<StoreReply>* replies) {
  const uint64_t ticket = request.ticket;
  const auto fail = [&](Status status) { replies->push_back({ticket, std::move(status), {}}); };
  const size_t element = ElementBytes(request.dtype);
  if (element == 0 || request.bytes % element != 0 || request.worker < 0 ||
      request.worker >= num_workers_ || request.operation < StoreOperation::kInit ||
      request.operation > StoreOperation::kPull) {
    return fail(Status::Corrupt("a request without a valid operation, type, size or worker"));
  }
  const auto failed = failed_keys_.find(request.key);
  if (failed != failed_keys_.end()) return fail(failed->second);
  const auto [it, fresh] = pieces_.try_emplace(PieceKey{request.key, request.offset});
  StoredPiece& piece = it->second;
  if (fresh) {
    piece.bytes = request.bytes;
    piece.dtype = request.dtype;
    piece.row_bytes = request.row_bytes;
    piece.asynchronous = request.asynchronous;
    piece.first_worker = request.worker;
    piece.pushed.resize(static_cast<size_t>(num_workers_));
  }
  Status status = Check(request, piece);
  if (!status.ok()) {
    FailKey(request.key, status, replies);
  } else {
    switch (request.operation) {
      case StoreOperation::kInit:
        status = Init(request, &piece, replies);
        break;
      case StoreOperation::kPush:
        status = piece.asynchronous ? PushAsync(&request, &piece, replies)
                                    : Push(&request, &piece, replies);
        break;
      case StoreOperation::kPull:
        if (piece.pushed[static_cast<size_t>(request.worker)]) {
          piece.round_pulls.push_back(ticket);
        } else if (piece.has_value) {
          replies->push_back({ticket, Status::Ok(), piece.value});
        } else {
          piece.waiting_pulls.push_back(ticket);
        }
        break;
    }
  }
  // Others have pushed it, or will: without this one's part, they would wait, or get another sum.
  const bool together = request.operation == StoreOperation::kInit ||
                        (request.operation == StoreOperation::kPush && !piece.asynchronous);
  if (status.code() == Code::kExhausted && together) FailKey(request.key, status, replies);
  if (!status.ok()) fail(std::move(status));
}

// Workers disagree about a tensor, or there is no memory for it: no round of it can complete any
// more, and who waits must know.
void ServerStore::FailKey(uint64_t key, const Status& status, std::vector<StoreReply>* replies) {
  failed_keys_.emplace(key, status);
  for (auto it = pieces_.lower_bound({key, 0}); it != pieces_.end() && it->first.first == key;
       ++it) {
    FailRound(&it->second, status, replies);
    FailAll(&it->second.waiting_pulls, status, replies);
  }
}

void ServerStore::FailAll(std::vector<uint64_t>* tickets, const Status& status,
                          std::vector<StoreReply>* replies) {
  for (const uint64_t ticket : *tickets) replies->push_back({ticket, status, {}});
  tickets->clear();
}

void ServerStore::FailRound(StoredPiece* piece, const Status& status,
                            std::vector<StoreReply>* replies) {
  FailAll(&piece->waiting_pushes, status, replies);
  FailAll(&piece->round_pulls, status, replies);
  piece->pushed.assign(piece->pushed.size(), false);
  for (StoreRequest& kept : piece->kept) Release(&kept.payload);
  piece->kept.clear();
  Release(&piece->sum);
  DropRows(piece);
}

Status ServerStore::Check(const StoreRequest& request, const StoredPiece& piece) const {
  if (request.bytes != piece.bytes || request.dtype != piece.dtype ||
      request.row_bytes != piece.row_bytes || request.asynchronous != piece.asynchronous) {
    return Status::InvalidArgument(NodeName(Role::kWorker, request.worker) + " has " +
                                   Shape(request.bytes, request.dtype, request.row_bytes) + ", " +
                                   NodeName(Role::kWorker, piece.first_worker) + " has " +
                                   Shape(piece.bytes, piece.dtype, piece.row_bytes) +
                                   ": all workers must use the same shape and type");
  }
  if (request.operation == StoreOperation::kPull || request.row_bytes != 0) return Status::Ok();
  uint64_t expected = request.bytes;
  if (request.codec != nullptr) {
    if (request.dtype != request.codec->dtype || request.operation != StoreOperation::kPush) {
      return Status::Corrupt("only pushes of float32 can be compressed");
    }
    expected = sizeof(float) + request.codec->bytes(request.bytes / sizeof(float));
  }
  if (request.payload.bytes != expected) {
    return Status::Corrupt(NodeName(Role::kWorker, request.worker) + " sent " +
                           std::to_string(request.payload.bytes) + " bytes instead of " +
                           std::to_string(expected));
  }
  return Status::Ok();
}

Status ServerStore::Init(const StoreRequest& request, StoredPiece* piece,
                         std::vector<StoreReply>* replies) {
  Buffer value;
  if (request.row_bytes != 0) {
    size_t count;
    Status status = RowsOf(request).Check(request.payload.data, request.payload.bytes, &count);
    if (status.ok()) status = Hold(request.payload, &value);
    if (!status.ok()) return status;
  } else {
    Status status = Reserve(request.bytes, &value);
    if (!status.ok()) return status;
    if (request.bytes != 0) std::memcpy(value.data, request.payload.data, request.bytes);
  }
  replies->push_back({request.ticket, Status::Ok(), {}});
  Publish(piece, std::move(value), replies);
  return Status::Ok();
}

Status ServerStore::Push(StoreRequest* request, StoredPiece* piece,
                         std::vector<StoreReply>* replies) {
  const auto worker = static_cast<size_t>(request->worker);
  if (piece->pushed[worker]) {
    return Status::Corrupt(NodeName(Role::kWorker, request->worker) + " sent the piece at " +
                           std::to_string(request->offset) + " of key " +
                           std::to_string(request->key) + " twice in one round");
  }
  Status status = deterministic_ ? Keep(request, piece)
                                 : AddPush(request, piece, piece->waiting_pushes.empty());
  if (!status.ok()) return status;
  piece->pushed[worker] = true;
  piece->waiting_pushes.push_back(request->ticket);
  MERCURY_CHECK(std::count(piece->pushed.begin(), piece->pushed.end(), true) ==
                static_cast<std::ptrdiff_t>(piece->waiting_pushes.size()));
  if (piece->waiting_pushes.size() < static_cast<size_t>(num_workers_)) {
    status = WaitsForDeparted(*piece);
    if (!status.ok()) FailRound(piece, status, replies);
    return Status::Ok();  // answered already, or later
  }
  if (deterministic_) status = AddKept(piece);
  if (status.ok() && piece->rows) {
    const std::vector<char> encoded = piece->rows->Encode();
    DropRows(piece);
    status = Reserve(encoded.size(), &piece->sum);
    if (status.ok()) std::memcpy(piece->sum.data, encoded.data(), encoded.size());
  } else if (status.ok()) {
    status = Round(piece);
  }
  if (!status.ok()) {
    FailRound(piece, status, replies);
    return Status::Ok();  // answered with the others
  }
  Buffer value = std::exchange(piece->sum, {});
  AnswerAll(&piece->waiting_pushes, {}, replies);
  piece->pushed.assign(piece->pushed.size(), false);
  Publish(piece, std::move(value), replies);
  // Not by Publish: a first value in the midst of a round is no sum.
  AnswerAll(&piece->round_pulls, piece->value, replies);
  return Status::Ok();
}

Status ServerStore::PushAsync(StoreRequest* request, StoredPiece* piece,
                              std::vector<StoreReply>* replies) {
  if (request->row_bytes != 0) {
    return Status::InvalidArgument("row-sparse pushes cannot be asynchronous");
  }
  if (piece->has_value && piece->value.owner.use_count() > 1) {
    Buffer copy;  // the value is on its way to a worker: leave it as it is
    Status status = Reserve(piece->value.bytes, &copy);
    if (!status.ok()) return status;
    std::memcpy(copy.data, piece->value.data, piece->value.bytes);
    Release(&piece->value);
    piece->value = std::move(copy);
  }
  MERCURY_CHECK(piece->value.owner.use_count() <= 1);
  Status status = Accumulate(request, &piece->value, !piece->has_value);
  if (!status.ok()) return status;
  replies->push_back({request->ticket, Status::Ok(), {}});
  Publish(piece, std::exchange(piece->value, {}), replies);
  return Status::Ok();
}

// Until all have pushed. What is wrong with it, its own worker hears now.
Status ServerStore::Keep(StoreRequest* request, StoredPiece* piece) {
  if (request->row_bytes != 0) {
    size_t count;
    Status status = RowsOf(*request).Check(request->payload.data, request->payload.bytes, &count);
    if (!status.ok()) return status;
  }
  Buffer held;
  Status status = Hold(std::move(request->payload), &held);
  if (!status.ok()) return status;
  piece->kept.resize(static_cast<size_t>(num_workers_));
  StoreRequest& kept = piece->kept[static_cast<size_t>(request->worker)];
  kept = *request;
  kept.payload = std::move(held);
  return Status::Ok();
}

// In the order of ranks.
Status ServerStore::AddKept(StoredPiece* piece) {
  Status status;
  for (size_t worker = 0; worker < piece->kept.size() && status.ok(); ++worker) {
    StoreRequest& push = piece->kept[worker];
    bytes_ -= push.payload.bytes;  // what becomes the sum is counted again
    status = AddPush(&push, piece, worker == 0);
    push.payload = {};
  }
  if (status.ok()) piece->kept.clear();
  return status;
}

Status ServerStore::AddPush(StoreRequest* request, StoredPiece* piece, bool first) {
  const Codec& plain = PlainCodec(request->dtype);
  const bool rounds = request->codec != nullptr && request->codec->back;
  piece->back = rounds ? request->codec : nullptr;
  if (request->row_bytes == 0 && !plain.is_sum()) {
    const uint64_t elements = request->bytes / ElementBytes(request->dtype);
    Status status;
    if (first) status = Reserve(SumCodec(plain).bytes(elements), &piece->sum);
    if (!status.ok()) return status;
    plain.add(0, request->payload.data, elements, piece->sum.data,
              first ? Into::kRoom : Into::kSum);
    return status;
  }
  if (request->row_bytes == 0) return Accumulate(request, &piece->sum, first);
  return AddRows(*request, piece);
}

Status ServerStore::AddRows(const StoreRequest& request, StoredPiece* piece) {
  if (!piece->rows) piece->rows = std::make_unique<SparseSum>(RowsOf(request));
  const Buffer& set = request.payload;
  size_t growth = 0;
  Status status = piece->rows->Growth(set.data, set.bytes, &growth);
  if (status.ok() && IsFull(growth)) status = Full();
  if (status.ok()) status = piece->rows->Add(set.data, set.bytes);
  if (status.ok()) bytes_ += growth;
  return status;
}

void ServerStore::DropRows(StoredPiece* piece) {
  if (!piece->rows) return;
  MERCURY_CHECK(piece->rows->bytes() <= bytes_);
  bytes_ -= piece->rows->bytes();
  piece->rows.reset();
}

// As packets have it: sums of 16-bit floats are made in float32, the value is not; and what comes
// coded goes back rounded, though it takes the room of float32 here.
Status ServerStore::Round(StoredPiece* piece) {
  const Codec& plain = PlainCodec(piece->dtype);
  const Codec* back = std::exchange(piece->back, nullptr);
  if (back == nullptr && plain.is_sum()) return Status::Ok();
  const Codec& codec = back != nullptr ? *back : plain;
  const uint64_t elements = piece->bytes / ElementBytes(piece->dtype);
  Buffer rounded;
  Status status = Reserve(codec.bytes(elements), &rounded);
  if (!status.ok()) return status;
  codec.encode(0, piece->sum.data, nullptr, elements, rounded.data);
  if (back != nullptr) codec.add(0, rounded.data, elements, piece->sum.data, Into::kRoom);
  if (back == nullptr) std::swap(rounded, piece->sum);
  Release(&rounded);
  return status;
}

// The first copy becomes the sum, without being copied; later ones are added to it.
Status ServerStore::Accumulate(StoreRequest* request, Buffer* sum, bool first) {
  if (request->codec != nullptr) {
    if (first) {
      Status status = Reserve(request->bytes, sum);
      if (!status.ok()) return status;
    }
    float threshold;
    std::memcpy(&threshold, request->payload.data, sizeof(threshold));
    request->codec->add(threshold, request->payload.data + sizeof(threshold),
                        request->bytes / sizeof(float), sum->data,
                        first ? Into::kRoom : Into::kSum);
    return Status::Ok();
  }
  if (!first) {
    Add(request->dtype, sum->data, request->payload.data, request->bytes);
    return Status::Ok();
  }
  return Hold(std::move(request->payload), sum);
}

Status ServerStore::Hold(Buffer payload, Buffer* held) {
  if (payload.bytes > kAdoptBytesMin) {
    if (IsFull(payload.bytes)) return Full();
    *held = std::move(payload);
    bytes_ += held->bytes;
    return Status::Ok();
  }
  // A small message shares its receive buffer with others; do not keep all of them in memory.
  Status status = Reserve(payload.bytes, held);
  if (status.ok() && payload.bytes != 0) std::memcpy(held->data, payload.data, payload.bytes);
  return status;
}

bool ServerStore::IsFull(size_t bytes) const {
  return bytes_max_ != 0 && bytes_ + bytes > bytes_max_;
}

Status ServerStore::Full() const {
  return Status::Exhausted("the server's memory is full: MERCURY_SERVER_BYTES_MAX is " +
                           std::to_string(bytes_max_));
}

Status ServerStore::Reserve(size_t bytes, Buffer* buffer) {
  if (IsFull(bytes)) return Full();
  *buffer = Buffer::Allocate(bytes);
  if (buffer->data == nullptr) {
    return Status::Exhausted("the server has no memory for " + std::to_string(bytes) + " bytes");
  }
  bytes_ += bytes;
  MERCURY_CHECK(bytes_max_ == 0 || bytes_ <= bytes_max_);
  return Status::Ok();
}

void ServerStore::Release(Buffer* buffer) {
  MERCURY_CHECK(buffer->bytes <= bytes_);
  bytes_ -= buffer->bytes;
  *buffer = {};
}

void ServerStore::Publish(StoredPiece* piece, Buffer value, std::vector<StoreReply>* replies) {
  Release(&piece->value);
  piece->value = std::move(value);
  piece->value.sum = std::make_shared<SumOnce>();  // for all workers' answers
  piece->has_value = true;
  AnswerAll(&piece->waiting_pulls, piece->value, replies);
}

void ServerStore::AnswerAll(std::vector<uint64_t>* tickets, const Buffer& value,
                            std::vector<StoreReply>* replies) {
  for (const uint64_t ticket : *tickets) replies->push_back({ticket, Status::Ok(), value});
  tickets->clear();
}

Status ServerStore::WaitsForDeparted(const StoredPiece& piece) const {
  if (piece.waiting_pushes.empty()) return Status::Ok();
  for (int worker : departed_) {
    if (piece.pushed[static_cast<size_t>(worker)]) continue;
    return Status::PeerLost(NodeName(Role::kWorker, worker) +
                            " has finished and pushes no more, but others wait for it: have all "
                            "workers the same number of batches?")
        .By({Blame::kNamed, NodeId(Role::kWorker, worker)});
  }
  return Status::Ok();
}

std::vector<int> ServerStore::Missing(uint64_t key, uint64_t offset) const {
  const auto it = pieces_.find({key, offset});
  if (it == pieces_.end()) return {};
  const StoredPiece& piece = it->second;
  if (piece.waiting_pushes.empty()) {
    return piece.waiting_pulls.empty() ? std::vector<int>() : std::vector<int>{0};
  }
  std::vector<int> missing;
  for (int w = 0; w < num_workers_; ++w) {
    if (!piece.pushed[static_cast<size_t>(w)]) missing.push_back(w);
  }
  return missing;
}

void ServerStore::Departed(int worker, std::vector<StoreReply>* replies) {
  if (worker < 0 || worker >= num_workers_) return;
  departed_.insert(worker);
  for (auto& [key, piece] : pieces_) {
    const Status status = WaitsForDeparted(piece);
    if (!status.ok()) FailRound(&piece, status, replies);
  }
}

}  // namespace mercury
