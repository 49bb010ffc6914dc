// cuBLASLt's interface for products of matrices: descriptions, what is supported, and the call. Columns lie one after
// another (ORDER_COL).
#include <algorithm>
#include <cstdio>
#include <memory>

#include "emulator.h"
#include "matrix_product.h"

namespace {

using namespace emulator;

enum Result {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_NOT_INITIALIZED = 1,
  CUBLAS_STATUS_INVALID_VALUE = 7,
  CUBLAS_STATUS_EXECUTION_FAILED = 13,
  CUBLAS_STATUS_NOT_SUPPORTED = 15,
};

struct Handle {
  Device* device;
};
struct Description {
  int32_t compute, scale, pointer_mode = 0, transpose_a = 0, transpose_b = 0, transpose_c = 0, fill = 0;
  uint32_t epilogue = 1;
  void* bias = nullptr;
  int64_t bias_stride = 0;
  int32_t bias_type = -1;
  const float *a_scale = nullptr, *b_scale = nullptr;
};
struct Preference {
  uint64_t workspace = 0;
  uint32_t alignment[4] = {256, 256, 256, 256};  // of A, B, C, D
};
struct Algorithm {
  uint64_t magic, workspace, alignment[4], unused[2];
};
constexpr uint64_t algorithm_magic = 0x656d756c61746564;
struct Heuristic {
  Algorithm algorithm;
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
};
static_assert(sizeof(Algorithm) == 64 && sizeof(Heuristic) == 96);

template <class T>
Result set(T& place, const void* value, size_t bytes) {
  if (!value || bytes < sizeof(T)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&place, value, sizeof(T));
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
Result ignore(const void* value, size_t bytes) {
  T unused;
  return set(unused, value, bytes);
}

Result unsupported(const char* why) {
  complain("cublasLtMatmul: %s", why);
  return CUBLAS_STATUS_NOT_SUPPORTED;
}

bool is_float8(uint32_t type) { return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2; }

// The combinations of types of NVIDIA's table, as far as the emulator multiplies them.
bool types_are_supported(const Description& d, const Layout& a, const Layout& b, const Layout& c, const Layout& out) {
  const auto all_are = [&](uint32_t type) {
    return a.type == type && b.type == type && c.type == type && out.type == type;
  };
  switch (d.compute) {
    case 64:
    case 65: return d.scale == CUDA_R_16F && all_are(CUDA_R_16F);
    case 68:
    case 69:
    case 74:
    case 75:
    case 77:
      if (d.scale == CUDA_C_32F) return all_are(CUDA_C_32F);
      if (d.scale != CUDA_R_32F || c.type != out.type) return false;
      if (is_float8(a.type) && is_float8(b.type))
        return (a.type == CUDA_R_8F_E4M3 || b.type == CUDA_R_8F_E4M3) &&
               (out.type == CUDA_R_16F || out.type == CUDA_R_16BF || out.type == CUDA_R_32F);
      if (a.type != b.type) return false;
      if (a.type == CUDA_R_16F || a.type == CUDA_R_16BF) return out.type == a.type || out.type == CUDA_R_32F;
      return a.type == CUDA_R_32F && out.type == CUDA_R_32F;
    case 70:
    case 71: return (d.scale == CUDA_R_64F && all_are(CUDA_R_64F)) || (d.scale == CUDA_C_64F && all_are(CUDA_C_64F));
    case 72:
    case 73:
      return d.scale == CUDA_R_32I && a.type == CUDA_R_8I && b.type == CUDA_R_8I && c.type == CUDA_R_32I &&
             out.type == CUDA_R_32I;
    default: return false;
  }
}

Result check(const Description& d, const Layout& a, const Layout& b, const Layout& c, const Layout& out) {
  for (const Layout* layout : {&a, &b, &c, &out}) {
    if (layout->order != 0) return unsupported("only the column order is emulated");
    if (layout->rows == 0 || layout->columns == 0 || layout->batches < 1 || layout->leading < int64_t(layout->rows)) {
      complain("cublasLtMatmul: a matrix of %llu x %llu with leading dimension %lld and %d batches",
               static_cast<unsigned long long>(layout->rows), static_cast<unsigned long long>(layout->columns),
               static_cast<long long>(layout->leading), layout->batches);
      return CUBLAS_STATUS_INVALID_VALUE;
    }
  }
  if (!types_are_supported(d, a, b, c, out)) {
    complain("cublasLtMatmul: no product with compute type %d, scale type %d and matrix types %u %u %u %u", d.compute,
             d.scale, a.type, b.type, c.type, out.type);
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  const uint64_t m = d.transpose_a ? a.columns : a.rows, inner = d.transpose_a ? a.rows : a.columns;
  const uint64_t inner_b = d.transpose_b ? b.columns : b.rows, n = d.transpose_b ? b.rows : b.columns;
  if (inner != inner_b || out.rows != m || out.columns != n || c.rows != m || c.columns != n ||
      a.batches != out.batches || b.batches != out.batches || c.batches != out.batches) {
    complain("cublasLtMatmul: op(A) is %llu x %llu, op(B) %llu x %llu, D %llu x %llu, with %d, %d and %d batches",
             static_cast<unsigned long long>(m), static_cast<unsigned long long>(inner),
             static_cast<unsigned long long>(inner_b), static_cast<unsigned long long>(n),
             static_cast<unsigned long long>(out.rows), static_cast<unsigned long long>(out.columns), a.batches,
             b.batches, out.batches);
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (d.pointer_mode != 0) return unsupported("alpha and beta on the device are not emulated");
  if (d.transpose_c != 0 || d.fill != 0) return unsupported("a transposed C and triangles are not emulated");
  if (d.compute >= 72 && d.compute <= 73) {
    if (d.transpose_a != 1 || d.transpose_b != 0) return unsupported("int8 wants A transposed and B as it is");
    if (m % 4 || inner % 4 || a.leading % 4 || b.leading % 4 || c.leading % 4 || out.leading % 4)
      return unsupported("int8 wants rows, the inner dimension and the leading dimensions to be multiples of 4");
  }
  if (is_float8(a.type)) {
    if (d.transpose_a != 1 || d.transpose_b != 0) return unsupported("8-bit floats want A transposed and B as it is");
    if (m % 16 || inner % 16 || a.leading % 16 || b.leading % 16)
      return unsupported("8-bit floats want rows and the inner dimension to be multiples of 16");
  }
  constexpr uint32_t epilogues[] = {1,     kRelu,         kBias,          kRelu | kBias,
                                    kGelu, kGelu | kBias, kBiasGradientA, kBiasGradientB};
  if (std::find(std::begin(epilogues), std::end(epilogues), d.epilogue) == std::end(epilogues))
    return unsupported("this epilogue is not emulated");
  if (d.epilogue != 1) {
    if (d.scale == CUDA_C_32F || d.scale == CUDA_C_64F || d.scale == CUDA_R_32I)
      return unsupported("no epilogue for complex numbers and integers");
    const bool has_bias = d.epilogue & (kBias | kBiasGradientA | kBiasGradientB);
    if (has_bias && d.bias_type != -1 && d.bias_type != int32_t(out.type))
      return unsupported("the bias has another type than D");
  }
  return CUBLAS_STATUS_SUCCESS;
}

std::complex<double> scalar_at(const void* place, int type) {
  return with_type(type, [&]<class T>(T) -> std::complex<double> {
    const T value = *static_cast<const T*>(place);
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16> || std::is_same_v<T, Float8E4M3> ||
                  std::is_same_v<T, Float8E5M2>)
      return static_cast<float>(value);
    else if constexpr (std::is_arithmetic_v<T>)
      return static_cast<double>(value);
    else
      return {static_cast<double>(value.real()), static_cast<double>(value.imag())};
  });
}

bool addresses_are_good(const Product& p, Device* device) {
  const auto good = [&](const char* what, const void* data, const Layout& layout) {
    return device_may_use("cublasLtMatmul", what, device, reinterpret_cast<Address>(data),
                          layout.extent() * bytes_of(int(layout.type)));
  };
  if (!good("A", p.a_data, p.a) || !good("B", p.b_data, p.b) || !good("D", p.d_data, p.d)) return false;
  if (p.beta != 0.0 && !good("C", p.c_data, p.c)) return false;
  for (const float* scale : {p.a_scale, p.b_scale})
    if (scale && !device_may_use("cublasLtMatmul", "a scale", device, reinterpret_cast<Address>(scale), 4))
      return false;
  if (!(p.epilogue & (kBias | kBiasGradientA | kBiasGradientB))) return true;
  const uint64_t entries = p.epilogue & kBiasGradientB ? p.d.columns : p.d.rows;
  return device_may_use("cublasLtMatmul", "the bias", device, reinterpret_cast<Address>(p.bias),
                        (entries + uint64_t(p.d.batches - 1) * uint64_t(p.bias_stride)) * bytes_of(int(p.d.type)));
}

}  // namespace

EMULATOR_API size_t cublasLtGetVersion() { return 130100; }
EMULATOR_API const char* cublasLtGetStatusName(int status) {
  switch (status) {
    case 0: return "CUBLAS_STATUS_SUCCESS";
    case 1: return "CUBLAS_STATUS_NOT_INITIALIZED";
    case 7: return "CUBLAS_STATUS_INVALID_VALUE";
    case 13: return "CUBLAS_STATUS_EXECUTION_FAILED";
    case 15: return "CUBLAS_STATUS_NOT_SUPPORTED";
    default: return "CUBLAS_STATUS unknown";
  }
}
EMULATOR_API const char* cublasLtGetStatusString(int status) {
  switch (status) {
    case 0: return "success";
    case 1: return "the library was not initialized";
    case 7: return "an unsupported value or parameter was passed to the function";
    case 13: return "the function failed to launch on the GPU";
    case 15: return "the functionality requested is not supported";
    default: return "unknown error";
  }
}

EMULATOR_API Result cublasLtCreate(Handle** handle) {
  std::lock_guard guard(lock());
  if (!current()) return CUBLAS_STATUS_NOT_INITIALIZED;
  *handle = new Handle{current()};
  return CUBLAS_STATUS_SUCCESS;
}
EMULATOR_API Result cublasLtDestroy(Handle* handle) { return delete handle, CUBLAS_STATUS_SUCCESS; }

EMULATOR_API Result cublasLtMatmulDescCreate(Description** description, int compute, int scale) {
  *description = new Description{compute, scale};
  return CUBLAS_STATUS_SUCCESS;
}
EMULATOR_API Result cublasLtMatmulDescDestroy(Description* description) {
  return delete description, CUBLAS_STATUS_SUCCESS;
}
EMULATOR_API Result cublasLtMatmulDescSetAttribute(Description* d, int attribute, const void* value, size_t bytes) {
  switch (attribute) {
    case 0: return set(d->compute, value, bytes);
    case 1: return set(d->scale, value, bytes);
    case 2: return set(d->pointer_mode, value, bytes);
    case 3: return set(d->transpose_a, value, bytes);
    case 4: return set(d->transpose_b, value, bytes);
    case 5: return set(d->transpose_c, value, bytes);
    case 6: return set(d->fill, value, bytes);
    case 7: return set(d->epilogue, value, bytes);
    case 8: return set(d->bias, value, bytes);
    case 10: return set(d->bias_stride, value, bytes);
    case 15: return ignore<int32_t>(value, bytes);  // number of multiprocessors
    case 17: return set(d->a_scale, value, bytes);
    case 18: return set(d->b_scale, value, bytes);
    case 25: return ignore<int8_t>(value, bytes);  // fast accumulation of 8-bit floats
    case 26: return set(d->bias_type, value, bytes);
    default:
      complain("cublasLtMatmulDescSetAttribute: attribute %d is not emulated", attribute);
      return CUBLAS_STATUS_INVALID_VALUE;
  }
}

EMULATOR_API Result cublasLtMatrixLayoutCreate(Layout** layout, int type, uint64_t rows, uint64_t columns,
                                               int64_t leading) {
  *layout = new Layout;
  (*layout)->type = uint32_t(type), (*layout)->rows = rows, (*layout)->columns = columns, (*layout)->leading = leading;
  return CUBLAS_STATUS_SUCCESS;
}
EMULATOR_API Result cublasLtMatrixLayoutDestroy(Layout* layout) { return delete layout, CUBLAS_STATUS_SUCCESS; }
EMULATOR_API Result cublasLtMatrixLayoutSetAttribute(Layout* layout, int attribute, const void* value, size_t bytes) {
  switch (attribute) {
    case 0: return set(layout->type, value, bytes);
    case 1: return set(layout->order, value, bytes);
    case 2: return set(layout->rows, value, bytes);
    case 3: return set(layout->columns, value, bytes);
    case 4: return set(layout->leading, value, bytes);
    case 5: return set(layout->batches, value, bytes);
    case 6: return set(layout->stride, value, bytes);
    default:
      complain("cublasLtMatrixLayoutSetAttribute: attribute %d is not emulated", attribute);
      return CUBLAS_STATUS_INVALID_VALUE;
  }
}

EMULATOR_API Result cublasLtMatmulPreferenceCreate(Preference** preference) {
  *preference = new Preference;
  return CUBLAS_STATUS_SUCCESS;
}
EMULATOR_API Result cublasLtMatmulPreferenceDestroy(Preference* preference) {
  return delete preference, CUBLAS_STATUS_SUCCESS;
}
EMULATOR_API Result cublasLtMatmulPreferenceSetAttribute(Preference* preference, int attribute, const void* value,
                                                         size_t bytes) {
  switch (attribute) {
    case 0:
    case 3: return ignore<uint32_t>(value, bytes);  // how to search, which reductions
    case 1: return set(preference->workspace, value, bytes);
    case 5:
    case 6:
    case 7:
    case 8: return set(preference->alignment[attribute - 5], value, bytes);
    case 9: return ignore<float>(value, bytes);      // waves
    case 12: return ignore<uint64_t>(value, bytes);  // implementations
    default:
      complain("cublasLtMatmulPreferenceSetAttribute: attribute %d is not emulated", attribute);
      return CUBLAS_STATUS_INVALID_VALUE;
  }
}

EMULATOR_API Result cublasLtMatmulAlgoGetHeuristic(Handle* handle, Description* d, Layout* a, Layout* b, Layout* c,
                                                   Layout* out, Preference* preference, int wanted, Heuristic* results,
                                                   int* count) {
  *count = 0;
  if (!handle || !d || !a || !b || !c || !out || !preference || wanted < 1 || !results)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (Result result = check(*d, *a, *b, *c, *out)) return result;
  for (*count = 0; *count < std::min(wanted, 2); ++*count) {  // a second one, which differs in nothing
    Heuristic& found = results[*count] = {};
    found.algorithm.magic = algorithm_magic;
    found.workspace = found.algorithm.workspace = std::min<uint64_t>(preference->workspace, 1024);
    for (int i = 0; i < 4; ++i) found.algorithm.alignment[i] = preference->alignment[i];
    found.waves = 1;
  }
  return CUBLAS_STATUS_SUCCESS;
}

EMULATOR_API Result cublasLtMatmulAlgoConfigGetAttribute(const Algorithm* algorithm, int, void* value, size_t bytes,
                                                         size_t* written) {
  if (!algorithm || algorithm->magic != algorithm_magic || !value) return CUBLAS_STATUS_INVALID_VALUE;
  std::memset(value, 0, bytes);  // k is not split
  if (written) *written = bytes;
  return CUBLAS_STATUS_SUCCESS;
}

EMULATOR_API Result cublasLtMatmul(Handle* handle, Description* d, const void* alpha, const void* a_data, Layout* a,
                                   const void* b_data, Layout* b, const void* beta, const void* c_data, Layout* c,
                                   void* d_data, Layout* out, const Algorithm* algorithm, void* workspace,
                                   size_t workspace_bytes, void* stream_handle) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!d || !alpha || !beta || !a || !b || !c || !out) return CUBLAS_STATUS_INVALID_VALUE;
  if (Result result = check(*d, *a, *b, *c, *out)) return result;
  const std::complex<double> beta_value = scalar_at(beta, d->scale);
  if (algorithm) {
    if (algorithm->magic != algorithm_magic) return CUBLAS_STATUS_INVALID_VALUE;
    if (workspace_bytes < algorithm->workspace) return unsupported("the workspace is smaller than the algorithm wants");
    const void* all[] = {a_data, b_data, beta_value == 0.0 ? nullptr : c_data, d_data};
    for (int i = 0; i < 4; ++i)  // no kernel wants more than 16 bytes
      if (reinterpret_cast<uintptr_t>(all[i]) % std::min<uint64_t>(algorithm->alignment[i], 16) != 0) {
        complain("cublasLtMatmul: %c at %p is less aligned than the algorithm was asked for (%llu bytes)", "ABCD"[i],
                 all[i], static_cast<unsigned long long>(algorithm->alignment[i]));
        return CUBLAS_STATUS_INVALID_VALUE;
      }
  }
  std::lock_guard guard(lock());
  Stream* stream = find_stream(stream_handle);
  if (!stream || stream->device != handle->device) return unsupported("the stream is not one of the handle's device");
  if (!device_may_use("cublasLtMatmul", "the workspace", handle->device, reinterpret_cast<Address>(workspace),
                      workspace_bytes))
    return CUBLAS_STATUS_INVALID_VALUE;
  auto product = std::make_shared<Product>();
  product->compute = d->compute, product->scale = d->scale, product->transpose_a = d->transpose_a,
  product->transpose_b = d->transpose_b;
  product->epilogue = d->epilogue, product->bias = d->bias, product->bias_stride = d->bias_stride;
  product->a_scale = d->a_scale, product->b_scale = d->b_scale;
  product->a = *a, product->b = *b, product->c = *c, product->d = *out;
  product->a_data = a_data, product->b_data = b_data, product->c_data = c_data, product->d_data = d_data;
  product->alpha = scalar_at(alpha, d->scale), product->beta = beta_value;
  const Status status = submit(stream, "cublasLtMatmul", [product, device = handle->device] {
    if (!addresses_are_good(*product, device)) return CUDA_ERROR_ILLEGAL_ADDRESS;
    multiply(*product);
    return CUDA_SUCCESS;
  });
  return status == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}
