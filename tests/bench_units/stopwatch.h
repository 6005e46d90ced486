// Times small pieces of code, and holds the figures against earlier ones.
//
//   Stopwatch watch(arguments);
//   watch.Time("crc32c 64 KiB", "byte", 65536, 65536, [] { return [data = ...] { Crc32c(...); };
//   }); return watch.Finish();
//
// A figure is the median of several repeats, each long enough for the clock. What is timed is made
// only if its name is asked for, and gone before the next.
//
// Thread-safety: none. Ownership: none but of figures. Invariant: a figure is printed once, in the
// order in which they are timed.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

namespace mercury::bench {

struct Wanted {
  std::vector<std::string> names;  // parts of names; none: all
  std::string json;                // a file to write
  std::string against;             // such a file, of another time
};

struct Figure {
  std::string name;
  std::string per;
  double ns = 0;
  double gb_per_s = 0;
};

class Stopwatch {
 public:
  explicit Stopwatch(Wanted wanted);
  // `make` makes what is timed; one call of it handles so many items (of the kind `per`) and bytes.
  template <typename Make>
  void Time(const std::string& name, const char* per, size_t items, size_t bytes, Make make) {
    if (!Wants(name)) return;
    auto run = make();
    const double ns = MedianNs(run);
    Show({name, per, ns / static_cast<double>(items), static_cast<double>(bytes) / ns});
  }
  // The exit code: 0, or 1 if a file cannot be written or read, or nothing was timed.
  int Finish();

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr size_t kRepeats = 9;
  static constexpr double kRepeatNs = 2e7;

  template <typename Run>
  static double NsOf(Run& run, size_t calls) {
    const auto start = Clock::now();
    for (size_t i = 0; i < calls; ++i) run();
    return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
  }
  template <typename Run>
  static double MedianNs(Run& run) {
    run();  // memory is touched, tables are made
    size_t calls = 1;
    while (NsOf(run, calls) < kRepeatNs) calls *= 2;
    std::array<double, kRepeats> each;
    for (double& ns : each) ns = NsOf(run, calls) / static_cast<double>(calls);
    std::nth_element(each.begin(), each.begin() + kRepeats / 2, each.end());
    return each[kRepeats / 2];
  }
  bool Wants(const std::string& name) const;
  void Show(const Figure& figure);

  const Wanted wanted_;
  std::map<std::string, double> before_;  // ns, by name
  bool failed_ = false;
  std::vector<Figure> figures_;
};

}  // namespace mercury::bench
