// What the generated pointwise kernels look like to the rest of the core.
//
// A Loop runs one formula over n contiguous elements. Strides, broadcasting, dtype conversion and threads are the
// business of the caller (tensor/blocks.h), so there is one loop per formula and compute type. Half types compute in
// f32, the small integers in i64, but for sums and products.
#pragma once
#include <cstdint>

namespace cresset {

// The type a loop computes in.
enum class Compute : uint8_t { f32, f64, i64, u64, b8, c64, c128, count };
inline constexpr int kComputes = static_cast<int>(Compute::count);

// A scalar attribute of an operator (alpha, beta, threshold): the loop reads the member that fits its compute type.
struct ScalarAttribute {
  double real, imag;
  int64_t integer;
};

// p[0] is the output, p[1...] the inputs, each n contiguous elements; the output may be one of the inputs.
using Loop = void (*)(char* const* p, const ScalarAttribute* s, int64_t n);

// How the dtypes of the inputs decide the compute type and the result's dtype.
enum class Promotion : uint8_t {
  same,      // the promoted dtype of the inputs
  to_float,  // integers and bool become the default floating dtype
  to_bool,   // computes in the promoted dtype, gives bool
  to_real,   // like same; a complex input gives its real dtype (abs, real, imag, angle); integers without a loop become
             // the default dtype
};

inline constexpr int kMaxPointwiseInputs = 4;
inline constexpr int kMaxOtherNodeNames = 2;
inline constexpr uint8_t kUsesOutput = 0x80;

// What a call must be like beside what the formula needs, in the words of @pointwise(requires=...).
enum Requirement : uint8_t {
  kOneDtype = 1,   // "one dtype": all tensors have the dtype of the first
  kFloating = 2,   // "floating": the first is not of integers
  kBound = 4,      // "a bound": of the inputs that may be missing one is there
  kCondition = 8,  // "a condition": the first is bool, or uint8, as it once was
  kNaturalPower =
      16,  // "a natural power": integers have no negative one; said of the second input where it is a number
  kFittingFactor =
      32,  // "a fitting factor": the first attribute is whole where the result is, and bool only where that is
  kRealInPlace = 64,  // "real in place": complex numbers have no form in place
  kFraction = 128,    // "a fraction": the second and the third, which are divided, are not both whole
};

struct PointwiseLoops {
  Loop forward[kComputes];                        // null: not defined for that type
  Loop numbers[kComputes];                        // forward, but of all inputs except the first one element is read;
                                                  // null: no such loop
  Loop narrow[3];                                 // forward of integers of 1, 2 and 4 bytes as they lie, where their
                                                  // low bits are all that counts; null: computed in i64
  Loop backward[kMaxPointwiseInputs][kComputes];  // grad of input i: p[0] result, p[1] grad, p[2...] what `uses` names,
                                                  // in input order, the output last
};

// What autograd calls a call in which these inputs are numbers (bit i: input i).
struct NodeName {
  uint8_t numbers;
  const char* name;  // null: there is none
};

struct PointwiseDefinition {
  const char* name;       // "sigmoid"
  const char* signature;  // "sigmoid(Tensor input) -> Tensor"
  const char* doc;
  const char* inputs;  // one letter an input: 'T' takes the compute type, 'b' is bool whatever the others are; the
                       // others are like 'T', but 'l' and 'h' may be missing, which stands for the lowest or highest
                       // value, 'd' is a divisor, which must not be zero when the computation is in integers, and 'n'
                       // is a number: if all inputs are bool, they count as int64
  uint8_t input_count, scalar_count;  // scalar attributes follow the inputs in the signature
  Promotion promotion;
  bool inplace, method;  // has the forms name_ and Tensor.name
  bool differentiable;
  uint8_t uses[kMaxPointwiseInputs];  // bit i: backward of this input reads input i; kUsesOutput: the output
  bool has_gradient[kMaxPointwiseInputs];
  double missing[kMaxPointwiseInputs];  // what an attribute that is None stands for: nan, or an infinity for the
                                        // largest number of that sign in the input's dtype
  const char* node_name;                // what autograd calls it; null: made from the name (SigmoidBackward0)
  NodeName other_node_names[kMaxOtherNodeNames];  // the first that holds comes before it
  uint8_t requirements;                           // bits of Requirement
  uint8_t exact;             // bit i: a number as input i keeps its precision among half ones; 0x80: kOwnDtype
  const char* refuses_bool;  // what to say to bool inputs; null: they are welcome
};

// Generated: the definitions, and for each instruction-set level the loops in the same order.
extern const PointwiseDefinition kPointwiseDefinitions[];
extern const int kPointwiseCount;
extern const PointwiseLoops kPointwiseLoops_baseline[];
extern const PointwiseLoops kPointwiseLoops_avx2[];
extern const PointwiseLoops kPointwiseLoops_avx512[];

}  // namespace cresset
