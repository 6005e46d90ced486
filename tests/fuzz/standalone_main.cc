// Runs a fuzz target without a fuzzing engine: over every file of its corpus, then over seeded
// random mutations of them, so that CI needs no clang. It does not search as an engine does; it
// keeps what a search has found from coming back.
//
//   sparse_sum_fuzz <corpus directory or file> [mutations, default 20000]
//
// MERCURY_TEST_SEED=<number> repeats a run. An input that ends the process is left in
// ./crash-<hash> and can be given as the file. Single-threaded.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "fuzz.h"

extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());

namespace {

using Input = std::vector<uint8_t>;

constexpr size_t kInputBytesMax = 4096;
constexpr int kEditsMax = 6;

const Input* current = nullptr;

// Called when the process is about to die: system calls only.
void SaveCurrent() {
  if (current == nullptr) return;
  uint32_t hash = 0x811c9dc5;
  for (const uint8_t byte : *current) hash = (hash ^ byte) * 0x01000193;
  char path[] = "crash-00000000";
  for (size_t i = 0; i < 8; ++i) path[6 + i] = "0123456789abcdef"[hash >> (28 - 4 * i) & 15];
  const int file = open(path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0644);
  [[maybe_unused]] ssize_t n = write(file, current->data(), current->size());
  close(file);
  n = write(STDERR_FILENO, "the input is in ", 16);
  n = write(STDERR_FILENO, path, sizeof(path) - 1);
  n = write(STDERR_FILENO, "\n", 1);
  current = nullptr;
}

void OnSignal(int number) {
  SaveCurrent();
  std::signal(number, SIG_DFL);
  std::raise(number);
}

void Run(const Input& input) {
  current = &input;
  LLVMFuzzerTestOneInput(input.data(), input.size());
  current = nullptr;
}

std::vector<Input> ReadCorpus(const std::filesystem::path& path) {
  std::vector<std::filesystem::path> files;
  if (std::filesystem::is_directory(path)) {
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      files.push_back(entry.path());
    }
  } else if (std::filesystem::exists(path)) {
    files.push_back(path);
  }
  std::sort(files.begin(), files.end());  // the same run for a seed on every file system
  std::vector<Input> corpus;
  for (const auto& file : files) {
    std::ifstream in(file, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return corpus;
}

class Mutator {
 public:
  Mutator(const std::vector<Input>& corpus, uint64_t seed) : corpus_(corpus), random_(seed) {}

  Input Next() {
    Input input = Any();
    for (uint64_t n = Below(kEditsMax) + 1; n != 0; --n) Edit(&input);
    if (input.size() > kInputBytesMax) input.resize(kInputBytesMax);
    return input;
  }

 private:
  uint64_t Below(uint64_t end) { return random_() % end; }
  const Input& Any() { return corpus_[Below(corpus_.size())]; }

  void Edit(Input* input) {
    // Numbers at which a check of a length or a count may be off by one, or overflow.
    static constexpr uint64_t kNumbers[] = {0,
                                            1,
                                            2,
                                            7,
                                            8,
                                            16,
                                            255,
                                            4096,
                                            0x7fff,
                                            0x7fffffff,
                                            0x80000000,
                                            0xffffffff,
                                            uint64_t{1} << 60,
                                            uint64_t{1} << 61,
                                            INT64_MAX,
                                            uint64_t{1} << 63,
                                            UINT64_MAX};
    const size_t at = Below(input->size() + 1);
    const size_t left = input->size() - at;
    switch (Below(7)) {
      case 0:  // one bit
        if (left != 0) (*input)[at] ^= static_cast<uint8_t>(1 << Below(8));
        break;
      case 1:  // one byte
        if (left != 0) (*input)[at] = static_cast<uint8_t>(random_());
        break;
      case 2: {  // a number, where one may be
        const size_t width = size_t{1} << Below(4);
        const size_t aligned = at / width * width;
        const uint64_t number = kNumbers[Below(std::size(kNumbers))];
        if (aligned + width <= input->size()) std::memcpy(input->data() + aligned, &number, width);
        break;
      }
      case 3:  // the end is missing
        input->resize(at);
        break;
      case 4:  // a part is missing
        input->erase(Iterator(input, at),
                     Iterator(input, at + Below(std::min<size_t>(left, 64) + 1)));
        break;
      case 5: {  // a part is there twice
        const Input part(Iterator(input, at),
                         Iterator(input, at + std::min<size_t>(left, Below(64))));
        input->insert(Iterator(input, Below(input->size() + 1)), part.begin(), part.end());
        break;
      }
      default: {  // another's end
        const Input& other = Any();
        const auto from = std::min(at, other.size());
        input->resize(at);
        input->insert(input->end(), other.begin() + static_cast<ptrdiff_t>(from), other.end());
      }
    }
  }

  static Input::iterator Iterator(Input* input, size_t at) {
    return input->begin() + static_cast<ptrdiff_t>(at);
  }

  const std::vector<Input>& corpus_;
  std::mt19937_64 random_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s <corpus directory or file> [mutations]\n", argv[0]);
    return 2;
  }
  const auto corpus = ReadCorpus(argv[1]);
  const uint64_t mutations = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 20000;
  const char* fixed = std::getenv("MERCURY_TEST_SEED");
  const uint64_t seed =
      fixed != nullptr ? std::strtoull(fixed, nullptr, 0) : uint64_t{std::random_device()()};
  std::printf("seed %llu (repeat with MERCURY_TEST_SEED)\n", static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  if (corpus.empty()) {
    std::fprintf(stderr, "%s: no corpus\n", argv[1]);
    return 2;
  }
  for (const int number : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
    if (__sanitizer_set_death_callback == nullptr || number == SIGABRT) {
      std::signal(number, OnSignal);
    }
  }
  if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(SaveCurrent);
  for (const Input& input : corpus) Run(input);
  Mutator mutator(corpus, seed);
  for (uint64_t i = 0; i < mutations; ++i) Run(mutator.Next());
  std::printf("%zu files and %llu mutations passed\n", corpus.size(),
              static_cast<unsigned long long>(mutations));
  return 0;
}
