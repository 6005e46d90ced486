// How fast sums are, against memcpy of the same buffers: GB/s of gradient (the bytes of src).
//
// A sum reads two streams and writes one, memcpy reads one and writes one (and its stores may go
// around the cache), so 2/3 of memcpy's figure is all that memory gives. Not one of the tests.
//
//   bench_sum_kernels [megabytes ...]     default: 0.0625 (in the cache), 4 and 256
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "sums/sum_kernels.h"

namespace {

using namespace mercury;

constexpr double kSecondsPerFigure = 0.4;

// The best of several runs, each long enough for the clock.
template <typename F>
double GigabytesPerSecond(size_t bytes, F run) {
  using Clock = std::chrono::steady_clock;
  const int calls = bytes > (1 << 24) ? 1 : static_cast<int>((1 << 24) / bytes);
  double best = 0;
  run();
  const auto end = Clock::now() + std::chrono::duration<double>(kSecondsPerFigure);
  while (Clock::now() < end) {
    const auto start = Clock::now();
    for (int i = 0; i < calls; ++i) run();
    const std::chrono::duration<double> spent = Clock::now() - start;
    const double figure = static_cast<double>(bytes) * calls / spent.count() * 1e-9;
    if (figure > best) best = figure;
  }
  return best;
}

void Measure(size_t bytes) {
  std::vector<char> dst(bytes);
  std::vector<char> src(bytes);
  std::printf("%12zu bytes  %-9s %7.1f GB/s\n", bytes, "memcpy", GigabytesPerSecond(bytes, [&] {
                std::memcpy(dst.data(), src.data(), bytes);
                asm volatile("" ::"r"(dst.data()) : "memory");
              }));
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBfloat16,
                            DType::kInt8, DType::kInt32, DType::kInt64}) {
    std::printf("%12zu bytes  %-9s", bytes, Name(dtype));
    for (const char* set : {"plain", "avx2", "avx512"}) {
      if (!AddWith(set, dtype, dst.data(), src.data(), 0)) continue;
      std::printf(
          " %7.1f GB/s %s",
          GigabytesPerSecond(bytes, [&] { AddWith(set, dtype, dst.data(), src.data(), bytes); }),
          set);
    }
    std::printf("\n");
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<double> megabytes = {0.0625, 4, 256};
  if (argc > 1) megabytes.clear();
  for (int i = 1; i < argc; ++i) megabytes.push_back(std::atof(argv[i]));
  for (const double size : megabytes) Measure(static_cast<size_t>(size * 1048576) / 8 * 8);
  return 0;
}
