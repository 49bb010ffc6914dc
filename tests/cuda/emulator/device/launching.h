// How the driver calls a kernel: descriptions of the module and its kernels, which program_text.cpp defines behind the
// program's text.
#pragma once

namespace emulated {

template <class T>
inline constexpr bool is_pointer = false;
template <class T>
inline constexpr bool is_pointer<T*> = true;

template <unsigned...>
struct Indices {};

template <auto kernel>
struct Launcher;
template <class... A, void (*kernel)(A...)>
struct Launcher<kernel> {
  static constexpr unsigned sizes[sizeof...(A) + 1] = {unsigned(sizeof(A))..., 0};
  static constexpr bool pointers[sizeof...(A) + 1] = {is_pointer<A>..., false};
  template <unsigned... i>
  EMULATED_UNCHECKED static void call(void** parameters,
                                      Indices<i...>) {  // the parameters lie where the driver put them
    kernel(*static_cast<A*>(parameters[i])...);
  }
  EMULATED_UNCHECKED static void run(void** parameters) {
    call(parameters, Indices<__integer_pack(unsigned(sizeof...(A)))...>{});
  }
  static constexpr EmulatedKernel describe(const char* name, unsigned max_threads) {
    return {name, run, sizeof...(A), sizes, pointers, max_threads};
  }
};

// 227 KiB, the most a block can have.
inline constexpr unsigned long long dynamic_shared_size = 227 << 10;
__attribute__((aligned(1024))) static unsigned char dynamic_shared[dynamic_shared_size];

// __shared__ variables are thread_local ones; this one is always there and tells where they are.
static thread_local unsigned char shared_marker[16];
static void* static_shared() { return shared_marker; }

inline EmulatedModule describe_module() {
  return {&host,
          &threadIdx,
          &blockIdx,
          reinterpret_cast<EmulatedIndex*>(&blockDim),
          reinterpret_cast<EmulatedIndex*>(&gridDim),
          dynamic_shared,
          dynamic_shared_size,
          recent,
          recent_count,
          static_shared};
}

}  // namespace emulated
