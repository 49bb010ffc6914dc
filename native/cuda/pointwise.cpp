#include "cuda/pointwise.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include "cuda/launch.h"

namespace cresset::cuda {

std::string (*formula_text)(const std::string&, int, const char*) = nullptr;

namespace {

constexpr int kBlockSize = 256;
constexpr int kMostDims = 12;
constexpr int kMostAttributes = 4;
constexpr const char* kComputeNames[kComputes] = {"f32", "f64", "i64", "u64", "b8", "c64", "c128"};

// What a kernel is compiled for.
struct Key {
  const void* op;          // the operator, or null for a copy
  int8_t which;
  uint8_t compute, device, count;
  uint8_t dtypes[kMaxOperands];
  uint8_t on_host, vector, rank, big;
  bool operator==(const Key& o) const { return std::memcmp(this, &o, sizeof(Key)) == 0; }
};
static_assert(sizeof(Key) == 24);
struct KeyHash {
  size_t operator()(const Key& k) const {
    uint64_t words[3];
    std::memcpy(words, &k, sizeof words);
    uint64_t h = words[0];
    for (const uint64_t w : {words[1], words[2]}) h = (h ^ w) * 0x9e3779b97f4a7c15u, h ^= h >> 32;
    return h;
  }
};
struct Kernels {
  std::mutex lock;
  std::unordered_map<Key, Kernel, KeyHash> all;
};
Kernels& kernels() {
  static auto* the = new Kernels;
  return *the;
}

int unroll_of(const Key& k) { return k.vector ? (k.count > 2 ? 2 : 4) : 2; }

Kernel compile(const Key& k, const Operator* op, const Operand* operands) {
  const auto type = [&](int i) { return join("dtype_", tag_of(k.on_host >> i & 1 ? operands[i].loop_dtype : static_cast<Dtype>(k.dtypes[i]))); };
  std::string text = op ? formula_text(op->name(), k.which, kComputeNames[k.compute])
                        : join("#include \"math.cuh\"\n__device__ __forceinline__ ", type(1), " formula(", type(1), " x, const Attribute*) { return x; }\n");
  std::string inputs, arguments;
  for (int i = 1; i < k.count; ++i) {
    const bool number = k.on_host >> i & 1;
    inputs += join(number ? " N(" : " P(", i, ", ", type(i), ")");
    arguments += join(number ? " N(" : " P(", i, ")");
  }
  text += join("#define RESULT ", type(0), "\n#define OPERANDS ", static_cast<int>(k.count), "\n#define EACH_INPUT(P, N)", inputs, "\n#define ARGUMENTS(P, N)", arguments, "\n");
  text += "#include \"pointwise.cuh\"\n";
  std::vector<std::string> options = {join("-DBLOCK=", kBlockSize), join("-DUNROLL=", unroll_of(k))};
  if (k.vector) options.push_back(join("-DVECTOR=", static_cast<int>(k.vector)));
  else options.push_back(join("-DRANK=", static_cast<int>(k.rank))), options.push_back(join("-DBIG=", static_cast<int>(k.big)));
  return load_kernel(k.device, text, k.vector ? "pointwise" : "pointwise_strided", options);
}

const Kernel& find(const Key& k, const Operator* op, const Operand* operands) {
  std::lock_guard guard(kernels().lock);
  if (const auto found = kernels().all.find(k); found != kernels().all.end()) return found->second;
  return kernels().all[k] = compile(k, op, operands);
}

// The parameters of a kernel, laid out as struct Plan and struct StridedPlan in pointwise.cuh: everything is a multiple of eight bytes.
class Parameters {
 public:
  void put(const void* data, size_t bytes) {
    std::memcpy(bytes_ + size_, data, bytes);
    size_ += bytes;
  }
  template <class T>
  void put(const T& value) {
    static_assert(sizeof(T) % 8 == 0);
    put(&value, sizeof(T));
  }
  void skip(size_t bytes) { size_ += bytes; }
  const char* data() const { return bytes_; }

 private:
  alignas(16) char bytes_[8 + kMaxOperands * 16 + kMostAttributes * sizeof(ScalarAttribute) + kMostDims * 16 + kMaxOperands * kMostDims * 8];
  size_t size_ = 0;
};

struct Divider {
  uint32_t divisor, magic, shift, unused;
};
// quotient = (umulhi(n, magic) + n) >> shift for n below 2^31.
Divider divider(int64_t size) {
  const auto d = static_cast<uint32_t>(size);
  const uint32_t shift = d <= 1 ? 0 : 32 - static_cast<uint32_t>(std::countl_zero(d - 1));
  const uint64_t magic = ((uint64_t{1} << 32) * ((uint64_t{1} << shift) - d)) / d + 1;
  return {d, static_cast<uint32_t>(magic), shift, 0};
}

// One number in the dtype that the kernel reads it in.
void put_number(Parameters& to, const Operand& o) {
  char bytes[16] = {};
  if (o.dtype == o.loop_dtype) {
    std::memcpy(bytes, o.data, static_cast<size_t>(size_of(o.dtype)));
  } else {
    Tensor one = empty({}, o.dtype);
    std::memcpy(one.bytes(), o.data, static_cast<size_t>(size_of(o.dtype)));
    const Tensor converted = convert(one, o.loop_dtype);
    std::memcpy(bytes, converted.bytes(), static_cast<size_t>(size_of(o.loop_dtype)));
  }
  to.put(bytes, sizeof bytes);
}

void put_plan(Parameters& to, int64_t count, const Operand* operands, int n, uint32_t on_host, const ScalarAttribute* attributes, int attribute_count) {
  to.put(count);
  for (int i = 0; i < n; ++i) {
    if (on_host >> i & 1) {
      put_number(to, operands[i]);
    } else {
      to.put(operands[i].data);
      to.skip(8);
    }
  }
  if (attribute_count) to.put(attributes, static_cast<size_t>(attribute_count) * sizeof(ScalarAttribute));
  to.skip(static_cast<size_t>(kMostAttributes - attribute_count) * sizeof(ScalarAttribute));
}

// Every operand in memory walks the elements in the order in which they lie.
bool is_dense_walk(DimsView sizes, const Operand* operands, int n, uint32_t on_host) {
  for (int i = 1; i < n; ++i)
    if (!(on_host >> i & 1) && !(operands[i].strides == operands[0].strides)) return false;
  return is_contiguous(sizes, operands[0].strides) || is_dense(sizes, operands[0].strides);
}

void launch_elements(const Operator* op, int which, Compute compute, DimsView sizes, Operand* operands, int n, uint32_t on_host, const ScalarAttribute* attributes, int attribute_count, Device device) {
  int64_t count = 1;
  for (const int64_t s : sizes) count *= s;
  if (count == 0) return;
  const Place place(device);
  if (op && op->functional) op = op->functional;  // the in-place form computes the same
  Key key{op, static_cast<int8_t>(which), static_cast<uint8_t>(compute), static_cast<uint8_t>(place.device), static_cast<uint8_t>(n), {}, static_cast<uint8_t>(on_host), 0, 0, 0};
  int64_t widest = 1;
  for (int i = 0; i < n; ++i) {
    key.dtypes[i] = static_cast<uint8_t>(on_host >> i & 1 ? operands[i].loop_dtype : operands[i].dtype);
    if (!(on_host >> i & 1)) widest = std::max(widest, size_of(operands[i].dtype));
  }
  Parameters parameters;
  if (is_dense_walk(sizes, operands, n, on_host)) {
    key.vector = static_cast<uint8_t>(std::max<int64_t>(16 / widest, 1));
    for (int i = 0; i < n; ++i)
      if (!(on_host >> i & 1) && reinterpret_cast<uintptr_t>(operands[i].data) % static_cast<uintptr_t>(key.vector * size_of(operands[i].dtype)) != 0) key.vector = 1;
    if (count < key.vector * 4) key.vector = 1;
    put_plan(parameters, count, operands, n, on_host, attributes, attribute_count);
    void* arguments[] = {const_cast<char*>(parameters.data())};
    const int64_t step = int64_t{kBlockSize} * key.vector * unroll_of(key);
    check_status(driver().cuLaunchKernel(find(key, op, operands).function, static_cast<unsigned>(divide_up(count, step)), 1, 1, kBlockSize, 1, 1, 0, place.stream, arguments, nullptr), "cuLaunchKernel");
    return;
  }
  Dims walked(sizes);
  Dims strides[kMaxOperands];
  Dims* pointers[kMaxOperands];
  int in_memory = 0;
  for (int i = 0; i < n; ++i) {
    if (on_host >> i & 1) continue;
    strides[i] = operands[i].strides;
    pointers[in_memory++] = &strides[i];
  }
  coalesce(walked, pointers, in_memory);
  const int64_t rank = std::max<int64_t>(walked.size(), 1);
  check_implemented(rank <= kMostDims, op ? op->name() : std::string("copy_"), ": more than ", kMostDims, " dimensions that cannot be merged, on '", device, "'");
  key.rank = static_cast<uint8_t>(rank);
  key.big = count >= (int64_t{1} << 31);
  put_plan(parameters, count, operands, n, on_host, attributes, attribute_count);
  for (int64_t d = 0; d < rank; ++d) parameters.put(divider(walked.empty() ? 1 : walked[d]));
  for (int i = 0; i < n; ++i)
    for (int64_t d = 0; d < rank; ++d) parameters.put(on_host >> i & 1 || walked.empty() ? int64_t{0} : strides[i][d]);
  void* arguments[] = {const_cast<char*>(parameters.data())};
  const int64_t step = int64_t{kBlockSize} * unroll_of(key);
  check_status(driver().cuLaunchKernel(find(key, op, operands).function, static_cast<unsigned>(divide_up(count, step)), 1, 1, kBlockSize, 1, 1, 0, place.stream, arguments, nullptr), "cuLaunchKernel");
}

}  // namespace

void launch_formula(const PointwiseLaunch& l) {
  launch_elements(&l.op, l.which, l.compute, l.sizes, l.operands, l.count, l.on_host, l.attributes, l.op.pointwise->scalar_count, l.device);
}

void launch_copy(const Operand& to, const Operand& from, DimsView sizes, Device device) {
  Operand operands[2] = {to, from};
  launch_elements(nullptr, -1, Compute::f32, sizes, operands, 2, 0, nullptr, 0, device);
}

void launch_fill(const Operand& to, const void* element, DimsView sizes, Device device) {
  Operand operands[2] = {to, {static_cast<char*>(const_cast<void*>(element)), to.dtype, to.dtype, {}}};
  launch_elements(nullptr, -1, Compute::f32, sizes, operands, 2, 2, nullptr, 0, device);
}

}  // namespace cresset::cuda
