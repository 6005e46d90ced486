// What a training job asks of a simulated network, and what it must get: tensors with known values,
// summed round by round, every sum compared with that of a plain loop, bit for bit.
//
// Thread-safety: none. Ownership: an operation's arrays are exactly as large as the tensor and are
// freed when the last lane lets go of them, so that a sanitizer sees who uses them too late.
#pragma once

#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "packets/packet_network.h"
#include "packets/placement.h"
#include "sums/codec.h"

namespace mercury::testing {

// Values whose sums are exact in any order (unless `rough`): floats are small integers.
inline std::string Values(DType dtype, uint64_t elements, uint64_t seed, bool rough) {
  std::string bytes(elements * ElementBytes(dtype), '\0');
  uint64_t state = seed;
  for (uint64_t i = 0; i < elements; ++i) {
    state = state * 6364136223846793005 + 1442695040888963407;
    uint64_t bits = state >> 33 ^ state << 29;
    const int small = static_cast<int>(bits % 17) - 8;
    const float scaled = static_cast<float>(small * 1.37) * (1 + static_cast<float>(bits % 1000));
    const float value = rough ? scaled : static_cast<float>(small);
    const double wide = rough ? static_cast<double>(scaled) * 1.1 : small;
    uint32_t narrow;
    std::memcpy(&narrow, &value, sizeof(narrow));
    if (dtype == DType::kFloat32) bits = narrow;
    if (dtype == DType::kBfloat16) bits = narrow >> 16;
    if (dtype == DType::kFloat64) std::memcpy(&bits, &wide, sizeof(bits));
    if (dtype == DType::kFloat16 && rough) bits &= 0xbfff;  // below 2
    if (dtype == DType::kFloat16 && !rough) {
      const int size = std::abs(small);
      const int exponent = size >= 8 ? 3 : size >= 4 ? 2 : size >= 2 ? 1 : 0;
      bits = size == 0 ? 0
                       : static_cast<uint64_t>((small < 0 ? 0x8000 : 0) | (exponent + 15) << 10 |
                                               ((size << (10 - exponent)) & 0x3ff));
    }
    std::memcpy(&bytes[i * ElementBytes(dtype)], &bits, ElementBytes(dtype));
  }
  return bytes;
}

class Job {
 public:
  using Then = std::function<void(const Status&)>;

  // `rough`: sums depend on the order, and are expected in the order of ranks.
  Job(Network* network, Random* random, bool rough = false)
      : network_(network), random_(random), rough_(rough), seed_((*random)()) {}

  // `codec`: of what is sent; null: the plain one.
  size_t Add(uint64_t key, DType dtype, uint64_t elements, const Codec* codec = nullptr) {
    TensorTraits d;
    d.key = key;
    d.dtype = dtype;
    d.shape = {elements};
    d.name = "tensor" + std::to_string(key);
    tensors_.emplace_back();
    tensors_.back().codec = codec;
    for (int w = 0; w < network_->options().workers; ++w) {
      tensors_.back().at.push_back({std::make_shared<mercury::Tensor>(d), 0, nullptr});
    }
    return tensors_.size() - 1;
  }
  // That worker, not the first, thinks that the tensor has so many elements, which must be fewer.
  void Resize(int worker, size_t tensor, uint64_t elements) {
    TensorTraits d = traits(tensor);
    d.shape = {elements};
    tensors_[tensor].at[static_cast<size_t>(worker)].shared = std::make_shared<mercury::Tensor>(d);
  }
  const TensorTraits& traits(size_t tensor) const { return tensors_[tensor].at[0].shared->traits; }

  // The worker's next round of a tensor. The sum is compared before `then` is called.
  // `quiet`: it does not want it.
  void Submit(int worker, size_t tensor, int32_t priority, Then then = nullptr,
              bool quiet = false) {
    PerWorker& mine = tensors_[tensor].at[static_cast<size_t>(worker)];
    const int round = ++mine.rounds;
    auto arrays = std::make_shared<Arrays>();
    const std::string values = ValuesOf(worker, tensor, round);
    arrays->bytes = values.size();
    const bool in_place = random_->OneIn(2);
    arrays->src = std::make_unique<char[]>(values.size());
    if (!values.empty()) std::memcpy(arrays->src.get(), values.data(), values.size());
    if (!in_place) {
      arrays->dst = std::make_unique<char[]>(values.size());
      std::memset(arrays->dst.get(), 0xab, values.size());
    }
    auto op = Operation_(worker, tensor, priority, arrays, std::move(then), quiet ? -1 : round);
    op->src = arrays->src.get();
    if (quiet) op->kind = Operation::Kind::kPush;
    if (random_->OneIn(3)) InChunks(worker, op);
    network_->Submit(worker, op);
  }
  // The last sum once more.
  void Fetch(int worker, size_t tensor, int32_t priority, Then then = nullptr) {
    PerWorker& mine = tensors_[tensor].at[static_cast<size_t>(worker)];
    auto arrays = std::make_shared<Arrays>();
    arrays->bytes = traits(tensor).bytes();
    arrays->dst = std::make_unique<char[]>(arrays->bytes);
    auto op = Operation_(worker, tensor, priority, arrays, std::move(then), mine.rounds);
    op->kind = Operation::Kind::kPull;
    network_->Submit(worker, op);
  }

  // All operations are done, well or not.
  bool over() const { return under_way_ == 0; }
  size_t under_way() const { return under_way_; }
  size_t wrong() const { return wrong_; }
  // Sums must not change after their operation is done.
  void CheckHeld() {
    for (Tensor& tensor : tensors_) {
      for (PerWorker& mine : tensor.at) CheckHeld(&mine);
    }
  }
  // What the servers keep when all rounds are done: the last sums.
  uint64_t BytesKept() const {
    PacketPool pool(0);
    std::vector<Block> blocks;
    for (size_t t = 0; t < tensors_.size(); ++t) {
      const Placement p = PlacementOf(t);
      for (uint64_t slot = 0; slot < p.slots; ++slot) {
        blocks.push_back(pool.Get(std::max<uint64_t>(Sent(t).bytes(p.Elements(slot)), 1)));
      }
    }
    return pool.bytes_handed_out();
  }
  Placement PlacementOf(size_t tensor) const {
    const NetworkOptions& o = network_->options();
    const TensorTraits& d = traits(tensor);
    return Placement(d.key, d.elements(), ElementBytes(d.dtype), o.policy.packet_bytes, o.shares);
  }
  std::string ValuesOf(int worker, size_t tensor, int round) const {
    const TensorTraits& d = traits(tensor);
    const auto seed = seed_ + static_cast<uint64_t>(worker) * 1000003 + tensor * 10007 +
                      static_cast<uint64_t>(round);
    return Values(d.dtype, d.elements(), seed * 0x9e3779b97f4a7c15, rough_);
  }
  // In the order of ranks: of each host's workers, and then of the hosts, where copies leave them:
  // each as sums are, and rounded where it is sent.
  std::string Expected(size_t tensor, int round) const {
    const NetworkOptions& o = network_->options();
    const DType dtype = traits(tensor).dtype;
    const Codec& plain = PlainCodec(dtype);
    const Codec& sent = Sent(tensor);
    const Placement placement = PlacementOf(tensor);
    std::vector<std::string> values;
    for (int w = 0; w < o.workers; ++w) values.push_back(ValuesOf(w, tensor, round));
    std::string all(values[0].size(), '\0');
    for (uint64_t slot = 0; slot < placement.slots; ++slot) {
      const size_t at = placement.Begin(slot) * ElementBytes(dtype);
      const size_t bytes = placement.Elements(slot) * ElementBytes(dtype);
      const uint64_t count = placement.Elements(slot);
      const auto add = [&](std::string* to, const std::string& more, const Codec& codec) {
        const Into into = to->empty() ? Into::kRoom : Into::kSum;
        to->resize(SumCodec(codec).bytes(count));
        codec.add(0, more.data(), count, to->data(), into);
      };
      const auto coded = [&](const std::string& sum) {
        if (sent.encode == nullptr) return sum;
        std::string text(sent.bytes(count), '\0');
        sent.encode(0, sum.data(), nullptr, count, text.data());
        return text;
      };
      std::string sum;
      for (int w = 0; w < o.workers; ++w) {
        const int stands_for = o.hosts.StandsFor(w, placement.Server(slot));
        std::string copy;
        for (const int each : stands_for > 1 ? o.hosts.Workers(w) : std::vector<int>{w}) {
          if (stands_for != 0) {
            add(&copy, values[static_cast<size_t>(each)].substr(at, bytes), plain);
          }
        }
        if (stands_for != 0) add(&sum, coded(copy), sent);
      }
      std::string back = coded(sum);
      if (!sent.plain) {
        std::string decoded;
        add(&decoded, back, sent);
        back = decoded;
      }
      all.replace(at, bytes, back);
    }
    return all;
  }

 private:
  struct Arrays {
    std::unique_ptr<char[]> src, dst;  // no dst: in place
    size_t bytes = 0;
    std::string expected;
    char* out() const { return dst != nullptr ? dst.get() : src.get(); }
  };
  // It becomes ready little by little, and what comes back is told as it does, once.
  void InChunks(int worker, const std::shared_ptr<Operation>& op) {
    const uint64_t elements = op->tensor->traits.elements();
    op->ready = elements == 0 ? Operation::kWhole : 0;
    const auto come = std::make_shared<std::vector<bool>>(elements, false);
    op->arrived = [come](uint64_t begin, uint64_t count) {
      for (uint64_t i = begin; i < begin + count; ++i) {
        CheckTrue(__FILE__, __LINE__, "it comes once", !come->at(i));
        (*come)[i] = true;
      }
    };
    op->done = [come, writes = op->writes(), done = std::move(op->done)](const Status& status) {
      for (const bool there : *come) {
        if (!status.ok() || !writes) break;
        CheckTrue(__FILE__, __LINE__, "all has come", there);
      }
      done(status);
    };
    int64_t at_us = 0;
    for (uint64_t ready = 0; ready < elements;) {
      ready = random_->OneIn(4) ? elements : ready + random_->Below(elements - ready) + 1;
      at_us += random_->Between(0, 3000);
      network_->After(at_us, [=] {
        op->ready = ready == elements && random_->OneIn(2) ? Operation::kWhole : ready;
        network_->More(worker, op);
      });
    }
  }

  const Codec& Sent(size_t tensor) const {
    const Codec* codec = tensors_[tensor].codec;
    return codec != nullptr ? *codec : PlainCodec(traits(tensor).dtype);
  }

  struct PerWorker {
    std::shared_ptr<mercury::Tensor> shared;
    int rounds = 0;
    std::shared_ptr<Arrays> held;
  };
  struct Tensor {
    const Codec* codec = nullptr;
    std::vector<PerWorker> at;
  };

  std::shared_ptr<Operation> Operation_(int worker, size_t tensor, int32_t priority,
                                        const std::shared_ptr<Arrays>& arrays, Then then,
                                        int round) {
    auto op = std::make_shared<Operation>();
    op->tensor = tensors_[tensor].at[static_cast<size_t>(worker)].shared;
    op->dst = arrays->out();
    op->codec = tensors_[tensor].codec;
    op->priority = priority;
    op->keep = arrays;
    ++under_way_;
    op->done = [this, worker, tensor, round, arrays, then = std::move(then)](const Status& status) {
      --under_way_;
      if (status.ok() && round >= 0) Check(worker, tensor, round, arrays);
      if (then) then(status);
    };
    return op;
  }

  void Check(int worker, size_t tensor, int round, const std::shared_ptr<Arrays>& arrays) {
    const std::string expected = Expected(tensor, round);
    if (!expected.empty() &&
        !CheckTrue(__FILE__, __LINE__, "the sum is right",
                   std::memcmp(expected.data(), arrays->out(), expected.size()) == 0)) {
      ++wrong_;
    }
    // The gradient belongs to the caller again.
    if (arrays->dst != nullptr && arrays->src != nullptr) {
      std::memset(arrays->src.get(), 0xee, arrays->bytes);
    }
    arrays->expected = expected;
    PerWorker& mine = tensors_[tensor].at[static_cast<size_t>(worker)];
    CheckHeld(&mine);
    mine.held = arrays;
  }
  void CheckHeld(PerWorker* mine) {
    if (mine->held == nullptr || mine->held->bytes == 0) return;
    CheckTrue(__FILE__, __LINE__, "a sum stays as it was",
              std::memcmp(mine->held->expected.data(), mine->held->out(), mine->held->bytes) == 0);
  }

  Network* const network_;
  Random* const random_;
  const bool rough_;
  const uint64_t seed_;
  std::vector<Tensor> tensors_;
  size_t under_way_ = 0, wrong_ = 0;
};

}  // namespace mercury::testing
