// Every kind of value as packets, over real links: first values and fetches, pushes, asynchronous
// tensors, coded gradients, rows.
#include <cstring>
#include <map>

#include "packets/plane.h"

using namespace mercury;
namespace {

using testing::Plane;
using testing::PlaneOptions;

constexpr size_t kElements = 5000;

struct Asked {
  std::vector<float> src = std::vector<float>(kElements), dst = std::vector<float>(kElements, -1);
  std::vector<int64_t> rows;
  std::vector<Buffer> answers;
  std::atomic<bool> over{false};
  Status status;
};

class Job {
 public:
  explicit Job(const MercuryOptions& options) : plane(options) {
    plane.StartWorkers();
    REQUIRE_TRUE(plane.WaitReady());
  }
  ~Job() { plane.Stop(); }

  std::shared_ptr<Tensor> TensorOf(int worker, uint64_t key, bool asynchronous = false,
                                   const Codec* codec = nullptr) {
    auto& tensor = tensors_[{worker, key}];
    if (tensor != nullptr) return tensor;
    TensorTraits d;
    d.key = key;
    d.shape = {kElements / 10, 10};
    d.name = "t" + std::to_string(key);
    d.asynchronous = asynchronous;
    tensor = std::make_shared<Tensor>(d);
    tensor->codec = codec;
    return tensor;
  }
  std::shared_ptr<Asked> Ask(int worker, const std::shared_ptr<Tensor>& tensor,
                             Operation::Kind kind, float value = 0,
                             std::vector<int64_t> rows = {}) {
    auto asked = std::make_shared<Asked>();
    std::fill(asked->src.begin(), asked->src.end(), value);
    asked->rows = std::move(rows);
    auto op = std::make_shared<Operation>();
    op->kind = kind;
    op->tensor = tensor;
    op->codec = tensor->codec;
    op->parameter = 0.5F;
    op->fail_if_dropped = true;
    op->keep = asked;
    if (op->reads()) op->src = reinterpret_cast<const char*>(asked->src.data());
    if (op->writes()) op->dst = reinterpret_cast<char*>(asked->dst.data());
    if (kind == Operation::Kind::kRows) {
      op->rows = {asked->rows.data(), asked->rows.size(),
                  reinterpret_cast<const char*>(asked->src.data()), 40};
    }
    op->done = [raw = asked.get(), its = op.get()](const Status& status) {
      raw->answers = std::move(its->answers);
      raw->status = status;
      raw->over = true;
    };
    plane.worker(worker).Submit(std::move(op));
    return asked;
  }
  static void Wait(const std::shared_ptr<Asked>& asked) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!asked->over && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    REQUIRE_TRUE(asked->over);
    REQUIRE_OK(asked->status);
  }
  static bool All(const std::vector<float>& values, float value) {
    return std::all_of(values.begin(), values.end(), [&](float v) { return v == value; });
  }

  Plane plane;

 private:
  std::map<std::pair<int, uint64_t>, std::shared_ptr<Tensor>> tensors_;
};

std::vector<MercuryOptions> Set_ups() {
  std::vector<MercuryOptions> all;
  for (const bool deterministic : {false, true}) {
    for (const int lanes : {1, 3}) {
      MercuryOptions options = PlaneOptions(2, 2);
      options.deterministic = deterministic;
      options.lanes = lanes;
      options.checksum = deterministic;
      all.push_back(options);
    }
  }
  MercuryOptions units = PlaneOptions(2, 2);
  units.policy.kind = PolicyKind::kByteScheduler;
  units.policy.unit_bytes = 3000;
  all.push_back(units);
  return all;
}

TEST(a_first_value_is_there_for_whoever_fetches_it_before_and_after) {
  for (const MercuryOptions& options : Set_ups()) {
    Job job(options);
    const auto early = job.Ask(1, job.TensorOf(1, 7), Operation::Kind::kPull);
    job.Wait(job.Ask(0, job.TensorOf(0, 7), Operation::Kind::kFirstValue, 3));
    job.Wait(early);
    CHECK_TRUE(Job::All(early->dst, 3));
    const auto late = job.Ask(1, job.TensorOf(1, 7), Operation::Kind::kPull);
    job.Wait(late);
    CHECK_TRUE(Job::All(late->dst, 3));
    job.Wait(job.Ask(0, job.TensorOf(0, 7), Operation::Kind::kFirstValue, 4));  // and once more
    const auto again = job.Ask(1, job.TensorOf(1, 7), Operation::Kind::kPull);
    job.Wait(again);
    CHECK_TRUE(Job::All(again->dst, 4));
  }
}

TEST(what_is_pushed_is_summed_and_fetched_later) {
  for (const MercuryOptions& options : Set_ups()) {
    Job job(options);
    for (int round = 1; round < 4; ++round) {
      const auto first = job.Ask(0, job.TensorOf(0, 7), Operation::Kind::kPush, 1);
      // One worker wants the sum at once, the other does not.
      const auto second = job.Ask(1, job.TensorOf(1, 7), Operation::Kind::kSum, 2.0F * round);
      job.Wait(first);
      job.Wait(second);
      CHECK_TRUE(Job::All(second->dst, 1 + 2.0F * round));
      const auto fetched = job.Ask(0, job.TensorOf(0, 7), Operation::Kind::kPull);
      job.Wait(fetched);
      CHECK_TRUE(Job::All(fetched->dst, 1 + 2.0F * round));
    }
  }
}

TEST(what_is_asynchronous_is_added_when_it_comes) {
  for (MercuryOptions options : Set_ups()) {
    options.deterministic = false;
    Job job(options);
    job.Wait(job.Ask(0, job.TensorOf(0, 7, true), Operation::Kind::kFirstValue, 100));
    for (int round = 1; round < 20; ++round) {
      const auto sum = job.Ask(0, job.TensorOf(0, 7, true), Operation::Kind::kSum, 1);
      job.Wait(sum);
      CHECK_TRUE(Job::All(sum->dst, 100.0F + static_cast<float>(round)));
    }
    std::vector<std::shared_ptr<Asked>> pushes;
    for (int i = 0; i < 10; ++i) {
      for (const int worker : {0, 1}) {
        pushes.push_back(job.Ask(worker, job.TensorOf(worker, 7, true), Operation::Kind::kPush,
                                 worker == 0 ? 1.0F : 10.0F));
      }
      for (const auto& push : pushes) job.Wait(push);
    }
    const auto fetched = job.Ask(1, job.TensorOf(1, 7, true), Operation::Kind::kPull);
    job.Wait(fetched);
    CHECK_TRUE(Job::All(fetched->dst, 100.0F + 19 + 10 + 100));
  }
}

TEST(coded_gradients_are_summed_as_their_codec_says) {
  for (const MercuryOptions& options : Set_ups()) {
    for (const char* name : {"1bit", "2bit", "bf16", "fp16", "int8"}) {
      Job job(options);
      const Codec* codec = FindCompression(name);
      for (int round = 0; round < 3; ++round) {
        std::shared_ptr<Asked> asked[2];
        for (const int worker : {0, 1}) {
          asked[worker] = job.Ask(worker, job.TensorOf(worker, 7, false, codec),
                                  Operation::Kind::kSum, worker == 0 ? 1.0F : -1.0F);
        }
        const auto whole = job.Ask(0, job.TensorOf(0, 8), Operation::Kind::kSum, 5);
        const auto other = job.Ask(1, job.TensorOf(1, 8), Operation::Kind::kSum, 6);
        for (const auto& each : asked) job.Wait(each);
        job.Wait(whole);
        job.Wait(other);
        CHECK_TRUE(Job::All(asked[0]->dst, 0) && Job::All(asked[1]->dst, 0));
        CHECK_TRUE(Job::All(whole->dst, 11) && Job::All(other->dst, 11));
      }
      // Plain in the next round: another number for the same tensor.
      std::shared_ptr<Asked> plain[2];
      for (const int worker : {0, 1}) {
        job.TensorOf(worker, 7)->codec = nullptr;
        plain[worker] = job.Ask(worker, job.TensorOf(worker, 7), Operation::Kind::kSum, 2);
      }
      for (const auto& each : plain) job.Wait(each);
      CHECK_TRUE(Job::All(plain[0]->dst, 4) && Job::All(plain[1]->dst, 4));
    }
  }
}

TEST(rows_are_summed_by_their_numbers) {
  for (const MercuryOptions& options : Set_ups()) {
    Job job(options);
    const std::vector<std::vector<int64_t>> rows[2] = {
        {{0, 5, 499}, {}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 300}},
        {{5, 7}, {}, {3, 250, 300, 499}}};
    for (size_t round = 0; round < rows[0].size(); ++round) {
      std::shared_ptr<Asked> asked[2];
      std::map<int64_t, float> expected;
      for (const int worker : {0, 1}) {
        const float value = worker == 0 ? 1.0F : 10.0F;
        for (const int64_t row : rows[worker][round]) expected[row] += value;
        asked[worker] = job.Ask(worker, job.TensorOf(worker, 7), Operation::Kind::kRows, value,
                                rows[worker][round]);
      }
      for (const auto& each : asked) {
        job.Wait(each);
        std::map<int64_t, float> got;
        int64_t last = -1;
        for (const Buffer& set : each->answers) {
          int64_t count = 0;
          std::memcpy(&count, set.data, sizeof(count));
          const char* values = set.data + 8 + count * 8;
          for (int64_t i = 0; i < count; ++i) {
            int64_t row = 0;
            std::memcpy(&row, set.data + 8 + i * 8, sizeof(row));
            CHECK_TRUE(row > last);
            last = row;
            float value[10];
            std::memcpy(value, values + i * 40, sizeof(value));
            got[row] = value[0];
            CHECK_TRUE(std::all_of(value, value + 10, [&](float v) { return v == value[0]; }));
          }
        }
        CHECK_TRUE(got == expected);
      }
      for (const int worker : {0, 1}) {
        int workers = 0;
        CHECK_TRUE(job.TensorOf(worker, 7)->WorkersIn(round + 1, 0, &workers));
        CHECK_EQ(workers, 2);
      }
    }
  }
}

}  // namespace
