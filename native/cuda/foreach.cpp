#include "cuda/foreach.h"

#include <algorithm>

#include "cuda/many.h"
#include "cuda/printed.h"

namespace cresset::cuda {
namespace {

bool is_real_float(Dtype d) { return d == Dtype::f32 || d == Dtype::f64 || d == Dtype::f16 || d == Dtype::bf16; }
bool lies_densely(const Tensor& t) { return t.is_contiguous() || is_dense(t.sizes(), t.strides()); }

const char* compute_name(Dtype d) { return d == Dtype::f64 ? "double" : "float"; }

// What the text of a kernel depends on.
struct Formula {
  const Operator& op;
  Dtype dtype, shared;  // of the lists, and of the one element for all
  std::string kinds;    // of the inputs: t, n, s
  size_t attributes;
  bool in_place;
};

// The operator's formula as an update: list 0 is the result, which may be the first input too; the numbers come first
// in a row, then the attributes.
std::string text_of(const void* context) {
  const Formula& f = *static_cast<const Formula*>(context);
  std::string members, prepared, parameters, values,
      each = join(" X(0, dtype_", tag_of(f.dtype), ", ", f.in_place ? "true" : "false", ", true)"), arguments = ", x0";
  int list = 1, number = 0;
  for (size_t i = 0; i < f.kinds.size(); ++i) {
    if (f.kinds[i] == 't') {
      const bool is_result = i == 0 && f.in_place;
      values += join(is_result ? "x0" : join("x", list), ", ");
      if (is_result) continue;
      parameters += join(", const COMPUTE& x", list);
      each += join(" X(", list, ", dtype_", tag_of(f.dtype), ", true, false)");
      arguments += join(", x", list++);
    } else {
      members += join(" COMPUTE n", i, ";");
      prepared += f.kinds[i] == 'n' ? join(" constants.n", i, " = static_cast<COMPUTE>(numbers[", number++, "]);")
                                    : join(" constants.n", i, " = convert<COMPUTE>(*reinterpret_cast<const dtype_",
                                           tag_of(f.shared), "*>(scale));");
      values += join("constants.n", i, ", ");
    }
  }
  for (size_t a = 0; a < f.attributes; ++a, ++number)
    prepared += join(" constants.attributes[", a, "] = Attribute{numbers[", number,
                     "], 0.0, static_cast<int64_t>(numbers[", number, "])};");
  return join(formula_text(f.op.name(), -1, f.dtype == Dtype::f64 ? "f64" : "f32"),
              "struct Constants { Attribute attributes[", std::max<size_t>(f.attributes, 1), "];", members, " };\n",
              "__device__ __forceinline__ void prepare(Constants& constants, const double* numbers, const float* "
              "scale, float*) {",
              prepared, " }\n", "__device__ __forceinline__ void update(const Constants& constants, COMPUTE& x0",
              parameters, ") { x0 = formula(", values, "constants.attributes); }\n", "#define EACH_TENSOR(X)", each,
              "\n#define UPDATE update(constants", arguments, ")\n#define PREPARES_FROM_TABLE\n");
}

// Two dtypes, or one and itself when zeros are written.
struct Copy {
  Dtype to, from;
  bool zero;
};
std::string copy_text(const void* context) {
  const Copy& c = *static_cast<const Copy*>(context);
  const std::string source = c.zero ? std::string() : join(" X(1, dtype_", tag_of(c.from), ", true, false)");
  return join(
      "#include \"math.cuh\"\nstruct Constants {};\n__device__ __forceinline__ void prepare(Constants&, const double*) "
      "{}\n",
      "#define EACH_TENSOR(X) X(0, dtype_", tag_of(c.to), ", false, true)", source,
      "\n#define UPDATE x0 = ", c.zero ? "COMPUTE(0)" : "x1", "\n");
}

std::string unscale_text(const void* context) {
  return join("#include \"math.cuh\"\nstruct Constants { float factor; float* found; };\n",
              "__device__ __forceinline__ void prepare(Constants& constants, const double*, const float* scale, float* "
              "found) { constants.factor = *scale; constants.found = found; }\n",
              "__device__ __forceinline__ void update(const Constants& constants, COMPUTE& x0) {\n  if (!isfinite(x0)) "
              "*constants.found = 1.0f;\n  x0 = x0 * constants.factor;\n}\n",
              "#define EACH_TENSOR(X) X(0, dtype_", tag_of(*static_cast<const Dtype*>(context)),
              ", true, true)\n#define UPDATE update(constants, x0)\n#define PREPARES_FROM_TABLE\n");
}

}  // namespace

bool can_foreach(const Operator& op, const std::vector<ForeachInput>& inputs) {
  if (!op.pointwise || op.pointwise->promotion == Promotion::to_bool ||
      static_cast<size_t>(op.pointwise->input_count) != inputs.size() || inputs.empty() ||
      inputs[0].kind != ForeachInput::tensors || inputs[0].list.empty())
    return false;
  const std::vector<Tensor>& first = inputs[0].list;
  const Dtype d = first[0].dtype();
  const Device device = first[0].device();
  if (!is_real_float(d) || device.type != DeviceType::cuda) return false;
  for (const ForeachInput& input : inputs) {
    if (input.kind == ForeachInput::numbers) continue;
    if (input.kind == ForeachInput::shared) {
      if (!(input.list[0].device() == device) || !is_real_float(input.list[0].dtype()) ||
          (d != Dtype::f64 && input.list[0].dtype() == Dtype::f64))
        return false;
      continue;
    }
    for (size_t i = 0; i < first.size(); ++i) {
      const Tensor& t = input.list[i];
      if (t.dtype() != d || !(t.device() == device) || !(t.sizes() == first[i].sizes()) || !lies_densely(t) ||
          !(t.strides() == first[i].strides() || (t.is_contiguous() && first[i].is_contiguous())))
        return false;
    }
  }
  return true;
}

void launch_foreach(const Operator& op, const std::vector<ForeachInput>& inputs,
                    const std::vector<std::vector<double>>& attributes, const std::vector<Tensor>& results) {
  const std::vector<Tensor>& first = inputs[0].list;
  Formula formula{op, first[0].dtype(), Dtype::f32, {}, attributes.size(), results[0].get() == first[0].get()};
  ManyProgram program;
  std::vector<const std::vector<Tensor>*> lists = {&results};
  std::vector<const std::vector<double>*> numbers;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ForeachInput& input = inputs[i];
    formula.kinds += "tns"[input.kind];
    if (input.kind == ForeachInput::numbers)
      numbers.push_back(&input.values);
    else if (input.kind == ForeachInput::shared)
      program.scale = input.list[0].bytes(), formula.shared = input.list[0].dtype();
    else if (i || !formula.in_place)
      lists.push_back(&input.list);
  }
  for (const auto& a : attributes) numbers.push_back(&a);
  program.lists = static_cast<int>(lists.size());
  program.numbers = std::max(static_cast<int>(numbers.size()), 1);
  program.vector = static_cast<int>(16 / size_of(formula.dtype));
  program.key = join("foreach ", op.name(), ' ', formula.kinds, static_cast<int>(formula.dtype), '.',
                     static_cast<int>(formula.shared), formula.in_place);
  program.text = text_of;
  program.context = &formula;
  program.options = {join("-DCOMPUTE=", compute_name(formula.dtype))};
  std::vector<double> rows(first.size() * static_cast<size_t>(program.numbers));
  std::vector<ManyTarget> targets(first.size());
  for (size_t t = 0; t < first.size(); ++t) {
    double* const row = rows.data() + t * static_cast<size_t>(program.numbers);
    for (size_t n = 0; n < numbers.size(); ++n) row[n] = (*numbers[n])[t];
    for (size_t l = 0; l < lists.size(); ++l) targets[t].tensors[l] = (*lists[l])[t].bytes();
    targets[t].count = first[t].numel();
    targets[t].numbers = row;
  }
  launch_many(program, Place(first[0].device()), targets, "many");
}

void launch_copies(const std::vector<Tensor>& to, const std::vector<Tensor>& from) {
  const Copy copy{to[0].dtype(), from.empty() ? to[0].dtype() : from[0].dtype(), from.empty()};
  ManyProgram program;
  program.lists = copy.zero ? 1 : 2;
  program.numbers = 1;
  program.vector = static_cast<int>(16 / std::max(size_of(copy.to), size_of(copy.from)));
  program.key = join("copy ", static_cast<int>(copy.to), '.', static_cast<int>(copy.from), copy.zero);
  program.text = copy_text;
  program.context = &copy;
  program.options = {join("-DCOMPUTE=", compute_name(copy.to == Dtype::f64 ? copy.to : copy.from))};
  static constexpr double nothing[1] = {0};
  std::vector<ManyTarget> targets(to.size());
  for (size_t t = 0; t < to.size(); ++t) {
    targets[t].tensors[0] = to[t].bytes();
    if (!copy.zero) targets[t].tensors[1] = from[t].bytes();
    targets[t].count = to[t].numel();
    targets[t].numbers = nothing;
  }
  launch_many(program, Place(to[0].device()), targets, "many");
}

Tensor launch_norms(const std::vector<Tensor>& tensors, int order) {
  const Dtype d = tensors[0].dtype();
  const Device device = tensors[0].device();
  const Place place(device);
  ManyProgram program;
  program.lists = 1;
  program.numbers = 1;
  program.vector = static_cast<int>(16 / size_of(d));
  program.file = "many_norm.cuh";
  program.key = join("norm ", order, static_cast<int>(d));
  program.options = {join("-DELEMENT=dtype_", tag_of(d)), join("-DORDER=", order), "--fmad=true"};
  static constexpr double nothing[1] = {0};
  std::vector<Tensor> dense;
  std::vector<ManyTarget> targets(tensors.size());
  for (size_t t = 0; t < tensors.size(); ++t) {
    const Tensor packed = lies_densely(tensors[t]) ? tensors[t] : dense.emplace_back(contiguous(tensors[t]));
    targets[t].tensors[0] = packed.bytes();
    targets[t].count = packed.numel();
    targets[t].numbers = nothing;
  }
  const Tensor norms = empty(Dims{static_cast<int64_t>(tensors.size())}, d, device);
  const Dtype real = d == Dtype::f64 ? Dtype::f64 : Dtype::f32;
  const Tensor parts = empty(Dims{std::max<int64_t>(count_blocks(program, place, targets), 1)}, real, device);
  program.scale = norms.bytes();
  program.scale_step = size_of(d);
  program.found = parts.bytes();
  program.found_step = size_of(real);
  program.after_threads = 32;
  launch_many(program, place, targets, "norm_parts", "norm_whole");
  return norms;
}

void launch_unscale(const std::vector<Tensor>& tensors, const Tensor& factor, const Tensor& found) {
  const Dtype d = tensors[0].dtype();
  ManyProgram program;
  program.lists = 1;
  program.numbers = 1;
  program.vector = static_cast<int>(16 / size_of(d));
  program.scale = factor.bytes();
  program.found = found.bytes();
  program.key = join("unscale ", static_cast<int>(d));
  program.text = unscale_text;
  program.context = &d;
  program.options = {join("-DCOMPUTE=", compute_name(d))};
  static constexpr double nothing[1] = {0};
  std::vector<ManyTarget> targets(tensors.size());
  for (size_t t = 0; t < tensors.size(); ++t) {
    targets[t].tensors[0] = tensors[t].bytes();
    targets[t].count = tensors[t].numel();
    targets[t].numbers = nothing;
  }
  launch_many(program, Place(tensors[0].device()), targets, "many");
}

void launch_update_scale(const Tensor& scale, const Tensor& tracker, const Tensor& found, double growth, double backoff,
                         int interval) {
  static const auto* kernel = new KernelFamily("scaling.cuh", "update_scale", {});
  const Place place(scale.device());
  kernel->launch(place, {}, 1, 1, 0, scale.bytes(), tracker.bytes(), found.bytes(), growth, backoff,
                 static_cast<int32_t>(interval));
}

}  // namespace cresset::cuda
