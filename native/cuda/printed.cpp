#include "cuda/printed.h"

#include <algorithm>
#include <tuple>

#include "base/error.h"

namespace cresset::cuda {

std::string (*print_formula)(const std::string&, int, const char*) = nullptr;

namespace {
const char* find(std::string_view name, int which, std::string_view compute) {
  const auto key = [](const PrintedText& p) {
    return std::tuple(std::string_view(p.name), p.which, std::string_view(p.compute));
  };
  const PrintedText* end = kPrintedForCuda + kPrintedCount;
  const std::tuple wanted(name, which, compute);
  const PrintedText* found =
      std::lower_bound(kPrintedForCuda, end, wanted, [&](const PrintedText& p, const auto& w) { return key(p) < w; });
  return found != end && key(*found) == wanted ? found->text : nullptr;
}
}  // namespace

std::string formula_text(const std::string& name, int which, const char* compute) {
  const char* text = find(name, which, compute);
  return text ? text : print_formula(name, which, compute);
}

std::string update_text(const std::string& name, int flags, const char* compute) {
  const char* text = find(name, flags, compute);
  invariant(text, "the step " + name + " is printed");
  return text;
}

}  // namespace cresset::cuda
