#include "cuda/cublas.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <mutex>
#include <unordered_map>

#include "base/error.h"
#include "cuda/library.h"
#include "cuda/workspace.h"

namespace cresset::cuda {

ProductSettings product_settings;
ProductMeasuring product_measuring;

namespace {

using LtStatus = int;
using LtHandle = void*;
using Descriptor = void*;
struct Algorithm {
  uint64_t data[8];
};
struct Heuristic {
  Algorithm algorithm;
  size_t workspace;
  LtStatus state;
  float waves;
  int reserved[4];
};
static_assert(sizeof(Heuristic) == 96);

// Numbers of cuBLAS's interface.
constexpr LtStatus kDone = 0;
enum DataType : int {
  kR32F = 0,
  kR64F = 1,
  kR16F = 2,
  kR8I = 3,
  kC32F = 4,
  kC64F = 5,
  kR32I = 10,
  kR16BF = 14,
  kR8E4M3 = 28,
  kR8E5M2 = 29
};
enum ComputeType : int { kCompute32F = 68, kCompute64F = 70, kCompute32I = 72, kCompute32FTF32 = 77 };
enum ProductAttribute : int {
  kTransposeA = 3,
  kTransposeB = 4,
  kEpilogue = 7,
  kBiasPointer = 8,
  kScalePointerA = 17,
  kScalePointerB = 18,
  kFastSums = 25
};
enum LayoutAttribute : int { kBatchCount = 5, kBatchStep = 6 };
enum PreferenceAttribute : int {
  kMaxWorkspace = 1,
  kReductionSchemes = 3,
  kAlignmentA = 5,
  kAlignmentB = 6,
  kAlignmentC = 7,
  kAlignmentD = 8
};
enum AlgorithmAttribute : int { kSplits = 2, kReductionScheme = 3 };
constexpr uint32_t kEpilogueBias = 4;
constexpr uint32_t kReduceInPlace = 1, kReduceInComputeType = 2;
constexpr int64_t kMiB = 1 << 20;

#define CRESSET_CUBLASLT_FUNCTIONS(X)                                                                                  \
  X(cublasLtCreate, (LtHandle * handle))                                                                               \
  X(cublasLtMatmulDescCreate, (Descriptor * d, int compute, int scale))                                                \
  X(cublasLtMatmulDescDestroy, (Descriptor d))                                                                         \
  X(cublasLtMatmulDescSetAttribute, (Descriptor d, int attribute, const void* value, size_t bytes))                    \
  X(cublasLtMatrixLayoutCreate, (Descriptor * d, int type, uint64_t rows, uint64_t columns, int64_t ld))               \
  X(cublasLtMatrixLayoutDestroy, (Descriptor d))                                                                       \
  X(cublasLtMatrixLayoutSetAttribute, (Descriptor d, int attribute, const void* value, size_t bytes))                  \
  X(cublasLtMatmulPreferenceCreate, (Descriptor * d))                                                                  \
  X(cublasLtMatmulPreferenceDestroy, (Descriptor d))                                                                   \
  X(cublasLtMatmulPreferenceSetAttribute, (Descriptor d, int attribute, const void* value, size_t bytes))              \
  X(cublasLtMatmulAlgoGetHeuristic, (LtHandle handle, Descriptor product, Descriptor a, Descriptor b, Descriptor c,    \
                                     Descriptor d, Descriptor preference, int wanted, Heuristic* results, int* found)) \
  X(cublasLtMatmulAlgoConfigGetAttribute,                                                                              \
    (const Algorithm* algorithm, int attribute, void* value, size_t bytes, size_t* written))                           \
  X(cublasLtMatmul,                                                                                                    \
    (LtHandle handle, Descriptor product, const void* alpha, const void* a, Descriptor a_layout, const void* b,        \
     Descriptor b_layout, const void* beta, const void* c, Descriptor c_layout, void* d, Descriptor d_layout,          \
     const Algorithm* algorithm, void* workspace, size_t workspace_bytes, StreamHandle stream))

struct CublasLt {
#define CRESSET_MEMBER(name, parameters) LtStatus(*name) parameters = nullptr;
  CRESSET_CUBLASLT_FUNCTIONS(CRESSET_MEMBER)
#undef CRESSET_MEMBER
};

const CublasLt& library() {
  static const CublasLt* const the = [] {
    const Library file{"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"};
    auto* f = new CublasLt;
#define CRESSET_FIND(name, parameters) f->name = reinterpret_cast<decltype(f->name)>(file.symbol(#name));
    CRESSET_CUBLASLT_FUNCTIONS(CRESSET_FIND)
#undef CRESSET_FIND
    return f;
  }();
  return *the;
}

const char* name_of_status(LtStatus status) {
  switch (status) {
    case 1: return "CUBLAS_STATUS_NOT_INITIALIZED";
    case 3: return "CUBLAS_STATUS_ALLOC_FAILED";
    case 7: return "CUBLAS_STATUS_INVALID_VALUE";
    case 8: return "CUBLAS_STATUS_ARCH_MISMATCH";
    case 11: return "CUBLAS_STATUS_MAPPING_ERROR";
    case 13: return "CUBLAS_STATUS_EXECUTION_FAILED";
    case 14: return "CUBLAS_STATUS_INTERNAL_ERROR";
    case 15: return "CUBLAS_STATUS_NOT_SUPPORTED";
    default: return "an unknown status";
  }
}
void check_done(LtStatus status, const char* what) {
  check(status == kDone, "CUDA error: ", name_of_status(status), " when calling `", what, "`");
}
#define CRESSET_CUBLASLT(call) check_done(library().call, #call)

LtHandle handle(int device) {
  static LtHandle all[kMaxDevices] = {};
  if (!all[device]) CRESSET_CUBLASLT(cublasLtCreate(&all[device]));
  return all[device];
}

DataType data_type(Dtype d) {
  switch (d) {
    case Dtype::f64: return kR64F;
    case Dtype::f16: return kR16F;
    case Dtype::bf16: return kR16BF;
    case Dtype::c64: return kC32F;
    case Dtype::c128: return kC64F;
    case Dtype::i8: return kR8I;
    case Dtype::i32: return kR32I;
    case Dtype::f8e4m3fn: return kR8E4M3;
    case Dtype::f8e5m2: return kR8E5M2;
    default: return kR32F;
  }
}

// What a plan depends on; compared as bytes, so that everything in it is set.
struct Key {
  int64_t m, n, k, batch, lda, ldb, ldc, ldd, a_step, b_step, c_step, d_step;
  uint8_t dtype, device, transposed, bias, fast, alignment_a, alignment_b, alignment_c, alignment_d, alignment_bias,
      b_dtype, d_dtype, fast_sums, any_bits, unused[2];
  bool operator==(const Key& o) const { return std::memcmp(this, &o, sizeof(Key)) == 0; }
};
static_assert(sizeof(Key) == 14 * 8);
struct KeyHash {
  size_t operator()(const Key& key) const {
    uint64_t words[14], h = 0;
    std::memcpy(words, &key, sizeof words);
    for (const uint64_t w : words) h = (h ^ w) * 0x9e3779b97f4a7c15u, h ^= h >> 29;
    return h;
  }
};
struct Plan {
  Descriptor product = nullptr, a = nullptr, b = nullptr, c = nullptr, d = nullptr;
  Algorithm algorithm{};
  size_t workspace = 0;
  bool possible = false;
};
struct KnownPlan {
  Plan plan;
  int uses = 0;  // until it is measured
};
struct Plans {
  static constexpr size_t kMost = 8192;  // then all are forgotten: programs whose shapes never come again
  std::mutex lock;
  std::unordered_map<Key, KnownPlan, KeyHash> all;

  void make_room() {
    if (all.size() < kMost) return;
    finish_launches();  // products with them may be on their way
    for (const auto& [key, known] : all) {
      const Plan& plan = known.plan;
      library().cublasLtMatmulDescDestroy(plan.product);
      for (const Descriptor d : {plan.a, plan.b, plan.c, plan.d}) library().cublasLtMatrixLayoutDestroy(d);
    }
    all.clear();
  }
};
Plans& plans() {
  static auto* the = new Plans;
  return *the;
}

// log2 of the alignment, as far as it matters to an algorithm.
uint8_t alignment_of(const void* p) {
  const int bits = std::countr_zero(reinterpret_cast<uintptr_t>(p) | 256);
  return static_cast<uint8_t>(bits > 4 && bits < 8 ? 4 : bits);
}

Descriptor layout(DataType type, int64_t rows, int64_t columns, int64_t ld, int64_t batch, int64_t step) {
  Descriptor d = nullptr;
  CRESSET_CUBLASLT(
      cublasLtMatrixLayoutCreate(&d, type, static_cast<uint64_t>(rows), static_cast<uint64_t>(columns), ld));
  if (batch > 1) {
    const auto count = static_cast<int32_t>(batch);
    CRESSET_CUBLASLT(cublasLtMatrixLayoutSetAttribute(d, kBatchCount, &count, sizeof count));
    CRESSET_CUBLASLT(cublasLtMatrixLayoutSetAttribute(d, kBatchStep, &step, sizeof step));
  }
  return d;
}

void set_scales(Descriptor product, const void* a, const void* b) {
  library().cublasLtMatmulDescSetAttribute(product, kScalePointerA, &a, sizeof a);
  library().cublasLtMatmulDescSetAttribute(product, kScalePointerB, &b, sizeof b);
}

// What the library's heuristic has for a product, the best first.
std::vector<Heuristic> offers_of(const Key& key, const Plan& plan, DataType type, int wanted) {
  Descriptor preference = nullptr;
  CRESSET_CUBLASLT(cublasLtMatmulPreferenceCreate(&preference));
  const uint64_t workspace = static_cast<uint64_t>((properties(key.device).major >= 9 ? 32 : 8) * kMiB);
  CRESSET_CUBLASLT(cublasLtMatmulPreferenceSetAttribute(preference, kMaxWorkspace, &workspace, sizeof workspace));
  const std::pair<PreferenceAttribute, uint8_t> alignments[] = {{kAlignmentA, key.alignment_a},
                                                                {kAlignmentB, key.alignment_b},
                                                                {kAlignmentC, key.alignment_c},
                                                                {kAlignmentD, key.alignment_d}};
  for (const auto& [attribute, bits] : alignments) {
    const uint32_t bytes = 1u << bits;
    CRESSET_CUBLASLT(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &bytes, sizeof bytes));
  }
  if (!key.fast && (type == kR16F || type == kR16BF)) {
    const uint32_t schemes = kReduceInPlace | kReduceInComputeType;
    CRESSET_CUBLASLT(cublasLtMatmulPreferenceSetAttribute(preference, kReductionSchemes, &schemes, sizeof schemes));
  }
  std::vector<Heuristic> offers(static_cast<size_t>(wanted));
  int found = 0;
  const LtStatus status = library().cublasLtMatmulAlgoGetHeuristic(
      handle(key.device), plan.product, plan.a, plan.b, plan.c, plan.d, preference, wanted, offers.data(), &found);
  library().cublasLtMatmulPreferenceDestroy(preference);
  offers.resize(status == kDone ? static_cast<size_t>(found) : 0);
  std::erase_if(offers, [](const Heuristic& h) { return h.state != kDone; });
  return offers;
}

Plan make_plan(const Key& key, const MatrixProduct& p) {
  Plan plan;
  const DataType type = data_type(p.dtype), b_type = data_type(p.type_of_b()), d_type = data_type(p.type_of_d());
  const bool small = type == kR8E4M3 || type == kR8E5M2;
  const bool wide = type == kR64F || type == kC64F;
  const ComputeType compute = wide                                           ? kCompute64F
                              : type == kR8I                                 ? kCompute32I
                              : key.fast && (type == kR32F || type == kC32F) ? kCompute32FTF32
                                                                             : kCompute32F;
  const DataType scale = type == kR8I ? kR32I : small || type == kR16F || type == kR16BF ? kR32F : type;
  CRESSET_CUBLASLT(cublasLtMatmulDescCreate(&plan.product, compute, scale));
  const int32_t transpose_a = p.a.transposed, transpose_b = p.b.transposed;
  CRESSET_CUBLASLT(cublasLtMatmulDescSetAttribute(plan.product, kTransposeA, &transpose_a, sizeof transpose_a));
  CRESSET_CUBLASLT(cublasLtMatmulDescSetAttribute(plan.product, kTransposeB, &transpose_b, sizeof transpose_b));
  if (p.bias) {
    CRESSET_CUBLASLT(cublasLtMatmulDescSetAttribute(plan.product, kEpilogue, &kEpilogueBias, sizeof kEpilogueBias));
    CRESSET_CUBLASLT(cublasLtMatmulDescSetAttribute(plan.product, kBiasPointer, &p.bias, sizeof p.bias));
  }
  if (small) {
    set_scales(plan.product, p.a_scale, p.b_scale);
    const int8_t fast = p.fast_sums;
    CRESSET_CUBLASLT(cublasLtMatmulDescSetAttribute(plan.product, kFastSums, &fast, sizeof fast));
  }
  plan.a = p.a.transposed ? layout(type, p.k, p.m, p.a.ld, p.batch, p.a.batch_step)
                          : layout(type, p.m, p.k, p.a.ld, p.batch, p.a.batch_step);
  plan.b = p.b.transposed ? layout(b_type, p.n, p.k, p.b.ld, p.batch, p.b.batch_step)
                          : layout(b_type, p.k, p.n, p.b.ld, p.batch, p.b.batch_step);
  plan.c = layout(d_type, p.m, p.n, key.ldc, p.batch, key.c_step);
  plan.d = layout(d_type, p.m, p.n, p.ldd, p.batch, p.d_step);

  const std::vector<Heuristic> offers = offers_of(key, plan, type, 1);
  plan.possible = !offers.empty();
  if (plan.possible) plan.algorithm = offers[0].algorithm, plan.workspace = offers[0].workspace;
  return plan;
}

// alpha or beta as the library reads it.
struct Factor {
  alignas(16) char bytes[16] = {};
  Factor(const Scalar& s, Dtype dtype) {
    const double parts[2] = {s.real, s.imag};
    if (dtype == Dtype::f64 || dtype == Dtype::c128) {
      std::memcpy(bytes, parts, sizeof parts);
    } else if (dtype == Dtype::i8) {
      const auto whole = static_cast<int32_t>(s.real);
      std::memcpy(bytes, &whole, sizeof whole);
    } else {
      const float narrow[2] = {static_cast<float>(parts[0]), static_cast<float>(parts[1])};
      std::memcpy(bytes, narrow, sizeof narrow);
    }
  }
};

// ---------------------------------------------------------------- Note [Measured plans]

// A product is run again and again for some milliseconds, as in a program that is busy: what is fastest on a card that
// has just rested need not be so on one that works. The first step of a program does not wait for it.
constexpr int kOffers = 8, kUsesBefore = 24;
constexpr float kWorthIt = 0.97f, kMilliseconds = 3;

const KernelFamily kHash("matmul.cuh", "hash_words", {"HASH"});

bool splits_k(const Algorithm& algorithm) {
  uint32_t splits = 0, scheme = 0;
  size_t written = 0;
  const auto has = [&](AlgorithmAttribute what, uint32_t& value) {
    return library().cublasLtMatmulAlgoConfigGetAttribute(&algorithm, what, &value, sizeof value, &written) == kDone;
  };
  return !has(kSplits, splits) || !has(kReductionScheme, scheme) || splits > 1 || scheme != 0;
}

// A hash of what lies there, and how many words are not zero.
struct Bits {
  uint64_t hash = 0, filled = 0;
  bool operator==(const Bits&) const = default;
};

class Measuring {
 public:
  Measuring(const Place& place, const MatrixProduct& p, const Plan& plan)
      : place_(place),
        p_(p),
        plan_(plan),
        words_((p.m + (p.n - 1) * p.ldd + (p.batch - 1) * p.d_step) * size_of(p.type_of_d()) / 16),
        sums_(place.device, sizeof(Bits)) {
    CRESSET_DRIVER(cuEventCreate(&start_, kEventDefault));
    CRESSET_DRIVER(cuEventCreate(&end_, kEventDefault));
  }
  ~Measuring() {
    driver().cuEventDestroy_v2(start_);
    driver().cuEventDestroy_v2(end_);
  }
  Measuring(const Measuring&) = delete;

  // Milliseconds; infinity where it does not run.
  float time(const Heuristic& h, Bits& bits) {
    const Workspace memory(place_.device, h.workspace);
    if (!run(h, memory)) return std::numeric_limits<float>::infinity();
    bits = bits_now();
    const float once = time_of(h, memory, 1);
    const int runs = std::clamp(static_cast<int>(kMilliseconds / std::max(once, 1e-3f)), 3, 32);
    return time_of(h, memory, runs);
  }
  // Of so many that are zero nothing is learned.
  bool says_enough(const Bits& bits) const { return bits.filled * 2 > static_cast<uint64_t>(words_); }

 private:
  const Place& place_;
  const MatrixProduct& p_;
  const Plan& plan_;
  const int64_t words_;
  const Workspace sums_;
  EventHandle start_ = nullptr, end_ = nullptr;

  float time_of(const Heuristic& h, const Workspace& memory, int runs) const {
    CRESSET_DRIVER(cuEventRecord(start_, place_.stream));
    for (int i = 0; i < runs; ++i)
      if (!run(h, memory)) return std::numeric_limits<float>::infinity();
    CRESSET_DRIVER(cuEventRecord(end_, place_.stream));
    CRESSET_DRIVER(cuEventSynchronize(end_));
    float milliseconds = 0;
    CRESSET_DRIVER(cuEventElapsedTime(&milliseconds, start_, end_));
    return milliseconds / static_cast<float>(runs);
  }
  bool run(const Heuristic& h, const Workspace& memory) const {
    const Factor alpha(p_.alpha, p_.dtype), beta(p_.beta, p_.dtype);
    if (p_.bias) library().cublasLtMatmulDescSetAttribute(plan_.product, kBiasPointer, &p_.bias, sizeof p_.bias);
    return library().cublasLtMatmul(handle(place_.device), plan_.product, alpha.bytes, p_.a.data, plan_.a, p_.b.data,
                                    plan_.b, beta.bytes, p_.c.data ? p_.c.data : p_.d, plan_.c, p_.d, plan_.d,
                                    &h.algorithm, memory.data(), h.workspace, place_.stream) == kDone;
  }
  Bits bits_now() {
    const auto address = reinterpret_cast<Address>(sums_.data());
    CRESSET_DRIVER(cuMemsetD8Async(address, 0, sizeof(Bits), place_.stream));
    kHash.launch(place_, {1}, std::min<int64_t>(divide_up(words_, 256), 1024), 256, 0, static_cast<const void*>(p_.d),
                 words_, sums_.data());
    finish_launches();
    Bits bits;
    CRESSET_DRIVER(cuMemcpyDtoHAsync_v2(&bits, address, sizeof bits, place_.stream));
    CRESSET_DRIVER(cuStreamSynchronize(place_.stream));
    return bits;
  }
};

// What the products write is written again by the call that asked.
void measure(const Place& place, const Key& key, const MatrixProduct& p, Plan& plan) {
  const std::vector<Heuristic> offers = offers_of(key, plan, data_type(p.dtype), kOffers);
  if (offers.size() < 2 || (!key.any_bits && splits_k(plan.algorithm))) return;
  finish_launches();
  Measuring measuring(place, p, plan);
  const Heuristic first{plan.algorithm, plan.workspace, kDone, 0, {}};
  Bits wanted, bits;
  measuring.time(first, wanted);  // a card that has waited is slower at first
  float least = measuring.time(first, wanted) * kWorthIt;
  ++product_measuring.measured;
  if (!key.any_bits && !measuring.says_enough(wanted)) return;
  const Heuristic* best = nullptr;
  for (const Heuristic& h : offers) {
    if (!key.any_bits && splits_k(h.algorithm)) continue;
    const float time = measuring.time(h, bits);
    if (time < least && (key.any_bits || bits == wanted)) least = time, best = &h;
  }
  if (!best || measuring.time(*best, bits) >= measuring.time(first, wanted) * kWorthIt) return;
  plan.algorithm = best->algorithm, plan.workspace = best->workspace;
  ++product_measuring.changed;
}

bool can_be_measured(const Place& place, const MatrixProduct& p) {
  return 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k) *
                 static_cast<double>(p.batch) >=
             product_measuring.from &&
         !p.a_scale && reinterpret_cast<uintptr_t>(p.d) % 16 == 0 && p.c.data != p.d && !is_capturing(place.stream);
}

}  // namespace

bool multiplies(Dtype d) {
  return d == Dtype::f32 || d == Dtype::f64 || d == Dtype::f16 || d == Dtype::bf16 || d == Dtype::c64 ||
         d == Dtype::c128;
}
bool has_bias_epilogue(Dtype d) { return d == Dtype::f32 || d == Dtype::f16 || d == Dtype::bf16; }

bool multiply(const Place& place, const MatrixProduct& p) {
  const void* const c = p.c.data ? p.c.data : p.d;
  Key key{};
  key.m = p.m, key.n = p.n, key.k = p.k, key.batch = p.batch;
  key.lda = p.a.ld, key.ldb = p.b.ld, key.ldd = p.ldd, key.ldc = p.c.data ? p.c.ld : p.ldd;
  key.a_step = p.a.batch_step, key.b_step = p.b.batch_step, key.d_step = p.d_step,
  key.c_step = p.c.data ? p.c.batch_step : p.d_step;
  key.dtype = static_cast<uint8_t>(p.dtype), key.device = static_cast<uint8_t>(place.device);
  key.transposed = static_cast<uint8_t>(p.a.transposed | p.b.transposed << 1), key.bias = p.bias != nullptr;
  const std::atomic<bool>& setting = p.dtype == Dtype::f16    ? product_settings.reduced_f16
                                     : p.dtype == Dtype::bf16 ? product_settings.reduced_bf16
                                                              : product_settings.tf32;
  key.fast = setting.load(std::memory_order_relaxed) || (p.tf32 && p.dtype == Dtype::f32);
  key.alignment_a = alignment_of(p.a.data), key.alignment_b = alignment_of(p.b.data), key.alignment_c = alignment_of(c),
  key.alignment_d = alignment_of(p.d);
  key.b_dtype = static_cast<uint8_t>(p.type_of_b()), key.d_dtype = static_cast<uint8_t>(p.type_of_d()),
  key.fast_sums = p.fast_sums;
  key.alignment_bias = p.bias ? alignment_of(p.bias) : 0;
  const int level = product_measuring.level.load(std::memory_order_relaxed);
  key.any_bits = level == ProductMeasuring::any_bits;

  std::lock_guard guard(plans().lock);
  auto found = plans().all.find(key);
  if (found == plans().all.end()) {
    plans().make_room();
    found = plans().all.emplace(key, KnownPlan{make_plan(key, p)}).first;
  }
  Plan& plan = found->second.plan;
  if (!plan.possible) return false;
  if (level != ProductMeasuring::never && found->second.uses <= kUsesBefore && ++found->second.uses > kUsesBefore &&
      can_be_measured(place, p)) {
    try {
      measure(place, key, p, plan);
    } catch (const std::exception&) {  // there is no memory for it: the plan is as good as it was
    }
  }
  const Workspace workspace(place.device, plan.workspace);
  // The factors first: there is no gap between the members, whose bytes are compared (Note [Replaying launches]).
  enqueue_on(
      place.device, place.stream, "cublasLtMatmul",
      [alpha = Factor(p.alpha, p.dtype), beta = Factor(p.beta, p.dtype), plan, handle = handle(place.device),
       memory = workspace.data(), bias = p.bias, a_scale = p.a_scale, b_scale = p.b_scale, a = p.a.data, b = p.b.data,
       c, d = p.d](StreamHandle stream) {
        if (bias) library().cublasLtMatmulDescSetAttribute(plan.product, kBiasPointer, &bias, sizeof bias);
        if (a_scale) set_scales(plan.product, a_scale, b_scale);
        return library().cublasLtMatmul(handle, plan.product, alpha.bytes, a, plan.a, b, plan.b, beta.bytes, c, plan.c,
                                        d, plan.d, &plan.algorithm, memory, plan.workspace, stream);
      },
      name_of_status);
  return true;
}

void check_product(bool done, const char* who, const MatrixProduct& p) {
  check(done, who, ": cuBLAS has no algorithm for a product of ", name_of(p.dtype), " with m=", p.m, ", n=", p.n,
        ", k=", p.k, ", batch=", p.batch, ", leading dimensions ", p.a.ld, ", ", p.b.ld, ", ", p.ldd);
}

}  // namespace cresset::cuda
