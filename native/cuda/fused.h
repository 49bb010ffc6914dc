// Groups of late values as one kernel each.
#pragma once
#include <string>
#include <vector>

#include "cuda/launch.h"
#include "dispatch/late.h"

namespace cresset::cuda {

// An operator on rows whose kernel file can read and write by expressions: with FUSED defined, its entry takes a Plan
// (Note [Groups as kernels]), reads its inputs by row_input_0(plan, i), row_input_1(plan, i), ..., writes by
// row_output(plan, i, vector), and finds its other arguments in plan.extra.
class FusedRows : public RowWork {
 public:
  struct Form {
    const char *entry, *file;
    std::string macros;
    int64_t n;   // elements of a row
    int vector;  // that are read at once
    int64_t blocks, block;
  };
  virtual Form form() const = 0;
  virtual std::vector<uint64_t> words(char* const* sides) const = 0;

 protected:
  void note_reads(std::initializer_list<Tensor> tensors) {
    for (const Tensor& t : tensors)
      if (t.defined()) reads.push_back(t.storage());
  }
};

// Launches a kernel that reads what `value`, an operator on rows, reads, and computes that by itself where it is late.
// False: the kernel is not there yet.
bool launch_inputs(LateValue& value, const FusedRows::Form& form, std::span<const uint64_t> words, const Place& place,
                   Grid grid, Grid block);

// Kernels of groups: asked for, in use, and groups that were run by eager's kernels.
struct FusedStatistics {
  int64_t asked = 0, launched = 0, unfused = 0, failed = 0;
};
FusedStatistics fused_statistics();
// Waits until the kernels that were asked for are compiled.
void finish_fused_kernels();

}  // namespace cresset::cuda
