#include "messages/classic_server.h"

#include <algorithm>
#include <utility>

#include "base/node_name.h"
#include "messages/classic_wire.h"
#include "messages/shared_array.h"
#include "messages/stall_question.h"
#include "trace/trace_log.h"

namespace mercury {
ClassicServer::ClassicServer(int num_workers, uint64_t bytes_max, bool deterministic)
    : store_(num_workers, bytes_max, deterministic),
      agreement_(num_workers),
      app_(std::make_unique<ps::KVServer<char>>(kClassicApp)) {
  // ps-lite's server hides the handler of commands behind that of pushes and pulls.
  static_cast<ps::SimpleApp&>(*app_).set_request_handle(
      [this](const ps::SimpleData& command, ps::SimpleApp* app) {
        if (command.head == kClaimHead) return HandleClaim(command);
        if (command.head == kStallHead) return HandleQuestion(command);
        TraceLog* log = TraceLog::Started();
        if (command.head == kTraceSwitchHead && log != nullptr) log->Switch(command.body != "off");
        app->Response(command);
      });
  app_->set_request_handle([this](const ps::KVMeta& meta, const ps::KVPairs<char>& data,
                                  ps::KVServer<char>* /*app*/) { Handle(meta, data); });
}

ClassicServer::~ClassicServer() = default;

void ClassicServer::Handle(const ps::KVMeta& meta, const ps::KVPairs<char>& data) {
  if (RoleOf(meta.sender) != Role::kWorker) return;
  StoreRequest request;
  request.worker = RankOf(meta.sender);
  request.operation = static_cast<StoreOperation>(meta.cmd & ((1 << kHeadBits) - 1));
  request.key = meta.key;
  request.offset = meta.addr;
  request.bytes = static_cast<uint64_t>(std::max(meta.val_len, 0));
  request.dtype = static_cast<DType>(meta.option & 0xff);
  request.compression = static_cast<Compression>(meta.option >> 8 & 0xff);
  request.asynchronous = (meta.option & kAsynchronousBit) != 0;
  request.row_bytes = data.keys.size() > 1 ? static_cast<uint32_t>(data.keys[1]) : 0;
  auto owner = std::make_shared<ps::SArray<char>>(data.vals);
  request.payload = {owner, owner->data(), owner->size()};
  std::vector<StoreReply> replies;
  std::lock_guard<std::mutex> lock(mutex_);
  request.ticket = next_ticket_++;
  open_.emplace(request.ticket, meta);
  store_.Handle(std::move(request), &replies);
  Send(replies);
}

void ClassicServer::Departed(int worker) {
  std::vector<StoreReply> replies;
  std::lock_guard<std::mutex> lock(mutex_);
  store_.Departed(worker, &replies);
  Send(replies);
  std::vector<Agreement::Verdict> verdicts;
  agreement_.Departed(worker, &verdicts);
  Send(verdicts);
}

void ClassicServer::HandleClaim(const ps::SimpleData& command) {
  const int worker = RoleOf(command.sender) == Role::kWorker ? RankOf(command.sender) : -1;
  std::vector<Agreement::Verdict> verdicts;
  Claim claim;
  const Status status = Decode(command.body, &claim);
  const std::lock_guard<std::mutex> lock(mutex_);
  const uint64_t ticket = next_ticket_++;
  open_claims_.emplace(ticket, command);
  if (status.ok()) {
    agreement_.Hear(worker, claim, ticket, &verdicts);
  } else {
    verdicts.push_back({ticket, status});
  }
  Send(verdicts);
}

void ClassicServer::HandleQuestion(const ps::SimpleData& command) {
  StallQuestion question;
  std::vector<int> missing;
  if (Decode(command.body, &question).ok()) {
    const std::lock_guard<std::mutex> lock(mutex_);
    missing = question.of == StallQuestion::Of::kPiece
                  ? store_.Missing(question.key, question.offset)
                  : agreement_.Missing(question.key);
  }
  app_->ps::SimpleApp::Response(command, EncodeRanks(missing));
}

void ClassicServer::Send(const std::vector<Agreement::Verdict>& verdicts) {
  for (const Agreement::Verdict& verdict : verdicts) {
    const auto it = open_claims_.find(verdict.ticket);
    app_->ps::SimpleApp::Response(it->second, Encode(verdict.status, kMetaBodyBytesMax));
    open_claims_.erase(it);
  }
}

// Under the lock: the replies of two requests keep their order.
void ClassicServer::Send(const std::vector<StoreReply>& replies) {
  for (const StoreReply& reply : replies) {
    const auto it = open_.find(reply.ticket);
    ps::KVMeta meta = it->second;
    open_.erase(it);
    meta.option = reply.status.ok() ? 0 : 1;
    ps::KVPairs<char> data;
    data.keys = ps::SArray<ps::Key>(std::vector<ps::Key>{meta.key});
    if (reply.status.ok()) {
      data.vals = Shared(reply.value.data, reply.value.bytes, reply.value.owner, reply.value.sum);
    } else {
      const std::string text = Encode(reply.status);
      data.vals.CopyFrom(text.data(), text.size());
    }
    app_->Response(meta, data);
  }
}

}  // namespace mercury
