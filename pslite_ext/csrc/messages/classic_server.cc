#include "messages/classic_server.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/node_name.h"
#include "messages/classic_wire.h"
#include "messages/shared_array.h"

namespace mercury {

ClassicServer::ClassicServer(const ClassicOptions& options)
    : store_(options.workers, options.server_bytes_max, options.deterministic),
      clerk_(
          options.workers, [this](int worker, const JobLetter& letter) { Send(worker, letter); },
          Obey, [this](uint64_t key, uint64_t offset) { return store_.Missing(key, offset); }),
      app_(std::make_unique<ps::KVServer<char>>(kClassicApp)) {
  // ps-lite's server hides the handler of commands behind that of pushes and pulls.
  static_cast<ps::SimpleApp&>(*app_).set_request_handle(
      [this](const ps::SimpleData& command, ps::SimpleApp* app) {
        if (command.head == kLetterHead) return HandleLetter(command);
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
  const Codec* codec = FindCodec(static_cast<uint8_t>(meta.option >> 8 & 0xff));
  if (codec != nullptr && !codec->plain) request.codec = codec;
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
  clerk_.Departed(worker);
}

void ClassicServer::HandleLetter(const ps::SimpleData& command) {
  if (RoleOf(command.sender) != Role::kWorker) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  last_letter_[RankOf(command.sender)] = command;
  const Status status = clerk_.Hear(RankOf(command.sender), command.body);
  if (!status.ok()) Log(LogLevel::kWarning, NodeName(command.sender) + ": " + status.text());
}

// As an answer to that worker's last letter: which one it answers, its ticket says.
void ClassicServer::Send(int worker, const JobLetter& letter) {
  app_->ps::SimpleApp::Response(last_letter_.at(worker), Encode(letter));
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
