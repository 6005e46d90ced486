// An aggregator of one host's workers: its sums go on as the host's copies, and what it answers is
// the job's sum of them, when that comes back.
//
//   slot:  empty --first bytes--> summing --all others' last byte, the leader's own is there-->
//          ready --taken by the leader's streams--> sent on --the job's sum--> empty
//
// The leader's own copy is not copied: it is added from its memory when the slot is taken.
#include <algorithm>
#include <utility>

#include "packets/summed_tensor.h"

namespace mercury {
namespace {

Declaration Declared(const TensorTraits& traits) {
  Declaration declared;
  declared.key = traits.key;
  declared.elements = traits.elements();
  declared.dtype = traits.dtype;
  declared.index = traits.index;
  declared.codec = PlainCodec(traits.dtype).number;
  declared.name = traits.name;
  return declared;
}

}  // namespace

void AggregatorOptions::OfHost(const Hosts& of, int leader) {
  ranks = of.Workers(leader);
  num_workers = static_cast<int>(ranks.size());
  for (int s = 0; s < shares.servers(); ++s) {
    if (!of.Beside(leader, s)) servers.push_back(s);
  }
}

Aggregator::SummedTensor* Aggregator::TensorOf(const Operation& op) const {
  const auto found = tensors_.find({op.tensor->traits.key, false});
  return found == tensors_.end() ? nullptr : found->second.get();
}

bool Aggregator::AllOthersAreIn(const Slot& slot) const {
  return slot.complete == options_.num_workers - 1;
}

// Whether all of it is there, the leader's own, too.
bool Aggregator::IsReady(const SummedTensor& tensor, uint64_t mine) const {
  const uint64_t end = tensor.share.Begin(mine) + tensor.share.Elements(mine);
  return AllOthersAreIn(tensor.slots[mine]) && end <= tensor.own->ready;
}

// Further slots may be ready, in their order on the server.
uint64_t Aggregator::CountReady(SummedTensor* tensor, int server) {
  const Share& share = tensor->on_server[static_cast<size_t>(server)];
  uint64_t& ready = tensor->ready[static_cast<size_t>(server)];
  uint64_t mine;
  while (ready < share.count && tensor->share.FindSlot(share.Slot(ready), &mine) &&
         IsReady(*tensor, mine)) {
    ++ready;
  }
  return ready;
}

Status Aggregator::Begin(const std::shared_ptr<Operation>& op, uint8_t round,
                         std::vector<uint64_t>* ready) {
  const LaneTurn turn(&mutex_, &torn_);
  lane_ = -1;
  const Declaration declared = Declared(op->tensor->traits);
  SummedTensor* tensor = Known(0, declared);
  if (!tensor->failed.ok()) return tensor->failed;
  if (!Alike(declared, tensor->declared)) {
    FailTensor(tensor, Differ(*tensor, 0, declared));
  }
  if (tensor->share.count == 0) return tensor->failed;  // none of it leaves the host
  tensor->own = op;
  tensor->own_round = round;
  tensor->to_give = tensor->share.count;
  std::fill(tensor->ready.begin(), tensor->ready.end(), 0);
  const bool some_left =
      std::any_of(peers_.begin(), peers_.end(), [](const auto& peer) { return peer->departed; });
  for (uint64_t i = 0; some_left && tensor->failed.ok() && i < tensor->slots.size(); ++i) {
    if (!AllOthersAreIn(tensor->slots[i])) FailIfDeparted(tensor, i);
  }
  if (!tensor->failed.ok()) return tensor->failed;
  for (size_t s = 0; s < ready->size(); ++s) {
    (*ready)[s] = CountReady(tensor, static_cast<int>(s));
  }
  return Status::Ok();
}

std::vector<uint64_t> Aggregator::More(const Operation& op) {
  const LaneTurn turn(&mutex_, &torn_);
  SummedTensor* tensor = TensorOf(op);
  std::vector<uint64_t> ready;
  if (tensor == nullptr || tensor->own.get() != &op) return ready;
  for (size_t s = 0; s < tensor->on_server.size(); ++s) {
    ready.push_back(CountReady(tensor, static_cast<int>(s)));
  }
  return ready;
}

// The others' copies are in: if the leader's is there, the slot can go on.
void Aggregator::OthersComplete(SummedTensor* tensor, uint64_t mine) {
  if (tensor->own == nullptr) return;
  const int server = tensor->share.of.Server(tensor->share.Slot(mine));
  const uint64_t before = tensor->ready[static_cast<size_t>(server)];
  const uint64_t now = CountReady(tensor, server);
  if (now == before) return;
  news_.push_back({tensor->declared.key, server, now, tensor->own_round, Status::Ok()});
}

// With nothing locked: those who hear it have a lock of their own.
void Aggregator::TellAbove(int lane) {
  if (options_.ranks.empty()) return;
  std::vector<HostNews> news;
  {
    const LaneTurn turn(&mutex_, &torn_);
    news.swap(news_);
  }
  for (const HostNews& each : news) {
    if (!each.failed.ok()) {
      options_.above.failed(each.key, each.failed);
    } else {
      options_.above.ready(each.key, each.server, each.slots, each.round, lane);
    }
  }
}

Status Aggregator::Take(const Operation& op, uint64_t slot, Block* copy, bool* wanted) {
  const LaneTurn turn(&mutex_, &torn_);
  SummedTensor* tensor = TensorOf(op);
  if (!tensor->failed.ok()) return tensor->failed;
  uint64_t mine = 0;
  if (!tensor->share.FindSlot(slot, &mine) || !AllOthersAreIn(tensor->slots[mine])) {
    return Status::Internal("a host's copy was taken before it was there");
  }
  Slot& of = tensor->slots[mine];
  const uint64_t count = tensor->share.Elements(mine);
  const char* own = op.src + tensor->plain().bytes(tensor->share.Begin(mine));
  if (!of.sum.FinishWith(own, tensor->plain(), count, peers_.size(), &pool_, copy)) {
    FailTensor(tensor, Status::Exhausted(NoMemory("its host's sum")));
    return tensor->failed;
  }
  *wanted = op.writes();
  for (size_t w = 1; w < peers_.size(); ++w) {
    if (tensor->progress.Quiet(mine, w) == 0) *wanted = true;
  }
  return Status::Ok();
}

Status Aggregator::Room(const Operation& op, uint64_t slot, Block* room) {
  const LaneTurn turn(&mutex_, &torn_);
  SummedTensor* tensor = TensorOf(op);
  uint64_t mine = 0;
  if (!tensor->failed.ok()) return tensor->failed;
  if (!tensor->share.FindSlot(slot, &mine)) return Status::Internal("a sum of no slot of its own");
  const uint64_t bytes = tensor->plain().bytes(tensor->share.Elements(mine));
  *room = pool_.Get(std::max<uint64_t>(bytes, 1));
  if (*room == nullptr) FailTensor(tensor, Status::Exhausted(NoMemory("its sum")));
  return tensor->failed;
}

void Aggregator::Give(const Operation& op, uint64_t slot, const Block& sum, int workers, int lane) {
  const LaneTurn turn(&mutex_, &torn_);
  lane_ = lane;
  SummedTensor* tensor = TensorOf(op);
  uint64_t mine = 0;
  if (!tensor->failed.ok() || !tensor->share.FindSlot(slot, &mine)) return;
  Slot& of = tensor->slots[mine];
  of.workers = workers;
  of.begun = of.complete = 0;
  ++of.round;
  tensor->progress.Summed(mine);
  Enqueue(tensor, mine, sum, &tensor->plain(), 0, of.round, workers);
  if (--tensor->to_give == 0) tensor->own.reset();
}

void Aggregator::Fail(const TensorTraits& traits, const Status& status, int lane) {
  const LaneTurn turn(&mutex_, &torn_);
  lane_ = lane;
  SummedTensor* tensor = Known(0, Declared(traits));
  if (!tensor->failed.ok()) return;
  tensor->own.reset();  // it knows
  FailTensor(tensor, status);
}

// Allocates nothing: memory may be the reason.
void Aggregator::LetGo() {
  std::shared_ptr<Operation> own;  // may be the last to hold it, and then nothing is locked
  do {
    own.reset();
    const std::lock_guard<std::mutex> lock(mutex_);
    for (auto& [key, tensor] : tensors_) {
      if (tensor == nullptr || tensor->own == nullptr) continue;
      own = std::move(tensor->own);
      break;
    }
  } while (own != nullptr);
}

std::string Aggregator::Missing(uint64_t key) {
  const LaneTurn turn(&mutex_, &torn_);
  std::string missing(static_cast<size_t>(options_.ranks.back()) + 1, '\0');
  const auto found = tensors_.find({key, false});
  if (found == tensors_.end()) return missing;
  const SummedTensor& tensor = *found->second;
  for (uint64_t i = 0; tensor.failed.ok() && i < tensor.slots.size(); ++i) {
    if (AllOthersAreIn(tensor.slots[i])) continue;
    for (size_t w = 1; w < peers_.size(); ++w) {
      if (!IsIn(tensor, i, static_cast<int>(w))) {
        missing[static_cast<size_t>(options_.ranks[w])] = 1;
      }
    }
  }
  return missing;
}

}  // namespace mercury
