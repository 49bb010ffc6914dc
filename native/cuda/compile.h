// Kernels from text: compiled by NVRTC for the device at hand, and kept on disk by content, so that a program compiles
// a kernel once in its life.
#pragma once
#include <span>
#include <string>

#include "cuda/driver.h"

namespace cresset::cuda {

// A kernel that is loaded on one device.
struct Kernel {
  FunctionHandle function = nullptr;
};

// The text may include the files of the package's folder cuda/kernels. `options` are for NVRTC, such as
// "-DT=dtype_f32".
Kernel load_kernel(int device, const std::string& text, const char* entry, std::span<const std::string> options = {});

// The same in two steps: the machine code, from disk or compiled, which any thread may ask for; and loading it.
std::string kernel_binary(int device, const std::string& text, const char* entry,
                          std::span<const std::string> options = {});
Kernel load_binary(int device, const std::string& binary, const char* entry);

// Opens NVRTC and compiles a kernel of no use, so that the first one of use does not wait for NVRTC's own beginnings.
void start_compiler(int device) noexcept;

// Where the kernel files lie; the bindings plug in the package's folder.
void set_kernel_folder(std::string folder);

struct CompileStatistics {
  int64_t compiled = 0, from_disk = 0;
  double compile_seconds = 0, load_seconds = 0;
};
CompileStatistics compile_statistics();

}  // namespace cresset::cuda
