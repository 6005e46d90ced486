// A meta as it lies behind an envelope: what CheckMeta lets through, ps-lite's UnpackMeta must be
// able to read, and packing it again must come to the same length.
#include <cstring>
#include <memory>

#include "control/meta_bounds.h"
#include "fuzz.h"
#include "ps/internal/van.h"

namespace {

// Opens ps-lite's packing.
class Packing : public ps::Van {
 public:
  using ps::Van::GetPackMetaLen;
  using ps::Van::UnpackMeta;
  void Connect(const ps::Node& /*node*/) override {}
  int Bind(const ps::Node& /*node*/, int /*max_retry*/) override { return 0; }
  int RecvMsg(ps::Message* /*message*/) override { return -1; }
  int SendMsg(ps::Message& /*message*/) override { return 0; }
  std::string GetType() const override { return "fuzz"; }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Packing packing;
  // malloc: aligned, and ends where the meta ends, for the sanitizer.
  const std::unique_ptr<char, decltype(&std::free)> meta(static_cast<char*>(std::malloc(size)),
                                                         &std::free);
  if (size != 0) std::memcpy(meta.get(), data, size);
  const mercury::Status status = mercury::CheckMeta(meta.get(), size);
  FUZZ_REQUIRE(status.ok() == status.text().empty());
  if (!status.ok()) {
    FUZZ_REQUIRE(status.code() == mercury::Code::kCorrupt);
    return 0;
  }
  ps::Meta unpacked;
  packing.UnpackMeta(meta.get(), static_cast<int>(size), &unpacked);
  FUZZ_REQUIRE(unpacked.body.size() <= mercury::kMetaBodyBytesMax);
  FUZZ_REQUIRE(unpacked.control.node.size() <= size_t{mercury::kMetaNodesMax});
  FUZZ_REQUIRE(static_cast<size_t>(packing.GetPackMetaLen(unpacked)) == size);
  return 0;
}
