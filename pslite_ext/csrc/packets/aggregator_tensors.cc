// The tensors of an aggregator: made by the first worker that declares them, the same for all.
#include <algorithm>
#include <new>
#include <utility>

#include "base/node_name.h"
#include "packets/summed_tensor.h"

namespace mercury {
namespace {

std::string Shape(const Declaration& d) {
  std::string text = std::to_string(d.elements) + " elements of " + Name(d.dtype);
  if (d.row_elements != 0) text += " in rows of " + std::to_string(d.row_elements);
  return text + (d.asynchronous ? ", asynchronous" : "");
}

}  // namespace

bool Aggregator::Alike(const Declaration& a, const Declaration& b) {
  return a.elements == b.elements && a.dtype == b.dtype && a.row_elements == b.row_elements &&
         a.asynchronous == b.asynchronous;
}

Status Aggregator::Differ(const SummedTensor& tensor, int worker,
                          const Declaration& declared) const {
  return Status::InvalidArgument(
      NodeName(Role::kWorker, RankOfPeer(tensor.first_worker)) + " has " + Shape(tensor.declared) +
      ", " + NodeName(Role::kWorker, RankOfPeer(worker)) + " has " + Shape(declared));
}

// A worker declares a tensor on each link before it uses it there, by the same number.
Status Aggregator::Declare(int worker, const Receiving& link, const Header& header) {
  Peer* peer = peers_[static_cast<size_t>(worker)].get();
  Declaration declared;
  Status status = Decode(link.text.data(), link.text.size(), &declared);
  if (!status.ok()) return status;
  if (header.tensor >= options_.tensors_max) {
    return Status::Exhausted("more than " + std::to_string(options_.tensors_max) + " tensors");
  }
  const Coded coded{FindCodec(declared.codec), declared.parameter};
  const bool plain = coded.codec->plain && !declared.asynchronous && declared.row_elements == 0;
  if (!options_.ranks.empty() && !plain) return Corrupt(declared, "what only servers sum");
  SummedTensor* tensor = Known(worker, declared);
  if (header.tensor >= peer->tensors.size()) peer->tensors.resize(header.tensor + size_t{1});
  Named& named = peer->tensors[header.tensor];
  if (named.tensor != nullptr) {
    const bool same = named.tensor == tensor && named.coded.codec == coded.codec &&
                      named.workers == static_cast<int64_t>(declared.workers);
    return same ? Status::Ok()
                : Status::Corrupt("tensor '" + declared.name + "' declared as number " +
                                  std::to_string(header.tensor) + ", which is another's");
  }
  const int stands_for = options_.hosts.StandsFor(worker, options_.server);
  if (declared.workers != 1 && static_cast<int64_t>(declared.workers) != stands_for) {
    return Corrupt(declared, "copies that stand for " + std::to_string(declared.workers) +
                                 " workers, where there are " + std::to_string(stands_for));
  }
  named = {tensor, coded, static_cast<int>(declared.workers)};
  peer->slots += tensor->share.count;
  tensor->number_of[static_cast<size_t>(worker)] = header.tensor;
  if (!tensor->failed.ok()) {
    SendError(worker, header.tensor, tensor->failed);
  } else if (!Alike(declared, tensor->declared) && peer->is_new) {
    return Differ(*tensor, worker, declared);  // its own fault: it is not in yet
  } else if (!Alike(declared, tensor->declared)) {
    FailTensor(tensor, Differ(*tensor, worker, declared));
  }
  return Status::Ok();
}

Aggregator::SummedTensor* Aggregator::Known(int worker, const Declaration& declared) {
  auto& entry = tensors_[{declared.key, declared.row_elements != 0}];
  if (entry == nullptr) entry = NewTensor(worker, declared);
  return entry.get();
}

std::unique_ptr<Aggregator::SummedTensor> Aggregator::NewTensor(int worker,
                                                                const Declaration& declared) {
  auto made = std::make_unique<SummedTensor>();
  made->declared = declared;
  made->first_worker = worker;
  made->number_of.assign(static_cast<size_t>(options_.num_workers), -1);
  const size_t element_bytes = ElementBytes(declared.dtype);
  const Placement placement = made->rows()
                                  ? Placement::OfRows(declared.key, declared.elements,
                                                      declared.row_elements, options_.shares)
                                  : Placement(declared.key, declared.elements, element_bytes,
                                              options_.packet_bytes, options_.shares);
  made->share = options_.ranks.empty() ? Share(placement, options_.server)
                                       : Share(placement, options_.servers);
  const uint64_t count = made->share.count;
  if (!options_.ranks.empty()) {
    made->on_server.resize(static_cast<size_t>(options_.shares.servers()));
    made->ready.resize(made->on_server.size(), 0);
    for (const int s : options_.servers) {
      made->on_server[static_cast<size_t>(s)] = Share(placement, s);
    }
  }
  if (!made->rows()) {
    made->unit_slots = UnitSlots(options_.policy, options_.unit_bytes,
                                 placement.slot_elements * element_bytes, count);
  }
  try {
    // All of it is kept as the value, as it is sent back, beside the others': what exceeds the cap
    // cannot be summed. Nor do numbers from the network make us allocate more than that. Where a
    // lost server's place is taken, workers also declare what has been released, and has no value.
    const Codec& back = FindCodec(declared.codec)->sent_back();
    const uint64_t cap = pool_.bytes_max(), others = options_.resumes ? 0 : kept_;
    const uint64_t kept = made->rows() ? count : made->share.Total(back.bytes);
    if (cap != 0 && kept > cap - std::min(cap, others)) throw std::bad_alloc();
    made->slots.resize(count);
    made->progress.Resize(count, peers_.size());
    made->levels = Levels(peers_.size());
    if (options_.resumes) {
      made->resumptions.assign(count, Resumption(peers_.size()));
      for (size_t w = 0; w < peers_.size(); ++w) {
        for (Resumption& each : made->resumptions) {
          if (peers_[w]->out) each.Drop(w);
        }
      }
    }
    made->unit_ready.assign(count / made->unit_slots + 1, 0);
    made->unit_sent.assign(static_cast<size_t>(options_.num_workers), 0);
    for (uint64_t i = 0; made->rows() && i < count; ++i) {
      const uint64_t row = declared.row_elements;
      const auto [first, end] = made->share.Rows(i, row);
      made->slots[i].rows =
          std::make_unique<RowSum>(declared.dtype, row * element_bytes, first, end - 1);
    }
    if (!made->rows()) made->kept = kept;
    kept_ += made->kept;
  } catch (const std::bad_alloc&) {
    made->slots = std::vector<Slot>();  // gives the memory back
    made->failed =
        Status::Exhausted("tensor '" + declared.name + "': " + NoMemory(Shape(declared)));
  }
  return made;
}

}  // namespace mercury
