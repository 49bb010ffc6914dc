// Random tensors and fills on the device: which words an operator takes, and the launches. The distributions are in
// cresset/cuda/kernels/random.cuh.
//
// Values that the CPU refuses after looking at them (a probability above one in bernoulli, a negative standard
// deviation in a tensor) are not looked at here, since that would wait for the device: probabilities count as clamped
// to [0, 1], a deviation as given.
#include "cuda/random.h"

#include <bit>
#include <cmath>
#include <limits>

#include "cuda/launch.h"
#include "dispatch/on_host.h"
#include "dispatch/registration.h"
#include "ops/random.h"

namespace cresset::cuda {

Philox::Start take_words(const Call& c, int at, Device device, int64_t words) {
  Generator& g = at >= 0 && c.has(at) ? *c.args[at].generator_ : default_generator(device);
  check(g.device.type == DeviceType::cuda, c.op.name(), ": Expected a 'cuda' device type for generator but found '",
        name_of(g.device.type), "'");
  return static_cast<Philox&>(g).take(static_cast<uint64_t>(words));
}

void begin_random_capture(int device, uint64_t place) {
  static_cast<Philox&>(default_generator(Device{DeviceType::cuda, static_cast<int8_t>(device)}))
      .begin_capture(reinterpret_cast<const void*>(place));
}
uint64_t end_random_capture(int device) {
  return static_cast<Philox&>(default_generator(Device{DeviceType::cuda, static_cast<int8_t>(device)})).end_capture();
}
void start_random_replay(int device, uint64_t place, uint64_t words) {
  if (words == 0) return;
  const Philox::Start start =
      static_cast<Philox&>(default_generator(Device{DeviceType::cuda, static_cast<int8_t>(device)})).take(words);
  const StreamHandle stream = enter(device);
  // Four fills carry their values with them; a copy would need host memory that outlives it.
  for (int i = 0; i < 2; ++i) {
    const uint64_t word = i ? start.offset : start.seed;
    CRESSET_DRIVER(cuMemsetD32Async(place + static_cast<uint64_t>(8 * i), static_cast<unsigned>(word), 1, stream));
    CRESSET_DRIVER(
        cuMemsetD32Async(place + static_cast<uint64_t>(8 * i + 4), static_cast<unsigned>(word >> 32), 1, stream));
  }
}

namespace {

constexpr int kThreads = 256;
enum Kind {
  uniform,
  normal,
  log_normal,
  cauchy,
  exponential,
  geometric,
  bernoulli,
  integers,
  wide_integers
};  // the order of random.cuh

// The same as in random.cuh.
struct Arguments {
  double a = 0, b = 0;
  uint64_t range = 0;
  int64_t base = 0;
};

const KernelFamily& fill_kernels() {
  static const auto* the = new KernelFamily("random.cuh", "fill", {"ELEMENT", "KIND"});
  return *the;
}

bool lies_densely(const Tensor& t) { return t.is_contiguous() || is_dense(t.sizes(), t.strides()); }

// Fills `t`, of any strides, in the order of its memory.
void fill_random(const Call& c, const Tensor& t, Kind kind, const Arguments& arguments, int generator) {
  const int64_t count = t.numel();
  if (count == 0) return;
  if (!lies_densely(t)) {
    const Tensor buffer = empty_like_layout(t, t.dtype());
    fill_random(c, buffer, kind, arguments, generator);
    return copy_into(t, buffer);
  }
  const Dtype d = t.dtype();
  const int64_t words = kind == bernoulli || kind == integers                                                ? 1
                        : kind == wide_integers || d == Dtype::f64 || (kind == geometric && size_of(d) == 8) ? 2
                                                                                                             : 1;
  const int64_t vector = 16 / size_of(d), unit = vector * words >= 4 ? vector : 4 / words;
  const Philox::Start start = take_words(c, generator, t.device(), count * words);
  const Place place(t.device());
  fill_kernels().launch(place, {d, static_cast<int>(kind)},
                        divide_up(count, (unit == vector ? 2 : 1) * unit * kThreads), kThreads, 0, t.bytes(), count,
                        start, arguments);
}

void draw_uniform(const Call& c, const Tensor& t, double from, double to, int generator) {
  fill_random(c, is_complex(t.dtype()) ? parts(t) : t, uniform, {from, to, 0, 0}, generator);
}
void draw_normal(const Call& c, const Tensor& t, double mean, double std, int generator) {
  // The variance of a complex number is shared by its parts.
  if (is_complex(t.dtype()))
    fill_random(c, parts(t), normal, {mean, std / std::sqrt(2.0), 0, 0}, generator);
  else
    fill_random(c, t, normal, {mean, std, 0, 0}, generator);
}
// `range` values from `base` on; 0 stands for 2^64.
void draw_range(const Call& c, const Tensor& t, uint64_t range, int64_t base, int generator) {
  fill_random(c, t, range && range < uint64_t{1} << 28 ? integers : wide_integers, {0, 0, range, base}, generator);
}

// ---- whole numbers

// The bits of the whole numbers that a float type holds without gaps.
int exact_bits(Dtype d) { return d == Dtype::f16 ? 11 : d == Dtype::bf16 ? 8 : d == Dtype::f32 ? 24 : 53; }

// Where the type would round an end out of [from, to): the next whole number inside that it holds. A whole number above
// 2^bits is a multiple of its spacing.
int64_t spacing(int64_t value, Dtype d) {
  const uint64_t magnitude = value < 0 ? -static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  const int extra = std::bit_width(magnitude) - exact_bits(d);
  return extra > 0 ? int64_t{1} << extra : 1;
}
int64_t round_up(int64_t value, int64_t step) { return value + (step - value % step) % step; }
int64_t round_down(int64_t value, int64_t step) { return value - ((value % step) + step) % step; }

void draw_integers(const Call& c, const Tensor& t, int64_t from, int64_t to, int generator) {
  if (is_floating(t.dtype())) {
    from = round_up(from, spacing(from, t.dtype()));
    to = round_down(to - 1, spacing(to - 1, t.dtype())) + 1;
  }
  draw_range(c, t, static_cast<uint64_t>(to) - static_cast<uint64_t>(from), from, generator);
}

// ---- new tensors

void run_rand(Call& c) { draw_uniform(c, c.out(), 0, 1, 1); }
void run_randn(Call& c) { draw_normal(c, c.out(), 0, 1, 1); }
void run_randint_to(Call& c) { draw_integers(c, c.out(), 0, c.integer(0), 2); }
void run_randint(Call& c) { draw_integers(c, c.out(), c.integer(0), c.integer(1), 3); }
void run_randint_like_to(Call& c) { draw_integers(c, c.out(), 0, c.integer(1), 2); }
void run_randint_like(Call& c) { draw_integers(c, c.out(), c.integer(1), c.integer(2), 3); }

void run_randperm(Call& c) {
  static const auto* few = new KernelFamily("random.cuh", "permute_few", {"ELEMENT"}, {"-DPERMUTATION_OF_FEW"});
  static const auto* many = new KernelFamily("random.cuh", "permute", {"ELEMENT"}, {"-DPERMUTATION"});
  const Tensor& out = c.out();
  const int64_t n = out.numel();
  if (n == 0) return;
  const Place place(out.device());
  if (n <= 1024) {
    const Philox::Start start = take_words(c, 1, out.device(), 2 * n);
    return few->launch(place, {out.dtype()}, 1, divide_up(n, 32) * 32, 0, out.bytes(), static_cast<int32_t>(n), start);
  }
  const Philox::Start start = take_words(c, 1, out.device(), 12);
  const int bits = std::bit_width(static_cast<uint64_t>(n - 1)), low = bits / 2;
  many->launch(place, {out.dtype()}, divide_up(n, kThreads), kThreads, 0, out.bytes(), n, start,
               static_cast<int32_t>(low), static_cast<int32_t>(bits - low));
}

// ---- normal

void in_place(const char* name, const Tensor& t, const Value& other) {
  const Operator* op = Registry::instance().find(name);
  Call inner(*op);
  inner.args[0] = Value(t);
  inner.args[1] = other;
  for (size_t k = 2; k < op->signature.parameters.size(); ++k)
    inner.args[k] = op->signature.parameters[k].default_value;
  execute(inner);
}
// Waits for the device, as in PyTorch: a negative one is an error.
void check_std_values(const Tensor& std) {
  if (std.numel() == 0) return;
  static const Operator* min = Registry::instance().find("min");
  Call least(*min);
  least.args[0] = Value(std);
  execute(least);
  const double found = item(least.outputs[0]).real;
  check(!(found < 0), "normal expects all elements of std >= 0.0, got ", found);
}
void run_normal_numbers(Call& c) { draw_normal(c, c.out(), c.real(0), c.real(1), 3); }
void run_normal_mean(Call& c) {
  draw_normal(c, c.out(), 0, c.real(1), 2);
  in_place("add_", c.out(), c.args[0]);
}
void run_normal_std(Call& c) {
  check_std_values(c.tensor(1));
  draw_normal(c, c.out(), 0, 1, 2);
  in_place("mul_", c.out(), c.args[1]);
  in_place("add_", c.out(), Value(c.scalar(0)));
}
void run_normal_tensors(Call& c) {
  check_std_values(c.tensor(1));
  draw_normal(c, c.out(), 0, 1, 2);
  in_place("mul_", c.out(), c.args[1]);
  in_place("add_", c.out(), c.args[0]);
}

// ---- coins

uint64_t limit_of(double p) { return static_cast<uint64_t>(std::ceil(p * 0x1p32)); }

void draw_bernoulli(const Call& c, const Tensor& t, double p, int generator) {
  check_implemented(!is_complex(t.dtype()), c.op.name(), ": not implemented on '", t.device(), "' for ",
                    name_of(t.dtype()));
  fill_random(c, t, bernoulli, {0, 0, limit_of(p), 0}, generator);
}

// One coin for each probability; both lie densely in the same order.
void toss(const Call& c, const Tensor& out, const Tensor& probabilities, int generator) {
  static const auto* kernels = new KernelFamily("random.cuh", "toss", {"ELEMENT", "PROBABILITY"});
  const int64_t count = out.numel(), words = probabilities.dtype() == Dtype::f64 ? 2 : 1;
  const Philox::Start start = take_words(c, generator, out.device(), count * words);
  const Place place(out.device());
  kernels->launch(place, {out.dtype(), probabilities.dtype()}, divide_up(count, kThreads * 4 / words), kThreads, 0,
                  out.bytes(), probabilities.bytes(), count, start);
}
void run_bernoulli(Call& c) {
  if (c.out().numel() > 0) toss(c, c.out(), contiguous(c.tensor(0)), 1);
}
void run_bernoulli_number(Call& c) { draw_bernoulli(c, c.out(), c.real(1), 2); }
void run_bernoulli_inplace(Call& c) { draw_bernoulli(c, c.tensor(0), c.real(1), 2); }
void run_bernoulli_tensor(Call& c) {
  const Tensor t = c.tensor(0), p = c.tensor(1);
  if (t.numel() == 0) return;
  const Tensor like = empty_like_layout(t, p.dtype());  // the probabilities, in the order of t's memory
  copy_into(like, p);
  if (lies_densely(t)) return toss(c, t, like, 2);
  const Tensor buffer = empty_like_layout(t, t.dtype());
  toss(c, buffer, like, 2);
  copy_into(t, buffer);
}

// ---- in place

void run_uniform(Call& c) { draw_uniform(c, c.tensor(0), c.real(1), c.real(2), 3); }
void run_normal(Call& c) { draw_normal(c, c.tensor(0), c.real(1), c.real(2), 3); }
void run_log_normal(Call& c) { fill_random(c, c.tensor(0), log_normal, {c.real(1), c.real(2), 0, 0}, 3); }
void run_cauchy(Call& c) { fill_random(c, c.tensor(0), cauchy, {c.real(1), c.real(2), 0, 0}, 3); }
void run_exponential(Call& c) { fill_random(c, c.tensor(0), exponential, {1 / c.real(1), 0, 0, 0}, 2); }
void run_geometric(Call& c) { fill_random(c, c.tensor(0), geometric, {std::log1p(-c.real(1)), 0, 0, 0}, 2); }
void run_random_to(Call& c) { draw_integers(c, c.tensor(0), 0, c.integer(1), 2); }

int64_t largest_integer(Dtype d) {
  if (is_floating(d)) return int64_t{1} << exact_bits(d);
  if (d == Dtype::b8) return 1;
  if (size_of(d) == 8) return std::numeric_limits<int64_t>::max();
  const bool is_unsigned = d == Dtype::u8 || d == Dtype::u16 || d == Dtype::u32;
  return (int64_t{1} << (8 * size_of(d) - (is_unsigned ? 0 : 1))) - 1;
}
void run_random_any(Call& c) {
  const Tensor t = c.tensor(0);
  draw_range(c, t, static_cast<uint64_t>(largest_integer(t.dtype())) + 1, 0, 1);
}
void run_random_range(Call& c) {
  const Tensor t = c.tensor(0);
  const int64_t from = c.integer(1);
  if (c.has(2)) return draw_integers(c, t, from, c.integer(2), 3);
  if (from == std::numeric_limits<int64_t>::min()) return draw_range(c, t, 0, 0, 3);
  // Up to the largest whole number that the type holds, or holds exactly.
  const int64_t first = is_floating(t.dtype()) ? round_up(from, spacing(from, t.dtype())) : from,
                last = largest_integer(t.dtype());
  check(first <= last,
        "random_ expects 'from' casted to dtype to be less than or equal to 'to_inc' casted to dtype, but got from=",
        first, " > to_inc=", last);
  draw_range(c, t, static_cast<uint64_t>(last) - static_cast<uint64_t>(first) + 1, first, 3);
}

// ---- dropout

constexpr int kDropoutUnroll = 2;

void drop(Call& c, double keep, int generator) {
  static const auto* kernels = new KernelFamily("random.cuh", "dropout", {"ELEMENT"}, {"-DDROPOUT"});
  const Tensor &x = c.tensor(0), &out = c.out(0), &mask = c.out(1);
  const int64_t count = out.numel();
  if (count == 0) return;
  const bool alike = x.strides() == out.strides();
  if (!alike) copy_into(out, x);
  const int64_t unit = std::max<int64_t>(16 / size_of(x.dtype()), 4);
  const Philox::Start start = take_words(c, generator, out.device(), count);
  const Place place(out.device());
  kernels->launch(place, {x.dtype()}, divide_up(count, unit * kThreads * kDropoutUnroll), kThreads, 0, out.bytes(),
                  mask.bytes(), alike ? x.bytes() : out.bytes(), count, start, limit_of(keep),
                  keep == 0 ? 0.0 : 1 / keep);
}
void run_fused_dropout(Call& c) { drop(c, c.real(1), 2); }
void run_native_dropout(Call& c) {
  if (c.tensor(0).numel() == 0) return;
  if (c.has(2) && !c.boolean(2)) {
    copy_into(c.out(0), c.tensor(0));
    return fill(c.out(1), Scalar(true));
  }
  drop(c, 1 - c.real(1), -1);
}
void run_dropout_backward(Call& c) {
  static const auto* kernels = new KernelFamily("random.cuh", "dropout_backward", {"ELEMENT"}, {"-DDROPOUT_BACKWARD"});
  const Tensor &grad = c.tensor(0), &out = c.out();
  const int64_t count = out.numel();
  if (count == 0) return;
  if (!is_floating(grad.dtype())) return execute_on_host(c, out.device());
  Tensor mask = c.tensor(1);
  if (!(mask.strides() == out.strides())) {
    mask = empty(TensorInfo{out.sizes(), out.strides(), Dtype::b8, out.device()});
    copy_into(mask, c.tensor(1));
  }
  const bool alike = grad.strides() == out.strides();
  if (!alike) copy_into(out, grad);
  const Place place(out.device());
  kernels->launch(place, {grad.dtype()}, divide_up(count, 16 / size_of(grad.dtype()) * kThreads * kDropoutUnroll),
                  kThreads, 0, out.bytes(), alike ? grad.bytes() : out.bytes(), mask.bytes(), count, c.real(2));
}

}  // namespace

REGISTER_KERNELS(random) {
  const std::pair<const char*, Run> kernels[] = {
      {"rand", run_rand},
      {"randn", run_randn},
      {"rand_like", run_rand},
      {"randn_like", run_randn},
      {"randint", run_randint_to},
      {"randint.low", run_randint},
      {"randint_like", run_randint_like_to},
      {"randint_like.low", run_randint_like},
      {"randperm", run_randperm},
      {"normal.numbers", run_normal_numbers},
      {"normal.mean", run_normal_mean},
      {"normal.std", run_normal_std},
      {"normal.tensors", run_normal_tensors},
      {"bernoulli", run_bernoulli},
      {"bernoulli.p", run_bernoulli_number},
      {"bernoulli_.tensor", run_bernoulli_tensor},
      {"bernoulli_.number", run_bernoulli_inplace},
      {"uniform_", run_uniform},
      {"normal_", run_normal},
      {"log_normal_", run_log_normal},
      {"cauchy_", run_cauchy},
      {"exponential_", run_exponential},
      {"geometric_", run_geometric},
      {"random_", run_random_any},
      {"random_.to", run_random_to},
      {"random_.range", run_random_range},
      {"_fused_dropout", run_fused_dropout},
      {"native_dropout", run_native_dropout},
      {"native_dropout_backward", run_dropout_backward},
  };
  for (const auto& [name, run] : kernels) r.set_kernel(name, DeviceType::cuda, run);
}

}  // namespace cresset::cuda
