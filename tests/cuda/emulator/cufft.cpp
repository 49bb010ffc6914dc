// cuFFT's interface of plans, as far as transforms of dense memory and of lines with a step; computed from the
// definition, in double precision.
#include <complex>
#include <cstring>
#include <map>
#include <numbers>

#include "emulator.h"
#include "number_types.h"

namespace {

using namespace emulator;
using Number = std::complex<double>;

enum Result {
  SUCCESS = 0,
  INVALID_PLAN = 1,
  INVALID_TYPE = 3,
  INVALID_VALUE = 4,
  EXEC_FAILED = 6,
  INVALID_SIZE = 8,
  NO_WORKSPACE = 13
};

constexpr int CUDA_C_16F = 6;
size_t width_of(int type) { return type == CUDA_C_16F ? 4 : bytes_of(type); }

struct Plan {
  Device* device = nullptr;
  bool is_made = false, allocates = true;
  int from_type = 0, to_type = 0;
  std::vector<int64_t> sizes;
  int64_t step = 0, batch_step = 0, batch = 0;
  void *workspace = nullptr, *stream = nullptr;

  bool is_complex(int type) const { return type == CUDA_C_32F || type == CUDA_C_64F || type == CUDA_C_16F; }
  bool from_real() const { return !is_complex(from_type); }
  bool to_real() const { return !is_complex(to_type); }
  // Elements of a signal, or of the half of its spectrum that is kept.
  int64_t elements(bool half) const {
    int64_t n = 1;
    for (size_t d = 0; d < sizes.size(); ++d) n *= half && d + 1 == sizes.size() ? sizes[d] / 2 + 1 : sizes[d];
    return n;
  }
  int64_t extent(bool half) const {
    return step ? (batch - 1) * batch_step + (sizes[0] - 1) * step + 1 : batch * elements(half);
  }
};
constexpr size_t kWorkspace = 512;

std::map<int, Plan>& plans() {
  static auto* all = new std::map<int, Plan>;
  return *all;
}
Plan* find(int handle) {
  const auto found = plans().find(handle);
  return found == plans().end() ? nullptr : &found->second;
}
Result refused(Result result, const char* why) {
  complain("cuFFT: %s", why);
  return result;
}

// Along one dimension of a dense signal.
void transform_dimension(std::vector<Number>& signal, int64_t outer, int64_t n, int64_t inner, int direction) {
  std::vector<Number> line(static_cast<size_t>(n)), roots(static_cast<size_t>(n));
  for (int64_t k = 0; k < n; ++k)
    roots[size_t(k)] = std::polar(1.0, direction * 2 * std::numbers::pi * double(k) / double(n));
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < inner; ++i) {
      Number* const at = &signal[size_t(o * n * inner + i)];
      for (int64_t k = 0; k < n; ++k) {
        Number sum = 0;
        for (int64_t j = 0; j < n; ++j) sum += at[j * inner] * roots[size_t(j * k % n)];
        line[size_t(k)] = sum;
      }
      for (int64_t k = 0; k < n; ++k) at[k * inner] = line[size_t(k)];
    }
}

Number read(const void* data, int type, int64_t at) {
  switch (type) {
    case CUDA_R_32F: return static_cast<const float*>(data)[at];
    case CUDA_R_64F: return static_cast<const double*>(data)[at];
    case CUDA_C_32F: return Number(static_cast<const std::complex<float>*>(data)[at]);
    case CUDA_R_16F: return float(static_cast<const Half*>(data)[at]);
    case CUDA_C_16F:
      return {float(static_cast<const Half*>(data)[2 * at]), float(static_cast<const Half*>(data)[2 * at + 1])};
    default: return static_cast<const Number*>(data)[at];
  }
}
void write(void* data, int type, int64_t at, Number value) {
  switch (type) {
    case CUDA_R_32F: static_cast<float*>(data)[at] = float(value.real()); break;
    case CUDA_R_64F: static_cast<double*>(data)[at] = value.real(); break;
    case CUDA_C_32F: static_cast<std::complex<float>*>(data)[at] = std::complex<float>(value); break;
    case CUDA_C_16F: static_cast<Half*>(data)[2 * at + 1] = Half(float(value.imag())), at *= 2; [[fallthrough]];
    case CUDA_R_16F: static_cast<Half*>(data)[at] = Half(float(value.real())); break;
    default: static_cast<Number*>(data)[at] = value;
  }
}

// A spectrum from its half: element k of the last dimension is the conjugate of the one at minus k in every dimension.
std::vector<Number> whole(const std::vector<Number>& half, const Plan& p) {
  std::vector<Number> all(size_t(p.elements(false)));
  const int64_t n = p.sizes.back(), kept = n / 2 + 1, rows = int64_t(all.size()) / n;
  const auto mirrored_row = [&](int64_t row) {
    int64_t result = 0, unit = 1;
    for (size_t d = p.sizes.size() - 1; d-- > 0;) {
      result += (p.sizes[d] - row % p.sizes[d]) % p.sizes[d] * unit;
      unit *= p.sizes[d], row /= p.sizes[d];
    }
    return result;
  };
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t k = 0; k < n; ++k)
      all[size_t(row * n + k)] =
          k < kept ? half[size_t(row * kept + k)] : std::conj(half[size_t(mirrored_row(row) * kept + n - k)]);
  return all;
}

void run(const Plan& p, void* from, void* to, int direction) {
  const int64_t n = p.elements(false), in = p.elements(p.to_real()), out = p.elements(p.from_real());
  if (p.from_real()) direction = -1;
  if (p.to_real()) direction = 1;
  for (int64_t b = 0; b < p.batch; ++b) {
    const auto place = [&](int64_t i, int64_t count) { return p.step ? b * p.batch_step + i * p.step : b * count + i; };
    std::vector<Number> signal(static_cast<size_t>(in));
    for (int64_t i = 0; i < in; ++i) signal[size_t(i)] = read(from, p.from_type, place(i, in));
    if (p.to_real()) {
      signal = whole(signal, p);
      for (int64_t i = 0; i < in; ++i)
        write(from, p.from_type, place(i, in), Number(77, 77));  // cuFFT destroys what it reads
    }
    int64_t inner = 1;
    for (size_t d = p.sizes.size(); d-- > 0;) {
      transform_dimension(signal, n / (inner * p.sizes[d]), p.sizes[d], inner, direction);
      inner *= p.sizes[d];
    }
    const int64_t length = p.sizes.back(), kept = p.from_real() ? length / 2 + 1 : length;
    for (int64_t i = 0; i < out; ++i) write(to, p.to_type, place(i, out), signal[size_t(i / kept * length + i % kept)]);
  }
}

}  // namespace

EMULATOR_API int cufftGetVersion(int* version) { return *version = 12000, SUCCESS; }
EMULATOR_API int cufftCreate(int* handle) {
  std::lock_guard guard(lock());
  static int last = 0;
  if (!current()) return INVALID_PLAN;
  plans()[++last].device = current();
  return *handle = last, SUCCESS;
}
EMULATOR_API int cufftDestroy(int handle) {
  std::lock_guard guard(lock());
  return plans().erase(handle) ? SUCCESS : INVALID_PLAN;
}
EMULATOR_API int cufftSetAutoAllocation(int handle, int on) {
  std::lock_guard guard(lock());
  Plan* plan = find(handle);
  if (!plan || plan->is_made) return refused(INVALID_PLAN, "who allocates is said before the plan is made");
  return plan->allocates = on, SUCCESS;
}
EMULATOR_API int cufftXtMakePlanMany(int handle, int rank, long long* sizes, long long* from_sizes, long long from_step,
                                     long long from_batch_step, int from_type, long long* to_sizes, long long to_step,
                                     long long to_batch_step, int to_type, long long batch, size_t* workspace,
                                     int compute_type) {
  std::lock_guard guard(lock());
  Plan* plan = find(handle);
  if (!plan || plan->is_made) return INVALID_PLAN;
  if (plan->allocates) return refused(INVALID_VALUE, "memory of its own is not emulated");
  if (rank < 1 || rank > 3 || batch < 1)
    return refused(INVALID_SIZE, "a transform has one to three dimensions and a batch");
  const int complex = compute_type, real = complex == CUDA_C_64F   ? CUDA_R_64F
                                           : complex == CUDA_C_32F ? CUDA_R_32F
                                                                   : CUDA_R_16F;
  const bool good =
      (from_type == complex && (to_type == complex || to_type == real)) || (from_type == real && to_type == complex);
  if (!good || !plan->is_complex(complex)) return refused(INVALID_TYPE, "this combination of types");
  if ((from_sizes == nullptr) != (to_sizes == nullptr))
    return refused(INVALID_VALUE, "the result is dense where the input is");
  if (from_sizes &&
      (rank != 1 || from_step != to_step || from_batch_step != to_batch_step || from_type != to_type || from_step < 1))
    return refused(INVALID_VALUE, "steps are emulated for one dimension of complex numbers, the same for both");
  for (int d = 0; d < rank; ++d) {
    if (sizes[d] < 1) return refused(INVALID_SIZE, "a dimension without elements");
    if (complex == CUDA_C_16F && ((sizes[d] & (sizes[d] - 1)) || from_sizes))
      return refused(INVALID_SIZE, "halves come in powers of two, without steps");
    plan->sizes.push_back(sizes[d]);
  }
  if (from_sizes) plan->step = from_step, plan->batch_step = from_batch_step;
  plan->from_type = from_type, plan->to_type = to_type, plan->batch = batch, plan->is_made = true;
  return *workspace = kWorkspace, SUCCESS;
}
EMULATOR_API int cufftSetWorkArea(int handle, void* workspace) {
  std::lock_guard guard(lock());
  Plan* plan = find(handle);
  if (!plan || !plan->is_made) return INVALID_PLAN;
  return plan->workspace = workspace, SUCCESS;
}
EMULATOR_API int cufftSetStream(int handle, void* stream) {
  std::lock_guard guard(lock());
  Plan* plan = find(handle);
  if (!plan) return INVALID_PLAN;
  return plan->stream = stream, SUCCESS;
}
EMULATOR_API int cufftXtExec(int handle, void* from, void* to, int direction) {
  std::lock_guard guard(lock());
  Plan* plan = find(handle);
  if (!plan || !plan->is_made) return INVALID_PLAN;
  if (direction != -1 && direction != 1) return refused(INVALID_VALUE, "the direction is -1 or 1");
  Stream* stream = find_stream(plan->stream);
  if (!stream || stream->device != plan->device)
    return refused(EXEC_FAILED, "the stream is not one of the plan's device");
  if (!device_may_use("cufftXtExec", "the workspace", plan->device, reinterpret_cast<Address>(plan->workspace),
                      kWorkspace))
    return NO_WORKSPACE;
  if (from == to && plan->from_type != plan->to_type)
    return refused(INVALID_VALUE, "real transforms in place are not emulated");
  const Status status = submit(stream, "cufftXtExec", [plan = *plan, from, to, direction] {
    const auto good = [&](const char* what, void* data, int type, bool half) {
      return device_may_use("cufftXtExec", what, plan.device, reinterpret_cast<Address>(data),
                            size_t(plan.extent(half)) * width_of(type));
    };
    if (!good("the input", from, plan.from_type, plan.to_real()) ||
        !good("the result", to, plan.to_type, plan.from_real()))
      return CUDA_ERROR_ILLEGAL_ADDRESS;
    run(plan, from, to, direction);
    return CUDA_SUCCESS;
  });
  return status == CUDA_SUCCESS ? SUCCESS : EXEC_FAILED;
}
