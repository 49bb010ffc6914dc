#include "dispatch/printed_groups.h"

#include <algorithm>
#include <memory>
#include <unordered_map>

namespace cresset {

void (*print_group)(const std::string& key) = nullptr;
PrintedStatistics printed_statistics;

void PrintedGroup::note(int64_t nanoseconds, int64_t elements, bool printed) {
  const double each = static_cast<double>(nanoseconds) / static_cast<double>(std::max<int64_t>(elements, 1));
  if (printed) {
    ++printed_statistics.runs;
    trials_ = std::min(trials_ + 1, kTrials);
    printed_ = std::min(printed_, each);
    return;
  }
  listed_ = std::min(listed_, each);
  spent_ += nanoseconds;
  if (state_ != State::counting || spent_ < kWorthwhile || !print_group) return;
  state_ = State::asked;
  ++printed_statistics.asked;
  print_group(key_);
}

void PrintedGroup::install(Loop function) {
  function_ = function;
  state_ = function ? State::ready : State::refused;
  ++(function ? printed_statistics.ready : printed_statistics.refused);
}

// The interpreter's lock protects it, as it does the late values.
PrintedGroup& printed_group(const std::string& key) {
  static auto& groups = *new std::unordered_map<std::string, std::unique_ptr<PrintedGroup>>;
  std::unique_ptr<PrintedGroup>& group = groups[key];
  if (!group) group = std::make_unique<PrintedGroup>(key);
  return *group;
}

}  // namespace cresset
