#include "control/meta_bounds.h"

#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "harness.h"
#include "meta.h"
#include "ps/internal/van.h"

using namespace mercury;  // NOLINT: a test

namespace {

// Opens ps-lite's packing to the test.
class Packer : public ps::Van {
 public:
  std::vector<uint64_t> Pack(const ps::Meta& meta, size_t* bytes) {
    *bytes = static_cast<size_t>(GetPackMetaLen(meta));
    std::vector<uint64_t> packed((*bytes + 7) / 8);
    char* at = reinterpret_cast<char*>(packed.data());
    int size = 0;
    PackMeta(meta, &at, &size);
    return packed;
  }
  void Unpack(const char* meta, size_t bytes, ps::Meta* out) {
    UnpackMeta(meta, static_cast<int>(bytes), out);
  }
  void Connect(const ps::Node&) override {}
  int Bind(const ps::Node&, int) override { return 0; }
  int RecvMsg(ps::Message*) override { return -1; }
  int SendMsg(ps::Message&) override { return 0; }
  std::string GetType() const override { return "test"; }
};

ps::Meta Sample(int nodes, const std::string& body, int types) {
  ps::Meta meta;
  meta.control.cmd = nodes != 0 ? ps::Control::ADD_NODE : ps::Control::EMPTY;
  meta.body = body;
  meta.push_pull_operation = 17;
  meta.recv_key = 1ULL << 50;
  for (int i = 0; i < types; ++i) meta.data_type.push_back(ps::CHAR);
  for (int i = 0; i < nodes; ++i) {
    ps::Node node;
    node.role = ps::Node::WORKER;
    node.id = 9 + 2 * i;
    node.customer_id = 0;
    node.hostname = "10.0.0.1";
    node.port = 1234;
    std::memset(node.endpoint_name, 0, sizeof(node.endpoint_name));
    meta.control.node.push_back(node);
  }
  return meta;
}

}  // namespace

TEST(accepts_what_is_packed_and_keeps_the_added_fields) {
  Packer packer;
  for (int nodes : {0, 1, 130}) {
    for (const std::string& body : {std::string(), std::string(8, 'x'), std::string(4096, 'y')}) {
      size_t bytes;
      const auto packed = packer.Pack(Sample(nodes, body, nodes != 0 ? 0 : 3), &bytes);
      const char* at = reinterpret_cast<const char*>(packed.data());
      CHECK_STATUS(Code::kOk, CheckMeta(at, bytes));
      ps::Meta got;
      packer.Unpack(at, bytes, &got);
      CHECK_EQ(got.push_pull_operation, 17);
      CHECK_EQ(got.recv_key, uint64_t{1} << 50);
      CHECK_EQ(got.control.node.size(), static_cast<size_t>(nodes));
      CHECK_EQ(got.body, body);
    }
  }
}

TEST(refuses_forged_counts) {
  Packer packer;
  size_t bytes;
  const auto packed = packer.Pack(Sample(2, std::string(16, 'b'), 0), &bytes);
  const auto forged = [&](const std::function<void(ps::RawMeta*)>& forge) {
    auto copy = packed;
    forge(reinterpret_cast<ps::RawMeta*>(copy.data()));
    return CheckMeta(reinterpret_cast<const char*>(copy.data()), bytes);
  };
  for (int bad : {-1, 1, 17, 0x7fffffff, -0x7fffffff}) {
    CHECK_STATUS(Code::kCorrupt, forged([&](ps::RawMeta* raw) { raw->body_size = bad; }));
    CHECK_STATUS(Code::kCorrupt, forged([&](ps::RawMeta* raw) { raw->data_type_size = bad; }));
    CHECK_STATUS(Code::kCorrupt, forged([&](ps::RawMeta* raw) { raw->control.node_size = bad; }));
  }
  CHECK_STATUS(Code::kCorrupt, forged([](ps::RawMeta* raw) { raw->control.cmd = 99; }));
  CHECK_STATUS(Code::kCorrupt, forged([](ps::RawMeta* raw) { raw->control.cmd = -1; }));
}

TEST(refuses_bad_nodes) {
  Packer packer;
  size_t bytes;
  const auto packed = packer.Pack(Sample(1, "", 0), &bytes);
  const auto forged = [&](const std::function<void(ps::RawNode*)>& forge) {
    auto copy = packed;
    char* at = reinterpret_cast<char*>(copy.data());
    forge(reinterpret_cast<ps::RawNode*>(at + sizeof(ps::RawMeta)));
    return CheckMeta(at, bytes);
  };
  CHECK_STATUS(Code::kOk, forged([](ps::RawNode*) {}));
  CHECK_STATUS(Code::kCorrupt, forged([](ps::RawNode* n) { n->role = 7; }));
  CHECK_STATUS(Code::kCorrupt, forged([](ps::RawNode* n) { n->endpoint_name_len = 65; }));
  CHECK_STATUS(Code::kCorrupt,
               forged([](ps::RawNode* n) { std::memset(n->hostname, 'h', sizeof(n->hostname)); }));
}

TEST(whatever_is_accepted_can_be_unpacked) {
  mercury::testing::Random random;
  Packer packer;
  int accepted = 0;
  for (int round = 0; round < 30000; ++round) {
    size_t bytes;
    auto packed = packer.Pack(
        Sample(static_cast<int>(random() % 3), std::string(random() % 3 * 8, 'b'), 0), &bytes);
    // An exact copy on the heap, so that a sanitizer sees every byte read beyond it.
    std::unique_ptr<uint64_t[]> exact(new uint64_t[bytes / 8]);
    std::memcpy(exact.get(), packed.data(), bytes / 8 * 8);
    char* at = reinterpret_cast<char*>(exact.get());
    const size_t flips = random() % 4;
    for (size_t i = 0; i < flips; ++i)
      at[random() % std::min<size_t>(bytes, 96)] = static_cast<char>(random());
    const size_t size = random() % 8 == 0 ? random() % (bytes / 8 * 8 + 1) : bytes / 8 * 8;
    if (!CheckMeta(at, size).ok()) continue;
    ++accepted;
    ps::Meta got;
    packer.Unpack(at, size, &got);
  }
  CHECK_TRUE(accepted > 1000);
}
