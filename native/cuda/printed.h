// The formulas and the steps of optimizers as CUDA text. The build prints those of the package by
// cresset/cuda/printing.py; those that a program has defined itself are printed when they are first used.
#pragma once
#include <string>

namespace cresset::cuda {

// One row of the table that native/generate.py writes, which is sorted by its first three members.
struct PrintedText {
  const char* name;  // of the operator, or of the update
  int which;         // -1 for the formula, else the input whose gradient it is; of an update the number of the variant
  const char* compute;  // "f32"
  const char* text;
};
extern const PrintedText kPrintedForCuda[];
extern const int kPrintedCount;

std::string formula_text(const std::string& operator_name, int which, const char* compute);
std::string update_text(const std::string& name, int flags, const char* compute);

// The printer of a program's own formulas; the bindings plug it in.
extern std::string (*print_formula)(const std::string& operator_name, int which, const char* compute);

}  // namespace cresset::cuda
