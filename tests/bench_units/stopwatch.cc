#include "stopwatch.h"

#include <utility>

namespace mercury::bench {
namespace {

constexpr size_t kNameMax = 80;

// One figure a line, so that reading them takes no more than this.
constexpr char kLine[] = R"( {"name": "%s", "per": "%s", "ns": %.6g, "gb_per_s": %.6g})";
constexpr char kLineRead[] = R"( {"name": "%80[^"]", "per": "%*[^"]", "ns": %lf)";

}  // namespace

Stopwatch::Stopwatch(Wanted wanted) : wanted_(std::move(wanted)) {
  std::printf("%-34s %12s  %-8s %9s %s\n", "unit", "ns", "per", "GB/s",
              wanted_.against.empty() ? "" : "before/now");
  if (wanted_.against.empty()) return;
  std::FILE* file = std::fopen(wanted_.against.c_str(), "r");
  if (file == nullptr) {
    std::perror(wanted_.against.c_str());
    failed_ = true;
    return;
  }
  char line[512];
  while (std::fgets(line, sizeof(line), file) != nullptr) {
    char name[kNameMax + 1];
    double ns = 0;
    if (std::sscanf(line, kLineRead, name, &ns) == 2) before_[name] = ns;
  }
  std::fclose(file);
}

bool Stopwatch::Wants(const std::string& name) const {
  return !failed_ &&
         (wanted_.names.empty() ||
          std::any_of(wanted_.names.begin(), wanted_.names.end(),
                      [&](const auto& part) { return name.find(part) != std::string::npos; }));
}

void Stopwatch::Show(const Figure& figure) {
  std::printf("%-34s %12.4g  %-8s %9.2f", figure.name.c_str(), figure.ns, figure.per.c_str(),
              figure.gb_per_s);
  const auto before = before_.find(figure.name);
  if (before != before_.end()) std::printf(" %7.2f", before->second / figure.ns);
  std::printf("\n");
  std::fflush(stdout);
  figures_.push_back(figure);
}

int Stopwatch::Finish() {
  if (failed_ || figures_.empty()) return 1;
  if (wanted_.json.empty()) return 0;
  std::FILE* file = std::fopen(wanted_.json.c_str(), "w");
  if (file == nullptr) {
    std::perror(wanted_.json.c_str());
    return 1;
  }
  const char* before = "[\n";
  for (const Figure& f : figures_) {
    std::fputs(before, file);
    std::fprintf(file, kLine, f.name.c_str(), f.per.c_str(), f.ns, f.gb_per_s);
    before = ",\n";
  }
  std::fputs("\n]\n", file);
  return std::fclose(file) == 0 ? 0 : 1;
}

}  // namespace mercury::bench
