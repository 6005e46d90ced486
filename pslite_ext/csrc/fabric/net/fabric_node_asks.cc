// What a script asks of a node, and waits for.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <string>
#include <utility>

#include "fabric/json.h"
#include "fabric/net/fabric_node.h"

namespace mercury::fabric {
namespace {

// Returns the norm of the copy: in the same pass, and on several sums at once, since each addition
// waits for the one before.
double CopyWeighed(const float* from, double weight, Vector* to) {
  constexpr size_t kSums = 8;
  double squares[kSums] = {};
  float* out = to->data();
  const auto take = [&](size_t i, double* square) {
    out[i] = static_cast<float>(from[i] * weight);
    const double value{out[i]};
    *square += value * value;
  };
  size_t i = 0;
  for (; i + kSums <= to->size(); i += kSums) {
    for (size_t lane = 0; lane < kSums; ++lane) take(i + lane, &squares[lane]);
  }
  for (; i < to->size(); ++i) take(i, &squares[0]);
  return std::sqrt(std::accumulate(std::begin(squares), std::end(squares), 0.0));
}

std::string NamesJson(const std::vector<int>& nodes) {
  std::string text;
  for (const int node : nodes) text += (text.empty() ? "" : ", ") + QuotedJson(LogNameOf(node));
  return "[" + text + "]";
}

}  // namespace

bool FabricNode::WaitModel(int slice_ms, Status* status, float* out, int64_t* version) {
  if (out == nullptr) return answers_.Discard(slice_ms, status);
  std::shared_ptr<const Vector> got;
  if (!answers_.WaitModel(slice_ms, status, &got, version)) return false;
  if (got != nullptr) std::copy(got->begin(), got->end(), out);
  return true;
}

Status FabricNode::Push(const float* update, double norm, int64_t* number) {
  double weight = 1;
  Status status = answers_.Weight(&weight);
  if (!status.ok()) return status;
  std::shared_ptr<Vector> copy = spares_.Get(options_.elements);
  const double its_norm = CopyWeighed(update, weight, copy.get());
  if (!std::isfinite(its_norm)) {
    return Status::InvalidArgument(
        std::string("an update whose norm") +
        (weight == 1 ? "" : ", times the weight of this worker's updates,") + " is " +
        std::to_string(its_norm) + ": not all of it are numbers that can be added up");
  }
  return answers_.Push(
      norm < 0 ? its_norm : norm * std::abs(weight),
      [&](const Request& request) { Send(request, std::move(copy)); }, number);
}

Status FabricNode::Reduce(const float* part) {
  double weight = 1;
  Status status = answers_.Weight(&weight);
  if (!status.ok()) return status;
  std::shared_ptr<Vector> copy = spares_.Get(options_.elements);
  std::copy_n(part, options_.elements, copy->data());
  return answers_.Reduce([&](const Request& request) {
    Send(request, std::move(copy));
    lane_->Post([this, number = request.id.number] { worker_->Get({0, number}); });
  });
}

void FabricNode::Send(Request request, std::shared_ptr<const Vector> update) {
  lane_->Post([this, request, update = std::move(update), now_us = NowUs()]() mutable {
    request.pushed_s = endpoint_->SchedulerTime(now_us);
    worker_->Push(request, std::move(update));
  });
}

Status FabricNode::AskModel() {
  return answers_.AskModel(
      [this](int64_t least) { lane_->Post([this, least] { worker_->Get({least, 0}); }); });
}

Status FabricNode::CopyModel(float* out, size_t elements, int64_t* version) {
  if (options_.node >= 0 || is_scheduler()) {
    return Status::InvalidArgument("only the server and the replica have the model");
  }
  if (lane_->IsOnIt()) {
    return Status::InvalidArgument("a call of the server's script has the model already");
  }
  std::shared_ptr<const Vector> model;
  bool has_part = false;
  const auto ask = [&] {
    if (model_part_ == nullptr) return;
    has_part = model_part_->leads() || model_part_->follows();
    model = has_part ? model_part_->collected() : model_part_->Shown();
    *version = model_part_->version();
  };
  if (!lane_->Ask(ask)) ask();  // the lane has ended: nobody else has it
  if (model == nullptr && has_part) {
    return Status::InvalidArgument(
        "of several servers each has a part of the model; the first one has all of it when the job "
        "is over");
  }
  if (model == nullptr) return Status::Closed("the job has not begun");
  const bool fits = model->size() == elements;
  if (fits) std::copy(model->begin(), model->end(), out);
  lane_->Post([kept = std::move(model)] {});  // the lane must know that nobody reads it any more
  return fits ? Status::Ok() : Status::InvalidArgument("the model has another size");
}

Status FabricNode::Feed(const std::string& line) {
  Status status = Status::Closed("this process is no scheduler of a job that runs");
  lane_->Ask([&] {
    if (scheduler_ != nullptr) status = scheduler_->Feed(line, endpoint_->SchedulerTime(NowUs()));
  });
  return status;
}

std::string FabricNode::TakeRecords() {
  std::string records;
  const auto ask = [&] {
    if (scheduler_ != nullptr) records = scheduler_->TakeRecords();
  };
  if (!lane_->Ask(ask)) ask();
  return records;
}

std::string FabricNode::Stats() {
  std::string text;
  const auto ask = [&] {
    if (scheduler_ != nullptr) text = scheduler_->Figures() + ", \"lost\": " + NamesJson(lost_);
    if (model_part_ != nullptr) text = model_part_->Figures();
  };
  if (!lane_->Ask(ask)) ask();
  if (options_.node < 0) return "{" + text + "}";
  return "{" + answers_.Figures() + "}";
}

}  // namespace mercury::fabric
