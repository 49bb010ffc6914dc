// Launching: a family of kernels is one entry of a kernel file, specialized by a few small numbers (dtypes, block
// sizes, switches).
//
//   const KernelFamily kSoftmax("softmax.cuh", "softmax", {"T", "ROW"});
//   const Place place(out.device());
//   kSoftmax.launch(place, {dtype(t), 256}, rows, 128, 0, out.bytes(), t.bytes(), length);
//
// A kernel that nobody else includes may stand with its launch, as a KernelText (see distance.cpp).
#pragma once
#include <array>
#include <initializer_list>
#include <mutex>
#include <span>
#include <vector>

#include "cuda/compile.h"
#include "cuda/device.h"
#include "cuda/queue.h"
#include "tensor/tensor.h"

namespace cresset::cuda {

// A device, entered, with the stream for its work.
struct Place {
  int device;
  StreamHandle stream;
  explicit Place(Device d) : device(d.index), stream(enter(d.index)) {}
};

struct Grid {
  unsigned x = 1, y = 1, z = 1;
  Grid(int64_t x, int64_t y = 1, int64_t z = 1)
      : x(static_cast<unsigned>(x)), y(static_cast<unsigned>(y)), z(static_cast<unsigned>(z)) {}
};

// What a macro of a kernel stands for: a dtype (dtype_f32) or a number.
struct Choice {
  int32_t value;
  bool is_dtype;
  Choice(Dtype d) : value(static_cast<int32_t>(d)), is_dtype(true) {}
  Choice(int v) : value(v), is_dtype(false) {}
  Choice(bool v) : value(v), is_dtype(false) {}
};
const char* tag_of(Dtype d);  // "f32": the kernels call the type dtype_f32

// A launch, as it is written into the queue; the arguments follow, each at its offset.
struct KernelLaunch : Work {
  static constexpr int kMostArguments = 24;
  uint32_t arguments = 0, shared = 0;
  Kernel* kernel = nullptr;
  Grid grid, block;
  uint16_t offsets[kMostArguments] = {};

  KernelLaunch(Kernel& kernel, const Place& place, Grid grid, Grid block, int64_t shared);
};
static_assert(sizeof(KernelLaunch) % 16 == 0);

// Gaps of a struct become zeros where the compiler can say where they are: equal launches have equal bytes.
template <class Argument>
void put_argument(char* to, Argument argument) {
#if __has_builtin(__builtin_clear_padding)
  __builtin_clear_padding(&argument);
#endif
  std::memcpy(to, &argument, sizeof(Argument));
}

// The arguments are passed as they are: an argument's C++ type must be the kernel's.
template <class... Arguments>
void launch(Kernel& kernel, const Place& place, Grid grid, Grid block, int64_t shared, const Arguments&... arguments) {
  static_assert(sizeof...(arguments) <= KernelLaunch::kMostArguments &&
                (std::is_trivially_copyable_v<Arguments> && ...) && ((alignof(Arguments) <= 16) && ...));
  KernelLaunch work(kernel, place, grid, block, shared);
  size_t size = 0;
  const auto place_of = [&](size_t bytes, size_t alignment) {
    size = (size + alignment - 1) / alignment * alignment;
    work.offsets[work.arguments++] = static_cast<uint16_t>(size);
    size += bytes;
  };
  (place_of(sizeof(Arguments), alignof(Arguments)), ...);
  enqueue(work, size, [&](char* to) {
    int i = 0;
    (put_argument(to + work.offsets[i++], arguments), ...);
  });
}

// One argument, a struct that was put together as bytes.
void launch_bytes(Kernel& kernel, const Place& place, Grid grid, Grid block, std::span<const char> argument);

// A kernel's text, R"cuda(...)cuda". Its first line says what tests/cuda/test_kernels_compile.py compiles it with:
// `// with T=dtype_f32 NORM=0, T=dtype_f64 NORM=1`.
struct KernelText {
  const char* text;
};

class KernelFamily {
 public:
  static constexpr int kMostMacros = 8;
  // `macros` are defined by the choices of a launch, in order; `options` go to the compiler as they are.
  KernelFamily(const char* file, const char* entry, std::initializer_list<const char*> macros,
               std::initializer_list<const char*> options = {});
  KernelFamily(KernelText text, const char* entry, std::initializer_list<const char*> macros,
               std::initializer_list<const char*> options = {});

  Kernel& get(const Place& place, std::initializer_list<Choice> choices) const;

  template <class... Arguments>
  void launch(const Place& place, std::initializer_list<Choice> choices, Grid grid, Grid block, int64_t shared,
              const Arguments&... arguments) const {
    cuda::launch(get(place, choices), place, grid, block, shared, arguments...);
  }

 private:
  struct Known {
    int device;
    std::array<int32_t, kMostMacros> values;
    Kernel* kernel;
  };
  const std::string text_;
  const char* entry_;
  std::vector<const char*> macros_, options_;
  mutable std::mutex lock_;
  mutable std::vector<Known*> known_;  // few are in use at a time; the last one found stands first
};

inline int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace cresset::cuda
