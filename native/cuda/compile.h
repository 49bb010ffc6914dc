// Kernels from text: compiled by NVRTC for the device at hand, and kept on disk by content, so that a program compiles
// a kernel once in its life.
//
// Note [Kernels on their way]
// A kernel that is not on disk is compiled in the background, and its launches are written into the queue meanwhile: it
// is the thread that launches which waits for it. So a program goes on, asks for its next kernels, and several are
// compiled at a time. One that does not compile is raised as a failed launch is, by a later call. While a stream is
// captured nothing can be loaded by another thread: then the caller waits.
#pragma once
#include <atomic>
#include <memory>
#include <span>
#include <string>

#include "cuda/driver.h"

namespace cresset::cuda {

// A kernel of one device, loaded or on its way. It is there as long as the process.
class Kernel {
 public:
  struct Source;

  explicit Kernel(FunctionHandle loaded);
  explicit Kernel(std::unique_ptr<Source> source);
  Kernel(const Kernel&) = delete;

  // Makes the machine code, unless somebody does or has done so.
  void compile() noexcept;
  // What the driver launches, on a thread that has the device's context; waits until it is there.
  Status find(FunctionHandle& function) {
    function = function_.load(std::memory_order_acquire);
    return function ? kSuccess : arrive(function);
  }
  // For those who launch: more shared memory than 48 KiB has to be allowed once.
  Status allow_shared(int device, FunctionHandle function);

 private:
  enum State : int { asked, begun, ended };
  std::atomic<FunctionHandle> function_ = nullptr;
  std::atomic<int> state_ = asked;
  bool takes_more_ = false;
  std::unique_ptr<Source> source_;  // until it is loaded

  Status arrive(FunctionHandle& function);
};

// A status that is not the driver's: a kernel did not compile.
inline constexpr Status kNotCompiled = -1;
[[noreturn]] void raise_compile_problem();

// The text may include the files of the package's folder cuda/kernels. `options` are for NVRTC, such as
// "-DT=dtype_f32".
Kernel& load_kernel(int device, const std::string& text, const char* entry, std::span<const std::string> options = {});

// The same in two steps: the machine code, from disk or compiled, which any thread may ask for; and loading it.
std::string kernel_binary(int device, const std::string& text, const char* entry,
                          std::span<const std::string> options = {});
Kernel& load_binary(int device, const std::string& binary, const char* entry);

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
