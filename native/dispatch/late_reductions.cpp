#include "dispatch/late.h"

namespace cresset {
namespace {

struct ReductionEntry {
  Run run;
  LateReduction reduction;
};
std::vector<ReductionEntry>& late_reductions() {
  static auto* the = new std::vector<ReductionEntry>;
  return *the;
}

}  // namespace

bool add_late_reduction(Run run, LateReduction reduction) {
  late_reductions().push_back({run, reduction});
  return true;
}

bool reduce_late(Call& c) {
  if (c.given_out || c.args[0].kind != Kind::tensor) return false;
  for (const ReductionEntry& r : late_reductions())
    if (r.run == c.op.run[0]) {
      const char* const before = std::exchange(settle_reason, c.op.name().c_str());
      const bool done = r.reduction(c);
      settle_reason = before;
      return done;
    }
  return false;
}

}  // namespace cresset
