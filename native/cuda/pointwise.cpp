#include "cuda/pointwise.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "cuda/divider.h"
#include "cuda/launch.h"
#include "cuda/printed.h"

namespace cresset::cuda {

namespace {

constexpr int kBlockSize = 256;
constexpr int kMostDims = 12;
constexpr int kMostAttributes = 4;
constexpr const char* kComputeNames[kComputes] = {"f32", "f64", "i64", "u64", "b8", "c64", "c128"};

// What a kernel is compiled for.
struct Key {
  const void* op;  // the operator, or null for a copy
  int8_t which;
  uint8_t compute, device, count;
  uint8_t dtypes[kMaxOperands];
  uint8_t on_host, vector, rank, big;
  uint8_t inner, alike, unused[6];  // strided: elements of a vector; operands that are one element along its dimension
  bool operator==(const Key& o) const { return std::memcmp(this, &o, sizeof(Key)) == 0; }
};
static_assert(sizeof(Key) == 32);
struct KeyHash {
  size_t operator()(const Key& k) const {
    uint64_t words[4];
    std::memcpy(words, &k, sizeof words);
    uint64_t h = words[0];
    for (const uint64_t w : {words[1], words[2], words[3]}) h = (h ^ w) * 0x9e3779b97f4a7c15u, h ^= h >> 32;
    return h;
  }
};
struct Compiled {
  Kernel* kernel = nullptr;
  int unroll = 1;  // vectors, or elements where it is strided, that a thread has
};
struct Kernels {
  std::mutex lock;
  std::unordered_map<Key, Compiled, KeyHash> all;
};
Kernels& kernels() {
  static auto* the = new Kernels;
  return *the;
}
// What the thread launched last, by the low bits of the hash: found without a lock.
struct Recent {
  Key key;
  Compiled compiled;
};
constexpr size_t kRecent = 512;
// Not thread-local data itself: that of a new thread must be small, since nobody can be told when there is no memory
// for it.
Recent& recent(size_t hash) {
  static thread_local std::unique_ptr<Recent[]> all = std::make_unique<Recent[]>(kRecent);
  return all[hash % kRecent];
}

// How many functions of some length a formula calls: exp, but not floor. One that is long by itself counts as two.
int count_functions(std::string_view text) {
  constexpr std::string_view kShort[] = {"abs", "floor", "ceil", "trunc", "rint", "copysign", "signbit", "add",
                                         "sub", "mul",   "neg",  "real",  "imag", "conj",     "complex"},
                             kLong[] = {"erfc", "erf_inverse", "pow", "tan", "lgamma"};
  constexpr std::string_view kCall = "math::";
  int count = text.find("if (") != text.npos ? 2 : 0;
  for (size_t at = text.find(kCall); at != text.npos; at = text.find(kCall, at)) {
    at += kCall.size();
    const std::string_view name = text.substr(at, text.find('(', at) - at);
    if (std::ranges::find(kShort, name) == std::end(kShort))
      count += std::ranges::find(kLong, name) == std::end(kLong) ? 1 : 2;
  }
  return count;
}
// A load and a store of 16 bytes a thread keep the memory busy, and leave the fewest threads behind at the end. Of
// smaller ones a thread has several, and of long formulas two, so that their steps overlap.
int unroll_of(const Key& k, int functions) {
  if (k.inner > 1) return 1;
  if (!k.vector) return !k.op ? 4 : functions ? 1 : 2;  // copies that go against the order of memory wait longest
  const bool reads = (k.on_host | 1u) != (1u << k.count) - 1;
  if (k.vector == 1) return 4;
  if (!reads) return 1;
  const int64_t stored = k.vector * size_of(static_cast<Dtype>(k.dtypes[0]));
  if (stored < 16) return k.count <= 2 && !functions ? 4 : 2;
  const bool is_complex_one = is_complex(static_cast<Dtype>(k.dtypes[0]));
  return functions > 1 || (functions && (k.vector > 4 || is_complex_one)) ? 2 : 1;
}

Compiled compile(const Key& k, const Operator* op) {
  const auto type = [&](int i) { return join("dtype_", tag_of(static_cast<Dtype>(k.dtypes[i]))); };
  std::string text = op ? formula_text(op->pointwise->name, k.which, kComputeNames[k.compute])
                        : join("#include \"math.cuh\"\n__device__ __forceinline__ ", type(1), " formula(", type(1),
                               " x, const Attribute*) { return x; }\n");
  const int unroll = unroll_of(k, count_functions(text));
  std::string inputs, arguments;
  for (int i = 1; i < k.count; ++i) {
    const bool number = k.on_host >> i & 1;
    inputs += join(number ? " N(" : " P(", i, ", ", type(i), ")");
    arguments += join(number ? " N(" : " P(", i, ")");
  }
  text += join("#define RESULT ", type(0), "\n#define OPERANDS ", static_cast<int>(k.count),
               "\n#define EACH_INPUT(P, N)", inputs, "\n#define ARGUMENTS(P, N)", arguments, "\n");
  text += "#include \"pointwise.cuh\"\n";
  std::vector<std::string> options = {join("-DBLOCK=", kBlockSize), join("-DUNROLL=", unroll)};
  if (k.vector)
    options.push_back(join("-DVECTOR=", static_cast<int>(k.vector)));
  else
    for (const auto& [name, value] :
         {std::pair{"RANK", k.rank}, {"BIG", k.big}, {"INNER", k.inner}, {"ALIKE", k.alike}})
      options.push_back(join("-D", name, "=", static_cast<int>(value)));
  return {&load_kernel(k.device, text, k.vector ? "pointwise" : "pointwise_strided", options), unroll};
}

const Compiled& find(const Key& k, const Operator* op) {
  Recent& slot = recent(KeyHash()(k));
  if (slot.compiled.kernel && slot.key == k) [[likely]]
    return slot.compiled;
  std::lock_guard guard(kernels().lock);
  const auto found = kernels().all.find(k);
  slot = {k, found != kernels().all.end() ? found->second : kernels().all[k] = compile(k, op)};
  return slot.compiled;
}

// The parameters of a kernel, laid out as struct Plan and struct StridedPlan in pointwise.cuh: everything is a multiple
// of eight bytes.
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
  void skip(size_t bytes) {  // as zeros: equal launches have equal bytes
    std::memset(bytes_ + size_, 0, bytes);
    size_ += bytes;
  }
  std::span<const char> bytes() const { return {bytes_, size_}; }

 private:
  alignas(16) char bytes_[8 + kMaxOperands * 16 + kMostAttributes * sizeof(ScalarAttribute) + kMostDims * 16 +
                          kMaxOperands * kMostDims * 8];
  size_t size_ = 0;
};

void launch_blocks(const Key& key, const Operator* op, const Place& place, int64_t count,
                   const Parameters& parameters) {
  const Compiled& compiled = find(key, op);
  launch_bytes(*compiled.kernel, place,
               divide_up(count, int64_t{kBlockSize} * compiled.unroll * std::max<int>(key.vector, 1)), kBlockSize,
               parameters.bytes());
}

void put_plan(Parameters& to, const DenseLaunch& l, int attribute_count) {
  to.put(l.elements);
  for (int i = 0; i < l.count; ++i) {
    char slot[16] = {};
    if (l.on_host >> i & 1)
      std::memcpy(slot, l.data[i], static_cast<size_t>(size_of(l.dtypes[i])));
    else
      std::memcpy(slot, &l.data[i], sizeof(char*));
    to.put(slot, sizeof slot);
  }
  if (attribute_count) to.put(l.attributes, static_cast<size_t>(attribute_count) * sizeof(ScalarAttribute));
  to.skip(static_cast<size_t>(kMostAttributes - attribute_count) * sizeof(ScalarAttribute));
}

Key key_of(const Operator* op, const DenseLaunch& l, const Place& place) {
  Key key{op,
          static_cast<int8_t>(l.which),
          static_cast<uint8_t>(l.compute),
          static_cast<uint8_t>(place.device),
          static_cast<uint8_t>(l.count),
          {},
          static_cast<uint8_t>(l.on_host),
          0,
          0,
          0,
          1,
          0,
          {}};
  for (int i = 0; i < l.count; ++i) key.dtypes[i] = static_cast<uint8_t>(l.dtypes[i]);
  return key;
}
// The in-place form computes the same; a copy has no operator.
const Operator* computed_by(const Operator* op) { return op && op->functional ? op->functional : op; }

void launch_dense_walk(const Operator* op, const DenseLaunch& l) {
  if (l.elements == 0) return;
  const Place place(l.device);
  op = computed_by(op);
  Key key = key_of(op, l, place);
  int64_t widest = 1;
  for (int i = 0; i < l.count; ++i)
    if (!(l.on_host >> i & 1)) widest = std::max(widest, size_of(l.dtypes[i]));
  key.vector = static_cast<uint8_t>(16 / widest);
  for (int i = 0; i < l.count; ++i)
    if (!(l.on_host >> i & 1) &&
        reinterpret_cast<uintptr_t>(l.data[i]) % static_cast<uintptr_t>(key.vector * size_of(l.dtypes[i])) != 0)
      key.vector = 1;
  Parameters parameters;
  put_plan(parameters, l, op && op->pointwise ? op->pointwise->scalar_count : 0);
  launch_blocks(key, op, place, l.elements, parameters);
}

// Every operand in memory walks the elements in the order in which they lie.
bool is_dense_walk(DimsView sizes, const Operand* operands, int n, uint32_t on_host) {
  for (int i = 1; i < n; ++i)
    if (!(on_host >> i & 1) && !(operands[i].strides == operands[0].strides)) return false;
  return is_contiguous(sizes, operands[0].strides) || is_dense(sizes, operands[0].strides);
}

// How many neighbors along the innermost dimension a thread can take: there every operand lies side by side, or is one
// element for all.
int64_t inner_vector(const DenseLaunch& l, const Dims& sizes, const Dims* strides) {
  if (sizes.empty() || l.count > 8) return 1;
  int64_t widest = 1;
  for (int i = 0; i < l.count; ++i)
    if (!(l.on_host >> i & 1)) widest = std::max(widest, size_of(l.dtypes[i]));
  int64_t vector = std::max<int64_t>(1, 16 / widest);
  const int64_t last = sizes.size() - 1;
  while (vector > 1 && sizes[last] % vector) vector /= 2;
  for (int i = 0; i < l.count && vector > 1; ++i) {
    if (l.on_host >> i & 1) continue;
    const int64_t step = strides[i][last];
    if (step != 1 && (step != 0 || i == 0)) return 1;
    if (step == 0) continue;
    for (int64_t d = 0; d < last; ++d)
      while (strides[i][d] % vector) vector /= 2;
    while (reinterpret_cast<uintptr_t>(l.data[i]) % static_cast<uintptr_t>(vector * size_of(l.dtypes[i]))) vector /= 2;
  }
  return vector;
}

void launch_elements(const Operator* op, const PointwiseLaunch& l) {
  int64_t count = 1;
  for (const int64_t s : l.sizes) count *= s;
  if (count == 0) return;
  DenseLaunch dense{l.op, l.which, l.compute, count, l.count, l.on_host, {}, {}, l.attributes, l.device};
  Tensor converted[kMaxOperands];  // numbers in the dtype that the formula computes in
  for (int i = 0; i < l.count; ++i) {
    const Operand& o = l.operands[i];
    const bool number = l.on_host >> i & 1;
    dense.data[i] = o.data;
    dense.dtypes[i] = number ? o.loop_dtype : o.dtype;
    if (number && o.dtype != o.loop_dtype) {
      Tensor one = empty({}, o.dtype);
      std::memcpy(one.bytes(), o.data, static_cast<size_t>(size_of(o.dtype)));
      converted[i] = convert(one, o.loop_dtype);
      dense.data[i] = converted[i].bytes();
    }
  }
  if (is_dense_walk(l.sizes, l.operands, l.count, l.on_host)) return launch_dense_walk(op, dense);
  const Place place(l.device);
  op = computed_by(op);
  Key key = key_of(op, dense, place);
  Dims walked(l.sizes);
  Dims strides[kMaxOperands];
  Dims* pointers[kMaxOperands];
  int in_memory = 0;
  for (int i = 0; i < l.count; ++i) {
    if (l.on_host >> i & 1) continue;
    strides[i] = l.operands[i].strides;
    pointers[in_memory++] = &strides[i];
  }
  coalesce(walked, pointers, in_memory);
  const int64_t rank = std::max<int64_t>(walked.size(), 1);
  check_implemented(rank <= kMostDims, op ? op->name() : std::string("copy_"), ": more than ", kMostDims,
                    " dimensions that cannot be merged, on '", l.device, "'");
  key.rank = static_cast<uint8_t>(rank);
  int64_t farthest = count;  // place that is counted to
  for (int i = 0; i < l.count; ++i) {
    int64_t extent = 0;
    for (int64_t d = 0; d < walked.size() && !(l.on_host >> i & 1); ++d)
      extent += (walked[d] - 1) * std::abs(strides[i][d]);
    farthest = std::max(farthest, extent);
  }
  key.big = farthest >= (int64_t{1} << 31);
  if (const int64_t vector = inner_vector(dense, walked, strides); vector > 1) {
    key.inner = static_cast<uint8_t>(vector);
    walked.back() /= vector;
    dense.elements /= vector;
    for (int i = 0; i < l.count; ++i) {
      if (l.on_host >> i & 1) continue;
      if (strides[i].back() == 0) key.alike = static_cast<uint8_t>(key.alike | 1u << i);
      strides[i].back() *= vector;
    }
  }
  Parameters parameters;
  put_plan(parameters, dense, op && op->pointwise ? op->pointwise->scalar_count : 0);
  for (int64_t d = 0; d < rank; ++d) parameters.put(Divider(walked.empty() ? 1 : walked[d]));
  for (int i = 0; i < l.count; ++i)
    for (int64_t d = 0; d < rank; ++d)
      parameters.put(l.on_host >> i & 1 || walked.empty() ? int64_t{0} : strides[i][d]);
  launch_blocks(key, op, place, dense.elements, parameters);
}

}  // namespace

void launch_formula(const PointwiseLaunch& l) { launch_elements(&l.op, l); }
void launch_dense_formula(const DenseLaunch& l) { launch_dense_walk(&l.op, l); }

// Any operator will do: a copy looks at none.
static const Operator& no_operator() {
  static const Operator& the = Registry::instance().all().front();
  return the;
}

void launch_copy(const Operand& to, const Operand& from, DimsView sizes, Device device) {
  Operand operands[2] = {to, from};
  launch_elements(nullptr, {no_operator(), -1, Compute::f32, sizes, operands, 2, 0, nullptr, device});
}

void launch_fill(const Operand& to, const void* element, DimsView sizes, Device device) {
  Operand operands[2] = {to, {static_cast<char*>(const_cast<void*>(element)), to.dtype, to.dtype, {}}};
  launch_elements(nullptr, {no_operator(), -1, Compute::f32, sizes, operands, 2, 2, nullptr, device});
}

}  // namespace cresset::cuda
