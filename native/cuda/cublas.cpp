#include "cuda/cublas.h"

#include <bit>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include "base/error.h"
#include "cuda/library.h"
#include "cuda/workspace.h"

namespace cresset::cuda {

ProductSettings product_settings;

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
      b_dtype, d_dtype, fast_sums, unused[3];
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
struct Plans {
  static constexpr size_t kMost = 8192;  // then all are forgotten: programs whose shapes never come again
  std::mutex lock;
  std::unordered_map<Key, Plan, KeyHash> all;

  void make_room() {
    if (all.size() < kMost) return;
    finish_launches();  // products with them may be on their way
    for (const auto& [key, plan] : all) {
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
  Heuristic best{};
  int found = 0;
  const LtStatus status = library().cublasLtMatmulAlgoGetHeuristic(handle(key.device), plan.product, plan.a, plan.b,
                                                                   plan.c, plan.d, preference, 1, &best, &found);
  library().cublasLtMatmulPreferenceDestroy(preference);
  plan.possible = status == kDone && found > 0 && best.state == kDone;
  plan.algorithm = best.algorithm;
  plan.workspace = best.workspace;
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
  key.fast = setting.load(std::memory_order_relaxed);
  key.alignment_a = alignment_of(p.a.data), key.alignment_b = alignment_of(p.b.data), key.alignment_c = alignment_of(c),
  key.alignment_d = alignment_of(p.d);
  key.b_dtype = static_cast<uint8_t>(p.type_of_b()), key.d_dtype = static_cast<uint8_t>(p.type_of_d()),
  key.fast_sums = p.fast_sums;
  key.alignment_bias = p.bias ? alignment_of(p.bias) : 0;

  std::lock_guard guard(plans().lock);
  auto found = plans().all.find(key);
  if (found == plans().all.end()) {
    plans().make_room();
    found = plans().all.emplace(key, make_plan(key, p)).first;
  }
  const Plan& plan = found->second;
  if (!plan.possible) return false;
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
