// A test harness in one header: tests register themselves, checks report and go on, requirements
// end their test, and every random number follows from one printed seed.
//
//   TEST(adds_two_numbers) { CHECK_EQ(1 + 1, 2); }
//
// A binary is a room's *_test.cc linked with what they test (rooms.cmake); `main` is here.
// Arguments are files (membership_test), or parts of the names of tests to run (default: all);
// MERCURY_TEST_SEED=<number> repeats a run's random numbers. With MERCURY_TEST_LONG=1 (`make
// nightly`), tests that take long draw ten times as many cases, or more.
//
// Thread-safety: checks may be made on any thread, requirements on the test's own. Invariant: a
// test draws the same numbers for a seed whether it runs alone or with others.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <random>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include "base/status.h"

namespace mercury::testing {

struct Case {
  const char* file;
  const char* name;
  void (*run)();
};

struct Abandoned {};  // thrown by a requirement that does not hold

inline std::atomic<int> failed_checks{0};
inline uint64_t run_seed = 0;
inline const char* current_test = "";

inline std::vector<Case>& Cases() {
  static std::vector<Case> cases;
  return cases;
}

struct Registration {
  Registration(const char* file, const char* name, void (*run)()) {
    Cases().push_back({file, name, run});
  }
};

// A source of numbers for one test.
class Random : public std::mt19937_64 {
 public:
  Random() : std::mt19937_64(Mixed()) {}
  uint64_t Below(uint64_t end) { return end == 0 ? 0 : (*this)() % end; }
  // Both ends included.
  int64_t Between(int64_t first, int64_t last) {
    return first + static_cast<int64_t>(Below(static_cast<uint64_t>(last - first) + 1));
  }
  bool OneIn(uint64_t n) { return Below(n) == 0; }
  double Unit() { return static_cast<double>((*this)() >> 11) * 0x1p-53; }
  float Float(float low, float high) { return low + (high - low) * static_cast<float>(Unit()); }
  void Fill(void* out, size_t bytes) {
    for (auto* at = static_cast<uint8_t*>(out); bytes != 0; --bytes) {
      *at++ = static_cast<uint8_t>((*this)());
    }
  }

 private:
  static uint64_t Mixed() {
    uint64_t hash = 0xcbf29ce484222325 ^ run_seed;
    for (const char* c = current_test; *c != 0; ++c) hash = (hash ^ uint8_t(*c)) * 0x100000001b3;
    return hash;
  }
};

// A case takes several times as long where the core checks itself, with sanitizers mostly: whoever
// looks there for what cases come to looks at a few of them.
#ifdef MERCURY_CHECKED
constexpr int kCasesPart = 3;
#else
constexpr int kCasesPart = 1;
#endif
inline int Cases(int all) { return (all + kCasesPart - 1) / kCasesPart; }

// Of how many random cases a test that takes long makes: a part of those, unless the run may be
// long. The numbers of a seed stay the same: a long run begins with the cases of a short one.
inline int Trials(int all, int part = 10) {
  static const char* const may_be_long = std::getenv("MERCURY_TEST_LONG");
  return may_be_long != nullptr && *may_be_long == '1' ? all : Cases((all + part - 1) / part);
}

template <typename T, typename = void>
struct Streams : std::false_type {};
template <typename T>
struct Streams<T, decltype(void(std::declval<std::ostream&>() << std::declval<const T&>()))>
    : std::true_type {};

template <typename T>
std::string Shown(const T& value) {
  std::ostringstream out;
  out.precision(17);
  if constexpr (std::is_same_v<T, bool>) {
    out << (value ? "true" : "false");
  } else if constexpr (std::is_enum_v<T> || (std::is_integral_v<T> && sizeof(T) == 1)) {
    out << static_cast<int64_t>(value);
  } else if constexpr (Streams<T>::value) {
    out << value;
  } else {
    out << "(a value of " << sizeof(T) << " bytes)";
  }
  return out.str();
}

template <typename T>
bool Negative(const T& value) {
  if constexpr (std::is_signed_v<T>) return value < 0;
  return false;
}

// As numbers: -1 is not 2^64 - 1.
template <typename A, typename B>
bool Equal(const A& a, const B& b) {
  if constexpr (std::is_integral_v<A> && std::is_integral_v<B>) {
    return Negative(a) == Negative(b) && static_cast<uint64_t>(a) == static_cast<uint64_t>(b);
  } else {
    return a == b;
  }
}

inline bool Report(const char* file, int line, const std::string& what) {
  ++failed_checks;
  std::fprintf(stderr, "%s:%d: %s: %s\n", file, line, current_test, what.c_str());
  return false;
}

inline bool CheckTrue(const char* file, int line, const char* text, bool holds) {
  return holds || Report(file, line, std::string(text) + " does not hold");
}

template <typename A, typename B>
bool CheckEqual(const char* file, int line, const char* text, const A& a, const B& b) {
  return Equal(a, b) || Report(file, line, text + (": " + Shown(a)) + " is not " + Shown(b));
}

inline bool CheckStatus(const char* file, int line, const char* text, Code code,
                        const Status& status) {
  if (status.code() == code && status.ok() == status.text().empty()) return true;
  return Report(file, line,
                std::string(text) + ": code " + Shown(status.code()) + " (" + status.text() +
                    "), expected code " + Shown(code));
}

inline std::string Stem(const std::string& file) {
  const size_t begin = file.rfind('/') + 1;  // 0 where there is none
  return file.substr(begin, file.rfind('.') - begin);
}

inline bool Selected(const Case& test, int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (Stem(test.file) == argv[i] || std::strstr(test.name, argv[i]) != nullptr) return true;
  }
  return argc < 2;
}

inline int RunAll(int argc, char** argv) {
  const char* fixed = std::getenv("MERCURY_TEST_SEED");  // NOLINT(concurrency-mt-unsafe)
  run_seed = fixed != nullptr ? std::strtoull(fixed, nullptr, 0) : std::random_device()();
  std::printf("seed %llu (repeat with MERCURY_TEST_SEED)\n",
              static_cast<unsigned long long>(run_seed));
  int passed = 0;
  int failed = 0;
  for (const Case& test : Cases()) {
    if (!Selected(test, argc, argv)) continue;
    const int before = failed_checks;
    const auto start = std::chrono::steady_clock::now();
    current_test = test.name;
    try {
      test.run();
    } catch (const Abandoned&) {  // already reported
    } catch (const std::exception& error) {
      Report(__FILE__, __LINE__, std::string("exception: ") + error.what());
    }
    const auto spent = std::chrono::steady_clock::now() - start;
    const bool good = failed_checks == before;
    ++(good ? passed : failed);
    std::printf("%s  %s (%lld ms)\n", good ? "ok  " : "FAIL", test.name,
                static_cast<long long>(
                    std::chrono::duration_cast<std::chrono::milliseconds>(spent).count()));
  }
  std::printf("%d passed, %d failed\n", passed, failed);
  return failed != 0 || passed == 0;
}

}  // namespace mercury::testing

#define TEST(name)                                                                             \
  static void Test_##name();                                                                   \
  static const mercury::testing::Registration registered_##name(__FILE__, #name, Test_##name); \
  static void Test_##name()

// A check reports and goes on. `&&` or `||` inside CHECK_TRUE is fine; values are printed by the
// others.
#undef CHECK_EQ  // ps-lite's logging has one, too
#define CHECK_TRUE(condition) \
  mercury::testing::CheckTrue(__FILE__, __LINE__, #condition, static_cast<bool>(condition))
#define CHECK_FALSE(condition) CHECK_TRUE(!(condition))
#define CHECK_EQ(a, b) mercury::testing::CheckEqual(__FILE__, __LINE__, #a " == " #b, (a), (b))
#define CHECK_STATUS(code, expression) \
  mercury::testing::CheckStatus(__FILE__, __LINE__, #expression, (code), (expression))
#define CHECK_OK(expression) CHECK_STATUS(mercury::Code::kOk, expression)

// A requirement reports and ends the test.
#define MERCURY_REQUIRED(check) ((check) ? void() : throw mercury::testing::Abandoned())
#define REQUIRE_TRUE(condition) MERCURY_REQUIRED(CHECK_TRUE(condition))
#define REQUIRE_FALSE(condition) MERCURY_REQUIRED(CHECK_FALSE(condition))
#define REQUIRE_EQ(a, b) MERCURY_REQUIRED(CHECK_EQ(a, b))
#define REQUIRE_STATUS(code, expression) MERCURY_REQUIRED(CHECK_STATUS(code, expression))
#define REQUIRE_OK(expression) MERCURY_REQUIRED(CHECK_OK(expression))

// Weak, so that several test files may be linked into one binary.
__attribute__((weak)) int main(int argc, char** argv) {
  return mercury::testing::RunAll(argc, argv);
}
