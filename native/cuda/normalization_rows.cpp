// Layer and RMS normalization and their gradients on the device; and as part of a group of late values, where what they
// read and write are expressions (Note [Groups as kernels]).
#include <bit>
#include <limits>

#include "cuda/fused.h"
#include "cuda/normalization.h"
#include "cuda/rows.h"
#include "dispatch/late.h"
#include "dispatch/on_host.h"
#include "dispatch/registration.h"

namespace cresset::cuda {
namespace {

const std::initializer_list<const char*> kMacros = {"ELEMENT", "PARAMETER", "STATISTIC", "CENTERED",
                                                    "KERNEL",  "THREADS",   "VECTOR",    "PER"};
// Products and sums are not contracted: in a group they would be contracted otherwise.
const KernelFamily kRows("normalization.cuh", "normalize_rows", kMacros);
const KernelFamily kLong("normalization.cuh", "normalize_long", kMacros);
const KernelFamily kGradientRows("normalization.cuh", "normalize_gradient_rows", kMacros);
const KernelFamily kGradientLong("normalization.cuh", "normalize_gradient_long", kMacros);
const KernelFamily kParameters("normalization.cuh", "normalize_parameters", kMacros);
const KernelFamily kParametersFinish("normalization.cuh", "normalize_parameters_finish", kMacros);

int64_t row_length(DimsView shape) {
  int64_t n = 1;
  for (const int64_t s : shape) n *= s;
  return n;
}
uint64_t word(const void* p) { return reinterpret_cast<uint64_t>(p); }
// An address as a plan sees it: what is still to be computed will lie at a whole vector.
const void* address_in_plan(const Tensor& t) { return pending_of(*t.storage()) ? nullptr : t.bytes(); }

// What the kernels of normalization.cuh are compiled for.
struct Variant {
  Dtype type, parameter, statistic;
  bool centered;
  std::string macros(int kernel, int threads, int vector, int per) const {
    return join("#define ELEMENT dtype_", tag_of(type), "\n#define PARAMETER dtype_", tag_of(parameter),
                "\n#define STATISTIC dtype_", tag_of(statistic), "\n#define CENTERED ", static_cast<int>(centered),
                "\n#define KERNEL ", kernel, "\n#define THREADS ", threads, "\n#define VECTOR ", vector,
                "\n#define PER ", per, "\n");
  }
  FusedRows::Form form(const char* entry, int kernel, int64_t n, const RowPlan& plan) const {
    return {entry,       "normalization.cuh", macros(kernel, plan.threads, plan.vector, plan.per), n, plan.vector,
            plan.blocks, plan.block};
  }
};

// ---------------------------------------------------------------- forward

class Normalization final : public FusedRows {
 public:
  // `x` is where the input lies.
  Normalization(const Call& c, const void* x, const Parameters& parameters, Dtype statistic, bool centered)
      : variant_{c.tensor(0).dtype(), parameters.dtype, statistic, centered},
        parameters_(parameters),
        device_(c.tensor(0).device()),
        n_(row_length(c.integers(1))),
        rows_(c.tensor(0).numel() / n_),
        eps_(c.real(centered ? 4 : 3)),
        plan_(rows_, n_, size_of(variant_.type), variant_.type == Dtype::f64 ? 16 : 32,
              {x, address_of(parameters.weight), address_of(parameters.bias)}) {
    note_reads({parameters.weight, parameters.bias});
  }

  // The sides are rstd and, where it is centered, the mean.
  void run(char* y, char* const* inputs, char* const* sides) override {
    const Place place(device_);
    char *const x = inputs[0], *rstd = sides[0], *mean = variant_.centered ? sides[1] : nullptr;
    const Variant& v = variant_;
    if (plan_.in_registers)
      kRows.launch(place, {v.type, v.parameter, v.statistic, v.centered, 0, plan_.threads, plan_.vector, plan_.per},
                   plan_.blocks, plan_.block, 0, x, y, mean, rstd, address_of(parameters_.weight),
                   address_of(parameters_.bias), rows_, static_cast<int32_t>(n_), eps_);
    else
      kLong.launch(place, {v.type, v.parameter, v.statistic, v.centered, 1, plan_.threads, plan_.vector, 1},
                   plan_.blocks, plan_.block, 0, x, y, mean, rstd, address_of(parameters_.weight),
                   address_of(parameters_.bias), rows_, n_, eps_);
  }
  bool is_in_registers() const { return plan_.in_registers; }

  Form form() const override { return variant_.form("normalize_rows", 0, n_, plan_); }
  std::vector<uint64_t> words(char* const* sides) const override {
    return {word(sides[1]),
            word(sides[0]),
            word(address_of(parameters_.weight)),
            word(address_of(parameters_.bias)),
            static_cast<uint64_t>(rows_),
            static_cast<uint64_t>(n_),
            std::bit_cast<uint64_t>(eps_)};
  }

 private:
  const Variant variant_;
  const Parameters parameters_;
  const Device device_;
  const int64_t n_, rows_;
  const double eps_;
  const RowPlan plan_;
};

template <bool kCentered>
void run_normalize(Call& c) {
  const Tensor t = c.tensor(0), rstd = c.out(kCentered ? 2 : 1);
  const Parameters p(c, 2, kCentered ? 3 : -1, t.dtype());
  if (!has_kernel(t.dtype()) || !has_kernel(p.dtype)) return execute_on_host(c, t.device());
  if (t.numel() == 0) {
    if (kCentered) fill(c.out(1), Scalar(0));
    return fill(rstd, Scalar(std::numeric_limits<double>::quiet_NaN()));
  }
  const Tensor x = contiguous_on_device(t);
  char *const inputs[] = {x.bytes()}, *const sides[] = {rstd.bytes(), kCentered ? c.out(1).bytes() : nullptr};
  Normalization(c, x.bytes(), p, rstd.dtype(), kCentered).run(c.out(0).bytes(), inputs, sides);
}

template <bool kCentered>
bool normalize_late(Call& c) {
  const Tensor t = c.tensor(0);
  if (c.given_out || !t.is_contiguous() || t.numel() == 0 || !has_kernel(t.dtype())) return false;
  for (const int i : {2, 3})
    if (i < (kCentered ? 4 : 3) && c.has(i) &&
        (!(c.tensor(i).device() == t.device()) || !has_kernel(c.tensor(i).dtype())))
      return false;
  c.op.infer(c);
  const auto promised = std::move(c.promised);
  c.promised.clear();
  if (promised[0].dtype != t.dtype()) return false;
  const TensorInfo &rstd = promised[kCentered ? 2 : 1], &mean = promised[1];
  const Parameters p(c, 2, kCentered ? 3 : -1, t.dtype());
  RefPtr<Normalization> work(new Normalization(c, address_in_plan(t), p, rstd.dtype, kCentered));
  if (!work->is_in_registers()) return false;
  const TensorInfo infos[] = {rstd, mean};
  Tensor sides[2];
  Tensor y = rows_late(c.op, {&t, 1}, promised[0], RefPtr<RowWork>(work.get()), {infos, kCentered ? 2u : 1u}, sides);
  if (!y.defined()) return false;
  c.give(y);
  if (kCentered) c.give(sides[1]);
  c.give(sides[0]);
  return true;
}

// ---------------------------------------------------------------- backward

// The gradient of the input: (grad, input, normalized_shape, mean?, rstd, weight?, parameters)
class Gradient final : public FusedRows {
 public:
  Gradient(const Call& c, const Parameters& parameters, const Tensor& mean, const Tensor& rstd, const void* grad,
           const void* input)
      : variant_{c.tensor(1).dtype(), parameters.dtype, rstd.dtype(), mean.defined()},
        weight_(parameters.weight),
        mean_(mean),
        rstd_(rstd),
        device_(c.tensor(1).device()),
        n_(row_length(c.integers(2))),
        rows_(c.tensor(1).numel() / n_),
        plan_(rows_, n_, size_of(variant_.type), static_cast<int>(64 / size_of(variant_.type)),
              {grad, input, address_of(weight_)}),
        vector_(RowPlan(rows_, n_, size_of(variant_.type), 1 << 20, {grad, input}).vector) {
    note_reads({weight_, mean_, rstd_});
  }

  void run(char* dx, char* const* inputs, char* const*) override {
    const Place place(device_);
    const Variant& v = variant_;
    if (plan_.in_registers)
      kGradientRows.launch(place,
                           {v.type, v.parameter, v.statistic, v.centered, 2, plan_.threads, plan_.vector, plan_.per},
                           plan_.blocks, plan_.block, 0, inputs[0], inputs[1], address_of(mean_), rstd_.bytes(),
                           address_of(weight_), dx, rows_, static_cast<int32_t>(n_));
    else
      kGradientLong.launch(place, {v.type, v.parameter, v.statistic, v.centered, 3, plan_.threads, plan_.vector, 1},
                           plan_.blocks, plan_.block, 0, inputs[0], inputs[1], address_of(mean_), rstd_.bytes(),
                           address_of(weight_), dx, rows_, n_);
  }
  bool is_in_registers() const { return plan_.in_registers; }

  Form form() const override { return variant_.form("normalize_gradient_rows", 2, n_, plan_); }
  std::vector<uint64_t> words(char* const*) const override {
    return {word(address_of(mean_)), word(rstd_.bytes()), word(address_of(weight_)), static_cast<uint64_t>(rows_),
            static_cast<uint64_t>(n_)};
  }

  // The gradients of weight and bias, in the dtype of `dw`. `of_value` is the late value of the gradient of the input,
  // whose inputs are read; null: they lie at `inputs`. False: the kernel is not there yet.
  bool run_parameters(const Tensor& dw, const Tensor& db, char* const* inputs, LateValue* of_value) const {
    const Place place(device_);
    const Variant& v = variant_;
    constexpr int64_t kAcross = 32, kDown = 8, kStep = kDown * 4;  // as in normalization.cuh
    const int64_t tiles = divide_up(n_, kAcross * vector_), wanted = 4 * properties(place.device).multiprocessors;
    const int64_t chunk = divide_up(rows_,
                                    std::clamp<int64_t>(divide_up(wanted, tiles), 1, divide_up(rows_, kStep)) * kStep) *
                          kStep,
                  splits = divide_up(rows_, chunk);
    const Tensor partial = scratch(splits * n_ * 2, computed_dtype(v.type), device_);
    if (of_value) {
      const Form form{"normalize_parameters", "normalization.cuh", v.macros(4, 1, vector_, 1), n_, vector_, 0, 0};
      const uint64_t words[] = {word(address_of(mean_)),      word(rstd_.bytes()),       word(partial.bytes()),
                                static_cast<uint64_t>(rows_), static_cast<uint64_t>(n_), static_cast<uint64_t>(chunk)};
      if (!launch_inputs(*of_value, form, words, place, {tiles, splits}, kAcross * kDown)) return false;
    } else {
      kParameters.launch(place, {v.type, v.parameter, v.statistic, v.centered, 4, 1, vector_, 1}, {tiles, splits},
                         kAcross * kDown, 0, inputs[0], inputs[1], address_of(mean_), rstd_.bytes(), partial.bytes(),
                         rows_, n_, chunk);
    }
    kParametersFinish.launch(place, {v.type, v.parameter, dw.dtype(), false, 5, 1, 1, 1}, divide_up(n_, kAcross),
                             kAcross * kDown, 0, partial.bytes(), dw.bytes(), db.bytes(), splits, n_);
    return true;
  }

 private:
  const Variant variant_;
  const Tensor weight_, mean_, rstd_;
  const Device device_;
  const int64_t n_, rows_;
  const RowPlan plan_;
  const int vector_;
};

void run_normalize_backward(Call& c) {
  const Tensor t = c.tensor(1);
  const Parameters p(c, 5, -1, t.dtype());
  const Dtype type = t.dtype(), kept = c.tensor(4).dtype();
  if (t.numel() == 0) return fill_parameters(c);
  if (!has_kernel(type) || !has_kernel(p.dtype) || !has_kernel(kept)) return execute_on_host(c, t.device());
  const Tensor g = contiguous_on_device(convert(c.tensor(0), type)), x = contiguous_on_device(t),
               rstd = contiguous_on_device(c.tensor(4)),
               mean = c.has(3) ? contiguous_on_device(convert(c.tensor(3), kept)) : Tensor();
  const Gradient gradient(c, p, mean, rstd, g.bytes(), x.bytes());
  char* const inputs[] = {g.bytes(), x.bytes()};
  const_cast<Gradient&>(gradient).run(c.out(0).bytes(), inputs, nullptr);
  if (c.boolean(6)) gradient.run_parameters(c.out(1), c.out(2), inputs, nullptr);
}

bool normalize_backward_late(Call& c) {
  const Tensor g = c.tensor(0), t = c.tensor(1);
  if (c.given_out || t.numel() == 0 || !has_kernel(t.dtype()) || g.dtype() != t.dtype() || !t.is_contiguous() ||
      !g.is_contiguous() || !(g.sizes() == t.sizes()) || !(g.device() == t.device()))
    return false;
  for (const int i : {3, 4, 5})
    if (c.has(i) &&
        (!(c.tensor(i).device() == t.device()) || !c.tensor(i).is_contiguous() || !has_kernel(c.tensor(i).dtype())))
      return false;
  if (c.has(3) && c.tensor(3).dtype() != c.tensor(4).dtype()) return false;
  const auto settle = [](const Tensor& s) {
    if (const RefPtr<Pending> p = pending_of(*s.storage())) p->settle();
  };
  for (const int i : {3, 4})
    if (c.has(i)) settle(c.tensor(i));
  settle(t);
  c.op.infer(c);
  const auto promised = std::move(c.promised);
  c.promised.clear();
  const Parameters p(c, 5, -1, t.dtype());
  const RefPtr<Gradient> work(
      new Gradient(c, p, c.has(3) ? c.tensor(3) : Tensor(), c.tensor(4), address_in_plan(g), t.bytes()));
  if (!work->is_in_registers()) return false;
  const Tensor inputs[] = {g, t};
  const Tensor dx = rows_late(c.op, inputs, promised[0], RefPtr<RowWork>(work.get()), {}, {});
  if (!dx.defined()) return false;
  c.give(dx);
  for (const int i : {1, 2}) c.give(empty(promised[static_cast<int64_t>(i)]));
  if (!c.boolean(6)) return true;
  const RefPtr<Pending> value = pending_of(*dx.storage());
  const bool waits = static_cast<bool>(pending_of(*g.storage()));
  if (waits && value && work->run_parameters(c.outputs[1], c.outputs[2], nullptr, static_cast<LateValue*>(value.get())))
    return true;
  char* const memory[] = {g.bytes(), t.bytes()};
  work->run_parameters(c.outputs[1], c.outputs[2], memory, nullptr);
  return true;
}

}  // namespace

REGISTER_KERNELS(normalization_rows) {
  const auto set = [&](const char* name, Run run) { r.set_kernel(name, DeviceType::cuda, run); };
  set("native_layer_norm", run_normalize<true>);
  set("_rms_norm", run_normalize<false>);
  set("_normalize_backward", run_normalize_backward);
  let_compute_late("native_layer_norm", DeviceType::cuda, normalize_late<true>);
  let_compute_late("_rms_norm", DeviceType::cuda, normalize_late<false>);
  let_compute_late("_normalize_backward", DeviceType::cuda, normalize_backward_late);
}

}  // namespace cresset::cuda
