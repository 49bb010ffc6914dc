// NVRTC's interface: "compiling" rewrites the program, gives it to g++ and packs the shared object up as an image.
#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>

#include "compiler.h"
#include "image.h"

#define EMULATOR_API extern "C" __attribute__((visibility("default")))

namespace {

using namespace emulator;

enum Result {
  NVRTC_SUCCESS = 0,
  NVRTC_ERROR_INVALID_INPUT = 3,
  NVRTC_ERROR_INVALID_PROGRAM = 4,
  NVRTC_ERROR_INVALID_OPTION = 5,
  NVRTC_ERROR_COMPILATION = 6,
};

constexpr int architectures[] = {75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121};

struct Program {
  ProgramSource source;
  std::string log, image;
  bool is_binary = false;  // made for sm_NN, not for compute_NN
};

std::mutex& lock() {
  static auto* the = new std::mutex;
  return *the;
}
std::set<Program*>& programs() {
  static auto* the = new std::set<Program*>;
  return *the;
}
Program* find(void* handle) {
  std::lock_guard guard(lock());
  auto found = programs().find(static_cast<Program*>(handle));
  return found == programs().end() ? nullptr : *found;
}

// "--gpu-architecture=sm_90" as {"--gpu-architecture", "sm_90"}.
std::pair<std::string, std::string> split(const std::string& option) {
  const size_t at = option.find('=');
  return at == std::string::npos ? std::pair(option, std::string())
                                 : std::pair(option.substr(0, at), option.substr(at + 1));
}

// NVRTC's options into g++'s. False, with a word in the log, for one that NVRTC does not know.
bool read_options(Program& program, int count, const char* const* options, std::vector<std::string>& result) {
  static const std::set<std::string> without_effect = {"--fmad",
                                                       "-fmad",
                                                       "--ftz",
                                                       "-ftz",
                                                       "--prec-sqrt",
                                                       "-prec-sqrt",
                                                       "--prec-div",
                                                       "-prec-div",
                                                       "--use_fast_math",
                                                       "-use_fast_math",
                                                       "--device-debug",
                                                       "-G",
                                                       "--generate-line-info",
                                                       "-lineinfo",
                                                       "--dopt",
                                                       "-dopt",
                                                       "--device-as-default-execution-space",
                                                       "-default-device",
                                                       "--restrict",
                                                       "-restrict",
                                                       "--extra-device-vectorization",
                                                       "-extra-device-vectorization",
                                                       "--maxrregcount",
                                                       "-maxrregcount",
                                                       "--ptxas-options",
                                                       "-Xptxas",
                                                       "--disable-warnings",
                                                       "-w",
                                                       "--diag-suppress",
                                                       "-diag-suppress",
                                                       "--diag-error",
                                                       "-diag-error",
                                                       "--diag-warn",
                                                       "-diag-warn",
                                                       "--display-error-number",
                                                       "-err-no",
                                                       "--no-display-error-number",
                                                       "-no-err-no",
                                                       "--minimal",
                                                       "-minimal",
                                                       "--split-compile",
                                                       "-split-compile",
                                                       "--no-source-include",
                                                       "-no-source-include",
                                                       "--builtin-initializer-list",
                                                       "--builtin-move-forward",
                                                       "--optimization-info",
                                                       "--time",
                                                       "-time",
                                                       "--pch",
                                                       "-pch",
                                                       "--no-cache",
                                                       "-no-cache"};
  int architecture = 75;
  for (int i = 0; i < count; ++i) {
    std::string option = options[i];
    const auto [name, value] = split(option);
    const auto value_or_next = [&, value = value] {
      return !value.empty() || i + 1 >= count ? value : std::string(options[++i]);
    };
    if (name == "--gpu-architecture" || name == "-arch") {
      const std::string wish = value_or_next();
      const size_t digits = wish.find('_');
      architecture = digits == std::string::npos ? 0 : std::atoi(wish.c_str() + digits + 1);
      program.is_binary = wish.starts_with("sm_");
      if (std::find(std::begin(architectures), std::end(architectures), architecture) == std::end(architectures)) {
        program.log = "nvrtc: error: invalid value for --gpu-architecture (-arch): " + wish + "\n";
        return false;
      }
    } else if (name == "--std" || name == "-std") {
      result.push_back("-std=" + value_or_next());
    } else if (name == "--define-macro") {
      result.push_back("-D" + value_or_next());
    } else if (name == "--undefine-macro") {
      result.push_back("-U" + value_or_next());
    } else if (name == "--include-path") {
      result.push_back("-I" + value_or_next());
    } else if (name == "-D" || name == "-U" || name == "-I") {
      result.push_back(name + value_or_next());
    } else if (option.starts_with("-D") || option.starts_with("-U") || option.starts_with("-I")) {
      result.push_back(option);
    } else if (!without_effect.count(name)) {
      program.log = "nvrtc: error: unrecognized option " + option + " found\n";
      return false;
    }
  }
  result.push_back("-D__CUDA_ARCH__=" + std::to_string(architecture * 10));
  result.insert(result.end(),
                {"-D__CUDACC__=1", "-D__CUDACC_RTC__=1", "-D__CUDACC_VER_MAJOR__=13", "-D__CUDACC_VER_MINOR__=0"});
  return true;
}

Result give(const std::string& text, char* buffer) {
  std::memcpy(buffer, text.data(), text.size());
  return NVRTC_SUCCESS;
}

}  // namespace

// A version that no other NVRTC has and that changes with the emulator (build.py gives it), for those who keep what was
// compiled.
EMULATOR_API Result nvrtcVersion(int* major, int* minor) {
  *major = 13, *minor = EMULATOR_VERSION;
  return NVRTC_SUCCESS;
}
EMULATOR_API Result nvrtcGetNumSupportedArchs(int* count) {
  *count = int(std::size(architectures));
  return NVRTC_SUCCESS;
}
EMULATOR_API Result nvrtcGetSupportedArchs(int* all) {
  std::copy(std::begin(architectures), std::end(architectures), all);
  return NVRTC_SUCCESS;
}

EMULATOR_API Result nvrtcCreateProgram(void** handle, const char* text, const char* name, int headers,
                                       const char* const* header_texts, const char* const* header_names) {
  if (!handle || !text || headers < 0) return NVRTC_ERROR_INVALID_INPUT;
  auto program = std::make_unique<Program>();
  program->source.text = text;
  program->source.name = name && *name ? name : "default_program";
  for (int i = 0; i < headers; ++i) program->source.headers.emplace_back(header_names[i], header_texts[i]);
  std::lock_guard guard(lock());
  programs().insert(program.get());
  *handle = program.release();
  return NVRTC_SUCCESS;
}
EMULATOR_API Result nvrtcDestroyProgram(void** handle) {
  if (!handle || !find(*handle)) return NVRTC_ERROR_INVALID_PROGRAM;
  std::lock_guard guard(lock());
  programs().erase(static_cast<Program*>(*handle));
  delete static_cast<Program*>(*handle);
  *handle = nullptr;
  return NVRTC_SUCCESS;
}

EMULATOR_API Result nvrtcCompileProgram(void* handle, int count, const char* const* options) {
  Program* program = find(handle);
  if (!program) return NVRTC_ERROR_INVALID_PROGRAM;
  program->log.clear(), program->image.clear();
  program->source.options.clear();
  if (!read_options(*program, count, options, program->source.options)) return NVRTC_ERROR_INVALID_OPTION;
  Compiled compiled = compile(program->source);
  program->log = std::move(compiled.log);
  if (!compiled.good) return NVRTC_ERROR_COMPILATION;
  ImageHeader header;
  std::memcpy(header.magic, image_magic, sizeof header.magic);
  header.bytes = compiled.bytes.size();
  program->image.assign(reinterpret_cast<const char*>(&header), sizeof header) += compiled.bytes;
  return NVRTC_SUCCESS;
}

EMULATOR_API Result nvrtcGetCUBINSize(void* handle, size_t* bytes) {
  Program* program = find(handle);
  if (!program) return NVRTC_ERROR_INVALID_PROGRAM;
  *bytes = program->is_binary ? program->image.size() : 0;  // NVRTC makes a binary for real architectures only
  return NVRTC_SUCCESS;
}
EMULATOR_API Result nvrtcGetCUBIN(void* handle, char* buffer) {
  Program* program = find(handle);
  if (!program) return NVRTC_ERROR_INVALID_PROGRAM;
  return program->is_binary ? give(program->image, buffer) : NVRTC_ERROR_INVALID_PROGRAM;
}
EMULATOR_API Result nvrtcGetPTXSize(void* handle, size_t* bytes) {
  Program* program = find(handle);
  if (!program) return NVRTC_ERROR_INVALID_PROGRAM;
  *bytes = program->image.size();
  return NVRTC_SUCCESS;
}
EMULATOR_API Result nvrtcGetPTX(void* handle, char* buffer) {
  Program* program = find(handle);
  return program ? give(program->image, buffer) : NVRTC_ERROR_INVALID_PROGRAM;
}
EMULATOR_API Result nvrtcGetProgramLogSize(void* handle, size_t* bytes) {
  Program* program = find(handle);
  if (!program) return NVRTC_ERROR_INVALID_PROGRAM;
  *bytes = program->log.size() + 1;
  return NVRTC_SUCCESS;
}
EMULATOR_API Result nvrtcGetProgramLog(void* handle, char* buffer) {
  Program* program = find(handle);
  if (!program) return NVRTC_ERROR_INVALID_PROGRAM;
  std::memcpy(buffer, program->log.c_str(), program->log.size() + 1);
  return NVRTC_SUCCESS;
}

EMULATOR_API const char* nvrtcGetErrorString(int result) {
  switch (result) {
    case 0: return "NVRTC_SUCCESS";
    case 1: return "NVRTC_ERROR_OUT_OF_MEMORY";
    case 2: return "NVRTC_ERROR_PROGRAM_CREATION_FAILURE";
    case 3: return "NVRTC_ERROR_INVALID_INPUT";
    case 4: return "NVRTC_ERROR_INVALID_PROGRAM";
    case 5: return "NVRTC_ERROR_INVALID_OPTION";
    case 6: return "NVRTC_ERROR_COMPILATION";
    case 7: return "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE";
    default: return "NVRTC_ERROR unknown";
  }
}
