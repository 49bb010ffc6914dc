#include "base/instruction_set.h"

namespace cresset {

const char* instruction_set() {
#if defined(__x86_64__) && defined(__GNUC__)
  static const InstructionSet best = detect_instruction_set();
  return best == InstructionSet::avx512 ? "avx512" : best == InstructionSet::avx2 ? "avx2" : "baseline";
#else
  return "baseline";
#endif
}

}  // namespace cresset
