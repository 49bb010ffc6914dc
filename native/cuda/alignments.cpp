// Connectionist temporal classification on the device: see native/ops/alignments.cpp.
#include "cuda/backend.h"
#include "cuda/fault.h"
#include "cuda/launch.h"
#include "cuda/reduction.h"
#include "dispatch/on_host.h"
#include "dispatch/registration.h"
#include "ops/computed.h"

namespace cresset::cuda {
namespace {

constexpr int64_t kGradientThreads = 128, kMostThreads = 512;  // as below
constexpr int64_t kMostShared = 40 << 10;                      // bytes

const KernelText kText{R"cuda(// with T=dtype_f32, T=dtype_f64, T=dtype_bf16
#include "fault.cuh"
#include "math.cuh"

using C = opmath<T>;

struct Alignments {
  const T* x;                        // [times][samples][classes]
  const int64_t *targets, *lengths;  // [samples][longest]; [2][samples]: of the inputs, of the targets
  int64_t times, samples, classes, longest, blank;
  Fault* fault;
  int32_t operation;
};

// A sample of a block.
struct Sample {
  int64_t n, inputs, labels, states, width;
  const int64_t* targets;
  CRESSET_INLINE Sample(const Alignments& a, int64_t n)
      : n(n), inputs(within(a.lengths[n], a.times)), labels(within(a.lengths[a.samples + n], a.longest)),
        states(2 * labels + 1), width(2 * a.longest + 1), targets(a.targets + n * a.longest) {}
  CRESSET_INLINE static int64_t within(int64_t length, int64_t most) {
    return length < 0 ? 0 : length < most ? length : most;
  }
  // The class of label i; a bad one counts as a blank.
  CRESSET_INLINE int64_t label(const Alignments& a, int64_t i) const {
    return static_cast<uint64_t>(targets[i]) < static_cast<uint64_t>(a.classes) ? targets[i] : a.blank;
  }
  CRESSET_INLINE int64_t class_of(const Alignments& a, int64_t s) const {
    return s % 2 && s < states ? label(a, s / 2) : a.blank;
  }
  // Whether state s can be reached from s - 2.
  CRESSET_INLINE bool may_skip(int64_t s) const {
    return s % 2 && s > 2 && s < states && targets[s / 2] != targets[s / 2 - 1];
  }
  CRESSET_INLINE C score(const Alignments& a, int64_t t, int64_t which) const {
    return convert<C>(a.x[(t * a.samples + n) * a.classes + which]);
  }
};

CRESSET_INLINE C log_of_sum(C a, C b, C c) {
  C top = b > a ? b : a;
  top = c > top ? c : top;
  const C low = top == -INFINITY ? C(0) : top;
  return math::log(math::exp(a - low) + math::exp(b - low) + math::exp(c - low)) + low;
}

extern __shared__ uint4 shared_memory[];

// Two rows of states, of the time before and of this one: in shared memory if `room` is null.
CRESSET_INLINE C* rows_of(C* room, const Sample& sample) {
  return room ? room + sample.n * 2 * sample.width : reinterpret_cast<C*>(shared_memory);
}

// A block walks through the times of a sample, a thread has a state, or several. The score of the next time is read
// before this one is waited for.
extern "C" __global__ void __launch_bounds__(512) ctc_alpha(const Alignments a, T* loss, C* alpha, C* room) {
  after_earlier_work();
  const Sample sample(a, blockIdx.x);
  C* const rows = rows_of(room, sample);
  for (int64_t i = threadIdx.x; i < sample.labels; i += blockDim.x)
    if (static_cast<uint64_t>(sample.targets[i]) >= static_cast<uint64_t>(a.classes))
      report(a.fault, a.operation, sample.targets[i], sample.n * a.longest + i, a.classes);
  const int64_t own = threadIdx.x, own_class = sample.class_of(a, own);
  C ahead = sample.inputs ? sample.score(a, 0, own_class) : C(0);
  for (int64_t t = 0; t < a.times; ++t) {
    C* const now = alpha + (sample.n * a.times + t) * sample.width;
    const C* const before = rows + (t + 1) % 2 * sample.width;
    const C own_score = ahead;
    if (t + 1 < sample.inputs) ahead = sample.score(a, t + 1, own_class);
    for (int64_t s = own; s < sample.width; s += blockDim.x) {
      C value = -INFINITY;
      if (t < sample.inputs && s < sample.states) {
        const C score = s == own ? own_score : sample.score(a, t, sample.class_of(a, s));
        if (t > 0)
          value = log_of_sum(before[s], s > 0 ? before[s - 1] : C(-INFINITY),
                             sample.may_skip(s) ? before[s - 2] : C(-INFINITY)) + score;
        else if (s < 2)
          value = score;
      }
      now[s] = value;
      if (t < sample.inputs) rows[t % 2 * sample.width + s] = value;
    }
    __syncthreads();
  }
  if (threadIdx.x) return;
  // The last two states end a target. Without inputs only the empty one is possible.
  const C* const last = rows + (sample.inputs + 1) % 2 * sample.width;
  const C none = -INFINITY;
  const C total = sample.inputs == 0
                      ? (sample.labels == 0 ? C(0) : none)
                      : log_of_sum(last[sample.states - 1], sample.labels ? last[sample.states - 2] : none, none);
  loss[sample.n] = convert<T>(-total);
}

// The same from the back. What is kept: how probable it is that a time belongs to each state, and of each label the next
// one that is the same, as its number plus one; negative for one that is not the first of its kind, 0 for a blank.
extern "C" __global__ void __launch_bounds__(512)
    ctc_posteriors(const Alignments a, const T* loss, const C* alpha, C* posteriors, int32_t* links, C* room) {
  after_earlier_work();
  const Sample sample(a, blockIdx.x);
  C* const rows = rows_of(room, sample);
  for (int64_t i = threadIdx.x; i < sample.labels; i += blockDim.x) {
    const int64_t label = sample.label(a, i);
    int64_t next = i + 1, earlier = i - 1;
    while (next < sample.labels && sample.label(a, next) != label) ++next;
    while (earlier >= 0 && sample.label(a, earlier) != label) --earlier;
    links[sample.n * a.longest + i] = label == a.blank ? 0 : static_cast<int32_t>(earlier < 0 ? next + 1 : -next - 1);
  }
  const C lost = convert<C>(loss[sample.n]);
  const int64_t own = threadIdx.x, own_class = sample.class_of(a, own);
  C ahead = sample.inputs ? sample.score(a, sample.inputs - 1, own_class) : C(0);
  for (int64_t t = sample.inputs - 1; t >= 0; --t) {
    const C* const after = rows + (t + 1) % 2 * sample.width;
    const C own_score = ahead;
    if (t > 0) ahead = sample.score(a, t - 1, own_class);
    for (int64_t s = own; s < sample.states; s += blockDim.x) {
      const C score = s == own ? own_score : sample.score(a, t, sample.class_of(a, s));
      C value = -INFINITY;
      if (t < sample.inputs - 1)
        value = log_of_sum(after[s], s + 1 < sample.states ? after[s + 1] : C(-INFINITY),
                           sample.may_skip(s + 2) ? after[s + 2] : C(-INFINITY)) + score;
      else if (s + 2 >= sample.states)
        value = score;
      rows[t % 2 * sample.width + s] = value;
      const int64_t at = (sample.n * a.times + t) * sample.width + s;
      const C way = alpha[at] + value;
      posteriors[at] = way == -INFINITY ? C(0) : math::exp(way + lost - score);
    }
    __syncthreads();
  }
}

// A block has the classes of one sample at one time. Each sum is taken in a fixed order.
extern "C" __global__ void __launch_bounds__(128)
    ctc_gradient(const Alignments a, const T* grad, const T* loss, const C* posteriors, const int32_t* links, T* out,
                 int32_t zero_infinity) {
  after_earlier_work();
  __shared__ C sums[128];
  const int64_t row = blockIdx.x, t = row / a.samples;
  const Sample sample(a, row % a.samples);
  const T* const x = a.x + row * a.classes;
  out += row * a.classes;
  const C lost = convert<C>(loss[sample.n]), factor = convert<C>(grad[sample.n]);
  const bool is_zero = t >= sample.inputs || (zero_infinity && lost == INFINITY);
  for (int64_t c = threadIdx.x; c < a.classes; c += 128) {
    C value = 0;
    if (!is_zero) value = lost == INFINITY ? C(NAN) : math::exp(convert<C>(x[c])) * factor;
    out[c] = convert<T>(value);
  }
  if (is_zero || lost == INFINITY) return;
  posteriors += (sample.n * a.times + t) * sample.width;
  links += sample.n * a.longest;
  C sum = 0;
  for (int64_t s = threadIdx.x; s < sample.states; s += 128)
    if (s % 2 == 0 || links[s / 2] == 0) sum += posteriors[s];
  sums[threadIdx.x] = sum;
  for (int half = 64; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  __syncthreads();
  if (threadIdx.x == 0) out[a.blank] = convert<T>((math::exp(convert<C>(x[a.blank])) - sums[0]) * factor);
  for (int64_t i = threadIdx.x; i < sample.labels; i += 128) {
    if (links[i] <= 0) continue;
    C own = posteriors[2 * i + 1];
    for (int64_t k = links[i] - 1; k < sample.labels; k = -links[k] - 1) own += posteriors[2 * k + 1];
    const int64_t label = sample.targets[i];
    out[label] = convert<T>((math::exp(convert<C>(x[label])) - own) * factor);
  }
}
)cuda"};
const KernelFamily kAlpha(kText, "ctc_alpha", {"T"});
const KernelFamily kPosteriors(kText, "ctc_posteriors", {"T"});
const KernelFamily kGradient(kText, "ctc_gradient", {"T"});

// As above.
struct Alignments {
  const void *x, *targets, *lengths;
  int64_t times, samples, classes, longest, blank;
  Address fault;
  int32_t operation;
};

// (log_probs, targets, lengths, blank) from the argument `first` on.
struct Arguments {
  Tensor x, targets, lengths, room;
  Dtype type;
  bool fits;
  Alignments values{};
  int64_t threads = 32, shared = 0;

  Arguments(const Call& c, const Place& place, int first) : type(c.tensor(first).dtype()) {
    static const int kNumber = operation_number("ctc_loss");
    const Tensor t = c.tensor(first);
    fits = has_kernel(type) && t.numel() > 0;
    if (!fits) return;
    x = contiguous(t);
    targets = contiguous(c.tensor(first + 1));
    lengths = contiguous(c.tensor(first + 2));
    values = {x.bytes(),       targets.bytes(),      lengths.bytes(),           t.size(0), t.size(1), t.size(2),
              targets.size(1), c.integer(first + 3), fault_place(place.device), kNumber};
    const int64_t width = 2 * values.longest + 1;
    while (threads < kMostThreads && threads < width) threads *= 2;
    shared = 2 * width * static_cast<int64_t>(size_of(computed_dtype(type)));
    if (shared > kMostShared) {
      const int64_t sizes[] = {values.samples, 2, width};
      room = empty(sizes, computed_dtype(type), t.device());
      shared = 0;
    }
  }
  void* rows() const { return room.defined() ? room.bytes() : nullptr; }
};

void run_alignments(Call& c) {
  const Device device = c.tensor(0).device();
  const Place place(device);
  const Arguments a(c, place, 0);
  if (!a.fits) return execute_on_host(c, device);
  kAlpha.launch(place, {a.type}, a.values.samples, a.threads, a.shared, a.values, c.out(0).bytes(), c.out(1).bytes(),
                a.rows());
}

// (grad, log_probs, targets, lengths, blank, zero_infinity, loss, alpha)
void run_alignments_backward(Call& c) {
  const Device device = c.tensor(1).device();
  const Place place(device);
  const Arguments a(c, place, 1);
  if (!a.fits) return execute_on_host(c, device);
  const Tensor grad = contiguous(convert(c.tensor(0), a.type)), loss = contiguous(convert(c.tensor(6), a.type)),
               alpha = contiguous(c.tensor(7)), posteriors = empty(alpha.sizes(), alpha.dtype(), device);
  const int64_t sizes[] = {a.values.samples, a.values.longest};
  const Tensor links = empty(sizes, Dtype::i32, device);
  kPosteriors.launch(place, {a.type}, a.values.samples, a.threads, a.shared, a.values, loss.bytes(), alpha.bytes(),
                     posteriors.bytes(), links.bytes(), a.rows());
  kGradient.launch(place, {a.type}, a.values.samples * a.values.times, kGradientThreads, 0, a.values, grad.bytes(),
                   loss.bytes(), posteriors.bytes(), links.bytes(), c.out(0).bytes(),
                   static_cast<int32_t>(c.boolean(5)));
}

}  // namespace

REGISTER_KERNELS(alignments) {
  r.set_kernel("_ctc_alignments", DeviceType::cuda, run_alignments);
  r.set_kernel("_ctc_alignments_backward", DeviceType::cuda, run_alignments_backward);
}

}  // namespace cresset::cuda
