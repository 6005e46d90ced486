// How fast the hot units of the core are, each by itself: for a change to be held against.
//
//   bench_units [PART-OF-A-NAME ...] [--json FILE] [--against FILE]
//
// A sum reads two streams and writes one, memcpy reads one and writes one (and its stores may go
// around the cache), so 2/3 of memcpy's figure is all that memory gives.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>

#include "base/crc32c.h"
#include "links/packet_reader.h"
#include "packets/aggregator.h"
#include "policy/urgency_queue.h"
#include "stopwatch.h"
#include "sums/compress.h"
#include "sums/sum_kernels.h"

namespace mercury::bench {
namespace {

constexpr size_t kCached = 64 << 10;
constexpr size_t kPackets = 64;  // of a tensor, or of a stream
constexpr int kWorkers = 4;
constexpr size_t kElements = kCached / sizeof(float);  // of a gradient
constexpr size_t kItems = 1024;                        // in a queue

// What has changed is not left out as unneeded.
void Keep(const void* data) { asm volatile("" ::"r"(data) : "memory"); }

// Zeros, at the beginning of a page: where malloc puts them would be a third of some figures.
class Buffer {
 public:
  explicit Buffer(size_t bytes)
      : bytes_(bytes), data_(static_cast<char*>(std::aligned_alloc(4096, bytes)), std::free) {
    std::memset(data_.get(), 0, bytes);
  }
  char* data() { return data_.get(); }
  float* floats() { return reinterpret_cast<float*>(data()); }
  size_t size() const { return bytes_; }

 private:
  size_t bytes_;
  std::unique_ptr<char, decltype(&std::free)> data_;
};

std::string Size(size_t bytes) {
  if (bytes >= 1 << 20) return std::to_string(bytes >> 20) + " MiB";
  return std::to_string(bytes >> 10) + " KiB";
}

void Sums(Stopwatch* watch) {
  for (const size_t bytes : {kCached, size_t{256} << 20}) {
    watch->Time("memcpy " + Size(bytes), "byte", bytes, bytes, [=] {
      return [dst = Buffer(bytes), src = Buffer(bytes)]() mutable {
        std::memcpy(dst.data(), src.data(), src.size());
        Keep(dst.data());
      };
    });
    for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBfloat16,
                              DType::kInt8, DType::kInt32, DType::kInt64}) {
      const std::string name = std::string("add ") + Name(dtype) + " " + Size(bytes);
      watch->Time(name, "element", bytes / ElementBytes(dtype), bytes, [=] {
        return [=, dst = Buffer(bytes), src = Buffer(bytes)]() mutable {
          Add(dtype, dst.data(), src.data(), src.size());
        };
      });
    }
  }
}

// Gradients about as large as the threshold, so that each code is there.
Buffer Gradients() {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> draw(-1, 1);
  Buffer out(kCached);
  std::generate_n(out.floats(), kElements, [&] { return draw(random); });
  return out;
}

void Compressions(Stopwatch* watch) {
  for (const Compression kind : {Compression::kOneBit, Compression::kTwoBit}) {
    const char* const bits = kind == Compression::kOneBit ? "1bit" : "2bit";
    const size_t packed_bytes = CompressedBytes(kind, kElements);
    watch->Time(std::string("compress ") + bits, "element", kElements, kCached, [=] {
      return [kind, packed = std::vector<uint8_t>(packed_bytes), gradients = Gradients(),
              residual = Buffer(kCached)]() mutable {
        Compress(kind, 0.5F, gradients.floats(), residual.floats(), kElements, packed.data());
      };
    });
    watch->Time(std::string("decompress ") + bits, "element", kElements, kCached, [=] {
      std::vector<uint8_t> packed(packed_bytes);
      Buffer residual(kCached);
      Compress(kind, 0.5F, Gradients().floats(), residual.floats(), kElements, packed.data());
      return [kind, packed, sum = Buffer(kCached)]() mutable {
        Decompress(kind, 0.5F, packed.data(), kElements, sum.floats(), Into::kSum);
      };
    });
  }
}

void Checksums(Stopwatch* watch) {
  for (const size_t bytes : {size_t{1} << 10, kCached}) {
    watch->Time("crc32c " + Size(bytes), "byte", bytes, bytes, [=] {
      return [crc = 0U, data = Buffer(bytes)]() mutable {
        crc = Crc32c(crc, data.data(), data.size());
        Keep(&crc);
      };
    });
  }
}

void Fail(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "bench_units: %s\n", status.text().c_str());
  std::exit(1);
}

// A tensor of several workers. A payload is copied to its place, as receiving it does.
class Round {
 public:
  explicit Round(size_t packet_bytes) : payload_(packet_bytes) {
    AggregatorOptions options;
    options.num_workers = kWorkers;
    options.packet_bytes = packet_bytes;
    aggregator_ = std::make_unique<Aggregator>(options);
    Declaration declaration;
    declaration.elements = kPackets * packet_bytes / sizeof(float);
    declaration.name = "tensor";
    const std::string text = Encode(declaration);
    Header header;
    header.kind = PacketKind::kDeclare;
    header.length = static_cast<uint32_t>(text.size());
    for (int w = 0; w < kWorkers; ++w) Packet(w, header, text.data());
  }

  void operator()() {
    Header header;
    header.length = static_cast<uint32_t>(payload_.size());
    header.round = ++round_;
    for (size_t p = 0; p < kPackets; ++p) {
      header.offset = p * payload_.size() / sizeof(float);
      for (int w = 0; w < kWorkers; ++w) Packet(w, header, payload_.data());
      OutPacket out;
      for (int w = 0; w < kWorkers; ++w) {
        while (aggregator_->Next(w, 0, &out)) ++sums_;
      }
    }
    if (sums_ != (sent_ += kPackets * kWorkers)) Fail(Status::Corrupt("sums are missing"));
  }

 private:
  void Packet(int worker, const Header& header, const char* payload) {
    char* target = nullptr;
    Fail(aggregator_->OnHeader(worker, header, 0, &target));
    if (target != nullptr) std::memcpy(target, payload, header.length);
    Fail(aggregator_->OnPacket(worker, header, 0));
  }

  std::vector<char> payload_;
  std::unique_ptr<Aggregator> aggregator_;
  uint8_t round_ = 0;
  size_t sums_ = 0, sent_ = 0;
};

// Bytes of packets, read as they would come from a socket: at most so many at a time.
class Stream : public PacketSink {
 public:
  explicit Stream(size_t packet_bytes) : payload_(packet_bytes), reader_(packet_bytes, true, this) {
    for (size_t p = 0; p < kPackets; ++p) {
      Header header;
      header.length = static_cast<uint32_t>(packet_bytes);
      header.offset = p * packet_bytes;
      const HeaderBytes head = Encode(header);
      const uint32_t crc = PacketCrc(Crc32c(0, payload_.data(), packet_bytes), head);
      bytes_.append(reinterpret_cast<const char*>(head.data()), head.size());
      bytes_.append(payload_.data(), packet_bytes);
      bytes_.append(reinterpret_cast<const char*>(&crc), sizeof(crc));
    }
  }

  void Read() {
    for (size_t at = 0; at < bytes_.size();) {
      iovec pieces[2];
      const int count = reader_.Targets(pieces);
      size_t read = 0;
      for (int i = 0; i < count; ++i) {
        const size_t n = std::min(pieces[i].iov_len, bytes_.size() - at - read);
        std::memcpy(pieces[i].iov_base, bytes_.data() + at + read, n);
        read += n;
      }
      Fail(reader_.Advance(read));
      at += read;
    }
  }

  Status OnHeader(const Header& /*header*/, char** target) override {
    *target = payload_.data();
    return Status::Ok();
  }
  Status OnPacket(const Header& /*header*/) override { return Status::Ok(); }

 private:
  std::vector<char> payload_;
  std::string bytes_;
  PacketReader reader_;
};

void Packets(Stopwatch* watch) {
  for (const size_t packet : {size_t{1} << 10, kCached}) {
    constexpr size_t kSent = kPackets * kWorkers;
    watch->Time("aggregator " + Size(packet), "packet", kSent, kSent * packet,
                [=] { return Round(packet); });
    watch->Time("packet reader " + Size(packet), "packet", kPackets, kPackets * packet,
                [=] { return [stream = std::make_unique<Stream>(packet)] { stream->Read(); }; });
  }
}

// As on a link of a large model: its tensors have a priority each, and some packets wait.
void Queues(Stopwatch* watch) {
  constexpr int32_t kTensors = 160;
  watch->Time("urgency queue push, pop", "item", kItems, kItems * sizeof(size_t), [=] {
    std::mt19937 random(7);
    std::vector<int32_t> priorities(kItems);
    for (int32_t& p : priorities) p = -static_cast<int32_t>(random() % kTensors);
    auto queue = std::make_shared<UrgencyQueue<size_t>>();
    for (size_t i = 0; i < kItems; ++i) queue->Push(priorities[i], i);
    return [queue, priorities] {
      for (size_t i = 0; i < kItems; ++i) {
        queue->Push(priorities[i], i);
        const size_t item = queue->Pop();
        Keep(&item);
      }
    };
  });
}

int Run(int argc, char** argv) {
  Wanted wanted;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.rfind("--", 0) != 0) {
      wanted.names.push_back(word);
    } else if ((word == "--json" || word == "--against") && i + 1 < argc) {
      (word == "--json" ? wanted.json : wanted.against) = argv[++i];
    } else {
      std::fprintf(stderr, "usage: bench_units [NAME ...] [--json FILE] [--against FILE]\n");
      return 2;
    }
  }
  Stopwatch watch(wanted);
  Sums(&watch);
  Compressions(&watch);
  Checksums(&watch);
  Packets(&watch);
  Queues(&watch);
  return watch.Finish();
}

}  // namespace
}  // namespace mercury::bench

int main(int argc, char** argv) { return mercury::bench::Run(argc, argv); }
