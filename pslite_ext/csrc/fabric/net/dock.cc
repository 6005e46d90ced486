#include "fabric/net/dock.h"

#include <utility>

#include "base/check.h"

namespace mercury::fabric {
namespace {

bool IsPart(const Header& header) {
  return header.kind == PacketKind::kPart || header.kind == PacketKind::kCodedPart;
}

}  // namespace

Status Dock::OnHeader(const Header& header, int64_t now_us, char** target) {
  if (header.kind == PacketKind::kGoodbye) return Status::Ok();
  if (IsPart(header)) return BeginPart(header, now_us, target);
  if (header.kind != PacketKind::kLetter) {
    return Status::Corrupt("a packet that MLfabric does not know");
  }
  return letters_.OnHeader(header, target);
}

Dock::~Dock() {
  for (const auto& [number, its] : transfers_) its.inflow->aborted = true;
}

Status Dock::Announce(int64_t number, const Letter& letter, bool two, const Landing& landing,
                      std::shared_ptr<const Inflow>* inflow) {
  if (expected_.elements == 0 || (two && !expected_.two_vectors)) {
    return Status::Corrupt("a transfer that does not fit a model");
  }
  if (transfers_.count(number) != 0) return Status::Corrupt("a transfer that is announced twice");
  if (transfers_.size() >= kTransfersMost) {
    return Status::Corrupt("more than " + std::to_string(kTransfersMost) + " transfers at once");
  }
  auto coming = std::make_shared<Inflow>();
  coming->elements = expected_.elements;
  coming->vectors = two ? 2 : 1;
  coming->stripe = landing.stripe;
  coming->sum = landing.sum;
  coming->step = landing.step;
  if (coming->sum == nullptr) coming->sum = spares_.Get(expected_.elements);
  if (two && coming->step == nullptr) coming->step = spares_.Get(expected_.elements);
  *inflow = coming;
  transfers_[number] = {letter, std::move(coming)};
  return Status::Ok();
}

void Dock::Forget(int64_t number) {
  const auto found = transfers_.find(number);
  if (found == transfers_.end()) return;
  found->second.inflow->aborted = true;
  transfers_.erase(found);
}

Status Dock::BeginPart(const Header& header, int64_t now_us, char** target) {
  const bool coded = header.kind == PacketKind::kCodedPart;
  if (coded && expected_.codec == nullptr) {
    return Status::Corrupt("a coded part, where nothing is coded");
  }
  const auto found = transfers_.find(header.tensor);
  if (found == transfers_.end()) return Status::Corrupt("a part of what was not announced");
  Inflow& inflow = *found->second.inflow;
  const Codec* codec = coded ? expected_.codec : nullptr;
  if (inflow.bytes == 0) inflow.codec = codec;
  const bool fits = header.length != 0 && header.length % TransferBytes(codec, 1) == 0 &&
                    header.offset == inflow.bytes && inflow.codec == codec && !inflow.whole() &&
                    header.length <= inflow.shape().At(inflow.bytes).most;
  if (!fits) return Status::Corrupt("a part of a transfer that does not fit a model");
  if (inflow.bytes == 0) inflow.stretches.Begin(now_us);
  if (coded) {
    coded_.resize(header.length);
    *target = coded_.data();
  } else {
    const CargoShape::Spot spot = inflow.shape().At(inflow.bytes);
    *target = reinterpret_cast<char*>((spot.step ? inflow.step : inflow.sum)->data()) + spot.at;
  }
  return Status::Ok();
}

void Dock::EndPart(const Header& header, int64_t now_us, std::optional<Come>* arrived) {
  const auto found = transfers_.find(header.tensor);
  Inflow& inflow = *found->second.inflow;
  if (const Codec* codec = inflow.codec) {
    const size_t element_bytes = TransferBytes(codec, 1);
    const CargoShape::Spot spot = inflow.shape().At(inflow.bytes);
    float* values = (spot.step ? inflow.step : inflow.sum)->data() + spot.at / element_bytes;
    codec->add(0, coded_.data(), header.length / element_bytes, reinterpret_cast<char*>(values),
               Into::kRoom);
  }
  inflow.bytes += header.length;
  MERCURY_CHECK(transfers_.size() <= kTransfersMost);
  inflow.stretches.Came(header.length, now_us);
  if (!inflow.whole()) return;
  arrived->emplace(
      Come{std::move(found->second.letter), Haul{inflow.cargo(), inflow.stretches.longest()}});
  transfers_.erase(found);
}

Status Dock::OnPacket(const Header& header, int64_t now_us, std::optional<Come>* arrived) {
  if (IsPart(header)) {
    EndPart(header, now_us, arrived);
    return Status::Ok();
  }
  if (header.kind != PacketKind::kLetter) return Status::Ok();
  std::optional<std::string> bytes;
  letters_.OnPacket(header, &bytes);
  return bytes ? Decode(*bytes, &arrived->emplace().letter) : Status::Ok();
}

}  // namespace mercury::fabric
