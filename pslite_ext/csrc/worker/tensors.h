// What a worker knows of its job's tensors: those announced, in order, and those in use.
//
// Thread-safety: all functions from any thread. Ownership: users hold tensors; one that nobody
// holds is forgotten, what was announced is not. Invariant: a key stands for one shape and type.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "transport/tensor.h"

namespace mercury {

// "float32 of shape (2, 3)", and whether it is asynchronous.
std::string Text(const TensorTraits& traits);

class Tensors {
 public:
  // Names a parameter in errors, traces and reports; who was announced first stays.
  void Announce(uint64_t key, const std::string& name, int priority);
  // The same tensor for the same key; kInvalidArgument if it had another shape or type. `parameter`
  // is the announced key, of which there may be several tensors; it gives index, name and priority,
  // and is announced by `traits`' name if it was not.
  Status Open(TensorTraits traits, uint64_t parameter, std::shared_ptr<Tensor>* tensor);
  // Null if nobody holds it.
  std::shared_ptr<Tensor> Find(uint64_t key);
  // Those that somebody holds.
  std::vector<std::shared_ptr<Tensor>> All();

 private:
  struct Parameter {
    uint32_t index = 0;
    std::string name;
    int priority = 0;
  };

  std::mutex mutex_;  // guards what follows
  std::unordered_map<uint64_t, Parameter> announced_;
  std::unordered_map<uint64_t, std::weak_ptr<Tensor>> open_;
};

}  // namespace mercury
