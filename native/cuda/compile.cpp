#include "cuda/compile.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sstream>
#include <vector>

#include "base/error.h"
#include "cuda/background.h"
#include "cuda/device.h"
#include "cuda/library.h"

namespace cresset::cuda {
namespace {

namespace files = std::filesystem;
using Program = void*;

struct Nvrtc {
  int (*version)(int*, int*);
  int (*create)(Program*, const char* source, const char* name, int headers, const char* const* header_texts,
                const char* const* header_names);
  int (*compile)(Program, int count, const char* const* options);
  int (*binary_size)(Program, size_t*);
  int (*binary)(Program, char*);
  int (*log_size)(Program, size_t*);
  int (*log)(Program, char*);
  int (*destroy)(Program*);
  int major = 0, minor = 0;

  Nvrtc() {
    static auto* library = new Library({"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"});
    const auto look_up = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(library->symbol(name));
    };
    look_up(version, "nvrtcVersion");
    look_up(create, "nvrtcCreateProgram");
    look_up(compile, "nvrtcCompileProgram");
    look_up(binary_size, "nvrtcGetCUBINSize");
    look_up(binary, "nvrtcGetCUBIN");
    look_up(log_size, "nvrtcGetProgramLogSize");
    look_up(log, "nvrtcGetProgramLog");
    look_up(destroy, "nvrtcDestroyProgram");
    version(&major, &minor);
    // NVRTC asks the system for this library of its own, which finds it only when it is open already: in NVIDIA's
    // Python package it lies beside it.
    Dl_info place{};
    if (dladdr(reinterpret_cast<void*>(version), &place) && place.dli_fname)
      dlopen((files::path(place.dli_fname).parent_path() / join("libnvrtc-builtins.so.", major, ".", minor)).c_str(),
             RTLD_NOW | RTLD_LOCAL);
  }
};
const Nvrtc& nvrtc() {
  static const auto* the = new Nvrtc;
  return *the;
}

// 128 bits of a text, as 32 digits: two runs of FNV-1a with different starts, mixed.
class Digest {
 public:
  void add(const std::string& text) {
    for (const unsigned char c : text) {
      a_ = (a_ ^ c) * 0x100000001b3u;
      b_ = (b_ ^ (c + 0x9eu)) * 0x100000001b3u;
      b_ ^= b_ >> 29;
    }
    a_ ^= text.size();
    b_ = b_ * 31 + text.size();
  }
  std::string digits() const {
    char text[33];
    snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(a_),
             static_cast<unsigned long long>(b_));
    return text;
  }

 private:
  uint64_t a_ = 0xcbf29ce484222325u, b_ = 0x84222325cbf29ce4u;
};

std::string read_file(const files::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string& folder() {
  static auto* the = new std::string;
  return *the;
}

// The kernel files themselves are part of a kernel's content.
const std::string& folder_digest() {
  static const auto* the = [] {
    std::vector<files::path> paths;
    std::error_code error;
    for (const auto& entry : files::directory_iterator(folder(), error))
      if (entry.is_regular_file()) paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());
    Digest digest;
    for (const auto& path : paths) {
      digest.add(path.filename().string());
      digest.add(read_file(path));
    }
    return new std::string(digest.digits());
  }();
  return *the;
}

// CRESSET_CACHE, or the user's cache folder; empty when there is none to write to.
const files::path& cache_folder() {
  static const auto* the = [] {
    files::path path;
    if (const char* own = std::getenv("CRESSET_CACHE"))
      path = own;
    else if (const char* cache = std::getenv("XDG_CACHE_HOME"))
      path = files::path(cache) / "cresset";
    else if (const char* home = std::getenv("HOME"))
      path = files::path(home) / ".cache" / "cresset";
    if (path.empty()) return new files::path;
    path /= "kernels";
    std::error_code error;
    files::create_directories(path, error);
    return new files::path(error || access(path.c_str(), W_OK) != 0 ? files::path() : path);
  }();
  return *the;
}

void keep(const files::path& path, const std::string& binary) {
  const files::path aside = path.string() + "." + std::to_string(getpid());
  {
    std::ofstream out(aside, std::ios::binary);
    out.write(binary.data(), static_cast<std::streamsize>(binary.size()));
    if (!out) {
      unlink(aside.c_str());
      return;
    }
  }
  if (rename(aside.c_str(), path.c_str()) != 0) unlink(aside.c_str());
}

std::string compile(const std::string& text, const char* entry, const std::vector<std::string>& options) {
  const Nvrtc& n = nvrtc();
  Program program = nullptr;
  check(n.create(&program, text.c_str(), (std::string(entry) + ".cu").c_str(), 0, nullptr, nullptr) == 0,
        "NVRTC could not start a program for ", entry);
  std::vector<const char*> pointers;
  for (const std::string& option : options) pointers.push_back(option.c_str());
  const int status = n.compile(program, static_cast<int>(pointers.size()), pointers.data());
  if (status != 0) {
    size_t length = 0;
    n.log_size(program, &length);
    std::string log(length, '\0');
    n.log(program, log.data());
    n.destroy(&program);
    fail(
        "cresset has a bug: the CUDA kernel ", entry, " did not compile (NVRTC error ", status, ", options ",
        [&] {
          std::string all;
          for (const std::string& option : options) all += option + " ";
          return all;
        }(),
        "); please report it:\n", log.c_str());
  }
  size_t size = 0;
  n.binary_size(program, &size);
  std::string binary(size, '\0');
  n.binary(program, binary.data());
  n.destroy(&program);
  return binary;
}

// Complex numbers and floats of 8 bits, by their names in kernels: a kernel that has none of them does not read their
// headers.
bool mentions_rare_types(const std::string& text) {
  for (const char* name : {"dtype_c", "dtype_f8", "omplex"})
    if (text.find(name) != std::string::npos) return true;
  return false;
}

std::mutex& lock() {
  static auto* the = new std::mutex;
  return *the;
}
CompileStatistics statistics;

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Not in the order of launches: those wait for it.
Status load(const std::string& binary, const char* entry, FunctionHandle& function) {
  ModuleHandle module = nullptr;
  const Status status = driver().cuModuleLoadData.now(&module, binary.data());
  return status == kSuccess ? driver().cuModuleGetFunction.now(&function, module, entry) : status;
}

}  // namespace

void set_kernel_folder(std::string path) { folder() = std::move(path); }

namespace {
// Names the processor too: sm_90a has the instructions that only this generation has.
std::vector<std::string> usual_options(int device) {
  const Properties& p = properties(device);
  std::vector<std::string> all = {join("--gpu-architecture=sm_", p.major, p.minor, p.major >= 9 ? "a" : ""),
                                  "--std=c++20", "--fmad=false", "--device-as-default-execution-space",
                                  "-I" + folder()};
  if (nvrtc().major * 100 + nvrtc().minor >= 1204)
    all.push_back("--minimal");  // without NVRTC's declarations of textures and of CUDA's run time
  return all;
}
}  // namespace

void start_compiler(int device) noexcept {
  try {
    compile("extern \"C\" __global__ void nothing(float* p) { p[threadIdx.x] = 1; }\n", "nothing",
            usual_options(device));
  } catch (...) {  // the first kernel will say it
  }
}

namespace {
struct Wanted {
  std::vector<std::string> options;
  files::path path;  // where the machine code is kept; empty: nowhere
};
Wanted wanted(int device, const std::string& text, std::span<const std::string> options) {
  Wanted w{usual_options(device), {}};
  bool plain = !mentions_rare_types(text);
  for (const std::string& option : options) {
    if (option == "--fmad=true")
      w.options[2] = option;
    else
      w.options.push_back(option);
    plain = plain && !mentions_rare_types(option);
  }
  if (plain) w.options.push_back("-DPLAIN_TYPES");
  Digest digest;
  digest.add(folder_digest());
  digest.add(join(nvrtc().major, ".", nvrtc().minor));
  for (const std::string& option : w.options)
    if (option.compare(0, 2, "-I") != 0) digest.add(option);
  digest.add(text);
  if (!cache_folder().empty()) w.path = cache_folder() / (digest.digits() + ".cubin");
  return w;
}

std::string compile_and_keep(const std::string& text, const char* entry, const Wanted& w) {
  const double start = seconds();
  std::string binary = compile(text, entry, w.options);
  {
    const std::lock_guard guard(lock());
    ++statistics.compiled;
    statistics.compile_seconds += seconds() - start;
  }
  if (!w.path.empty()) keep(w.path, binary);
  return binary;
}
}  // namespace

struct Kernel::Source {
  std::string text;
  const char* entry;
  Wanted wanted;
  std::string binary, problem;
};

namespace {
std::string& last_problem() {
  static auto* the = new std::string;
  return *the;
}
}  // namespace

Kernel::Kernel(FunctionHandle loaded) : function_(loaded), state_(ended) {}
Kernel::Kernel(std::unique_ptr<Source> source) : source_(std::move(source)) {}

void Kernel::compile() noexcept {
  int before = asked;
  if (!state_.compare_exchange_strong(before, begun)) return;
  try {
    source_->binary = compile_and_keep(source_->text, source_->entry, source_->wanted);
  } catch (const std::exception& e) {
    source_->problem = e.what();
  }
  state_.store(ended, std::memory_order_release);
  state_.notify_all();
}

Status Kernel::arrive(FunctionHandle& function) {
  compile();
  state_.wait(begun, std::memory_order_acquire);
  const std::lock_guard guard(lock());
  if ((function = function_.load())) return kSuccess;
  if (source_->binary.empty()) {
    last_problem() = source_->problem;
    return kNotCompiled;
  }
  const double start = seconds();
  if (const Status status = load(source_->binary, source_->entry, function); status != kSuccess) return status;
  statistics.load_seconds += seconds() - start;
  function_.store(function, std::memory_order_release);
  source_.reset();
  return kSuccess;
}

Status Kernel::allow_shared(int device, FunctionHandle function) {
  if (takes_more_) return kSuccess;
  takes_more_ = true;
  return driver().cuFuncSetAttribute.now(function, kFunctionSharedLimit,
                                         static_cast<int>(properties(device).shared_per_block_optin));
}

void raise_compile_problem() {
  const std::lock_guard guard(lock());
  fail(last_problem());
}

Kernel& load_binary(int device, const std::string& binary, const char* entry) {
  enter(device);
  FunctionHandle function = nullptr;
  check_status(load(binary, entry, function), join("cuModuleLoadData of ", entry).c_str());
  return *new Kernel(function);
}

std::string kernel_binary(int device, const std::string& text, const char* entry,
                          std::span<const std::string> options) {
  const Wanted w = wanted(device, text, options);
  std::string kept = w.path.empty() ? std::string() : read_file(w.path);  // empty when it is not there
  if (kept.empty()) return compile_and_keep(text, entry, w);
  const std::lock_guard guard(lock());
  ++statistics.from_disk;
  return kept;
}

Kernel& load_kernel(int device, const std::string& text, const char* entry, std::span<const std::string> options) {
  enter(device);
  Wanted w = wanted(device, text, options);
  FunctionHandle function = nullptr;
  const double start = seconds();
  const std::string kept = w.path.empty() ? std::string() : read_file(w.path);
  if (!kept.empty() && load(kept, entry, function) == kSuccess) {
    const std::lock_guard guard(lock());
    ++statistics.from_disk;
    statistics.load_seconds += seconds() - start;
    return *new Kernel(function);
  }
  auto* kernel = new Kernel(std::make_unique<Kernel::Source>(Kernel::Source{text, entry, std::move(w), {}, {}}));
  if (!is_any_captured() && in_background([kernel] { kernel->compile(); }, Urgency::waited_for)) return *kernel;
  const Status status = kernel->find(function);
  if (status == kNotCompiled) raise_compile_problem();
  check_status(status, join("cuModuleLoadData of ", entry).c_str());
  return *kernel;
}

CompileStatistics compile_statistics() {
  std::lock_guard guard(lock());
  return statistics;
}

}  // namespace cresset::cuda
