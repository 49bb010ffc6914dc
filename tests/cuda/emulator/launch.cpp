// Modules, their kernels, and launches. A module's image is what the emulated NVRTC made: a header and a shared object.
#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "block.h"
#include "image.h"

namespace emulator {
namespace {

constexpr unsigned plain_shared = 48 << 10, most_shared = 227 << 10;

struct Module;
struct Function {
  std::shared_ptr<Module> module;
  const EmulatedKernel* kernel;
  int shared_limit;  // of dynamic shared memory
};
struct Module {
  Device* device;
  void* library = nullptr;
  EmulatedModule* description = nullptr;
  size_t shared_offset = 0, shared_size = 0;  // of the __shared__ variables, which are the library's thread_local ones
  EmulatedRange image{};
  std::map<std::string, std::unique_ptr<Function>> functions;
  ~Module() {
    if (library) dlclose(library);
  }
};

std::map<void*, std::shared_ptr<Module>>& modules() {
  static auto* the = new std::map<void*, std::shared_ptr<Module>>;
  return *the;
}
std::set<Function*>& functions() {
  static auto* the = new std::set<Function*>;
  return *the;
}
Function* find_function(void* handle) {
  auto found = functions().find(static_cast<Function*>(handle));
  return found == functions().end() ? nullptr : *found;
}

// Through a file of a name of its own: the loader takes two libraries of one name for the same.
void* open_library(const char* bytes, size_t count) {
  const char* folder = std::getenv("TMPDIR");
  std::string path = std::string(folder ? folder : "/tmp") + "/emulated-kernels-XXXXXX";
  const int file = mkstemp(path.data());
  if (file < 0) return nullptr;
  for (size_t done = 0; done < count;) {
    const ssize_t written = write(file, bytes + done, count - done);
    if (written <= 0) break;  // the loader will say that it is too short
    done += size_t(written);
  }
  close(file);
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  unlink(path.c_str());
  return library;
}

// Where the library lies, and where its thread_local variables begin, seen from the one whose address we know.
void find_data(Module& module) {
  struct Search {
    ElfW(Addr) base;
    Module* module;
    unsigned char* marker;
  };
  link_map* map = nullptr;
  dlinfo(module.library, RTLD_DI_LINKMAP, &map);
  Search search{map->l_addr, &module, static_cast<unsigned char*>(module.description->static_shared())};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto& search = *static_cast<Search*>(data);
        if (info->dlpi_addr != search.base || !info->dlpi_tls_data) return 0;
        EmulatedRange& image = search.module->image;
        image.begin = info->dlpi_addr;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& part = info->dlpi_phdr[i];
          if (part.p_type == PT_LOAD) image.bytes = std::max<size_t>(image.bytes, part.p_vaddr + part.p_memsz);
          if (part.p_type != PT_TLS) continue;
          search.module->shared_size = part.p_memsz;
          search.module->shared_offset = size_t(search.marker - static_cast<unsigned char*>(info->dlpi_tls_data));
        }
        return 1;
      },
      &search);
}

// The kernel's own __shared__ variables; the marker in launching.h is not one of them.
int static_shared_bytes(const Module& module) { return module.shared_size > 16 ? int(module.shared_size - 16) : 0; }

// A launch with its own copy of the parameters.
struct Launch {
  Function* function;
  std::shared_ptr<Module> module;
  Device* device;
  EmulatedIndex grid, block;
  unsigned shared;
  std::vector<std::vector<unsigned char>> values;

  bool pointers_are_good() const {
    const EmulatedKernel& kernel = *function->kernel;
    for (unsigned i = 0; i < kernel.parameters; ++i) {
      if (!kernel.is_pointer[i]) continue;
      Address address;
      std::memcpy(&address, values[i].data(), sizeof address);
      const Allocation* a = find_allocation(address, true);
      const std::string what = "the address in parameter " + std::to_string(i);
      if (address == 0 || (a && address == a->end())) continue;  // nothing there that could be read
      if (!device_may_use(kernel.name, what.c_str(), device, address, 1)) return false;
    }
    return true;
  }

  Status run() const {
    if (!pointers_are_good()) return CUDA_ERROR_ILLEGAL_ADDRESS;
    std::vector<void*> parameters;
    for (const auto& value : values) parameters.push_back(const_cast<unsigned char*>(value.data()));
    const EmulatedRange variables{
        reinterpret_cast<Address>(module->description->static_shared()) - module->shared_offset, module->shared_size};
    return run_grid({module->description, function->kernel, grid, block, shared, variables, module->image,
                     parameters.data(), device});
  }
};

}  // namespace
}  // namespace emulator

using namespace emulator;

EMULATOR_API Status cuModuleLoadData(void** handle, const void* image) {
  EMULATOR_ENTER_CONTEXT();
  if (Status status = refuse_in_capture("cuModuleLoadData")) return status;
  ImageHeader header;
  std::memcpy(&header, image, sizeof header);
  if (std::memcmp(header.magic, image_magic, sizeof header.magic) != 0) {
    complain("cuModuleLoadData: the image was not made by the emulated NVRTC");
    return CUDA_ERROR_INVALID_IMAGE;
  }
  auto module = std::make_shared<Module>();
  module->device = current();
  module->library = open_library(static_cast<const char*>(image) + sizeof header, header.bytes);
  if (!module->library) {
    const char* why = dlerror();
    complain("cuModuleLoadData: %s", why ? why : "no temporary file could be made");
    return CUDA_ERROR_SHARED_OBJECT_INIT_FAILED;
  }
  module->description = static_cast<EmulatedModule*>(dlsym(module->library, "emulated_module"));
  if (!module->description) return CUDA_ERROR_INVALID_IMAGE;
  *module->description->host = host_functions();
  find_data(*module);
  *handle = module.get();
  modules()[module.get()] = module;
  return CUDA_SUCCESS;
}

EMULATOR_API Status cuModuleUnload(void* handle) {
  EMULATOR_ENTER_CONTEXT();
  auto found = modules().find(handle);
  if (found == modules().end()) return CUDA_ERROR_INVALID_HANDLE;
  const Status late = finish(current());
  for (const auto& [name, function] : found->second->functions) {
    functions().erase(function.get());
    function->module = nullptr;  // captured launches keep the module for themselves
  }
  modules().erase(found);
  return late;
}

EMULATOR_API Status cuModuleGetFunction(void** handle, void* module_handle, const char* name) {
  EMULATOR_ENTER_CONTEXT();
  auto found = modules().find(module_handle);
  if (found == modules().end()) return CUDA_ERROR_INVALID_HANDLE;
  Module& module = *found->second;
  auto& function = module.functions[name];
  if (!function) {
    const void* kernel = dlsym(module.library, (std::string("emulated_kernel_") + name).c_str());
    if (!kernel) return module.functions.erase(name), CUDA_ERROR_NOT_FOUND;
    const int shared_limit = int(plain_shared) - static_shared_bytes(module);
    function =
        std::make_unique<Function>(Function{found->second, static_cast<const EmulatedKernel*>(kernel), shared_limit});
    functions().insert(function.get());
  }
  *handle = function.get();
  return CUDA_SUCCESS;
}

EMULATOR_API Status cuFuncGetName(const char** name, void* handle) {
  EMULATOR_ENTER_CONTEXT();
  Function* function = find_function(handle);
  if (!function) return CUDA_ERROR_INVALID_HANDLE;
  *name = function->kernel->name;
  return CUDA_SUCCESS;
}

EMULATOR_API Status cuFuncSetAttribute(void* handle, int attribute, int value) {
  EMULATOR_ENTER_CONTEXT();
  Function* function = find_function(handle);
  if (!function) return CUDA_ERROR_INVALID_HANDLE;
  if (attribute == 9) return CUDA_SUCCESS;  // preferred share of the L1 cache: a hint
  if (attribute != 8) return CUDA_ERROR_INVALID_VALUE;
  if (value < 0 || value + static_shared_bytes(*function->module) > int(most_shared)) {
    complain(
        "cuFuncSetAttribute: %s cannot have %d bytes of dynamic shared memory beside %d static ones; a block has %u",
        function->kernel->name, value, static_shared_bytes(*function->module), most_shared);
    return CUDA_ERROR_INVALID_VALUE;
  }
  function->shared_limit = value;
  return CUDA_SUCCESS;
}

EMULATOR_API Status cuFuncGetAttribute(int* value, int attribute, void* handle) {
  EMULATOR_ENTER_CONTEXT();
  Function* function = find_function(handle);
  if (!function) return CUDA_ERROR_INVALID_HANDLE;
  switch (attribute) {
    case 0: *value = function->kernel->max_threads ? int(function->kernel->max_threads) : 1024; return CUDA_SUCCESS;
    case 1: *value = static_shared_bytes(*function->module); return CUDA_SUCCESS;
    case 2:
    case 3:
    case 7: *value = 0; return CUDA_SUCCESS;   // constants, local memory, caching
    case 4: *value = 32; return CUDA_SUCCESS;  // registers
    case 5:
    case 6: *value = 90; return CUDA_SUCCESS;  // PTX and binary version
    case 8: *value = function->shared_limit; return CUDA_SUCCESS;
    case 9: *value = -1; return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

EMULATOR_API Status cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void* handle, int block_size,
                                                                size_t shared) {
  EMULATOR_ENTER_CONTEXT();
  Function* function = find_function(handle);
  if (!function) return CUDA_ERROR_INVALID_HANDLE;
  if (block_size < 1) return CUDA_ERROR_INVALID_VALUE;
  const size_t bytes = shared + size_t(static_shared_bytes(*function->module)) + 1024;
  *blocks = block_size > 1024 ? 0 : int(std::min<size_t>({32, size_t(2048 / block_size), (size_t(228) << 10) / bytes}));
  return CUDA_SUCCESS;
}

EMULATOR_API Status cuLaunchKernel(void* handle, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                                   unsigned block_y, unsigned block_z, unsigned shared, void* stream_handle,
                                   void** parameters, void** extra) {
  EMULATOR_ENTER_CONTEXT();
  Function* function = find_function(handle);
  Stream* stream = find_stream(stream_handle);
  if (!function || !stream) return CUDA_ERROR_INVALID_HANDLE;
  const EmulatedKernel& kernel = *function->kernel;
  if (stream->device != function->module->device) {
    complain("%s: loaded on device %d, launched on a stream of device %d", kernel.name,
             function->module->device->ordinal, stream->device->ordinal);
    return CUDA_ERROR_INVALID_HANDLE;
  }
  if (extra) return CUDA_ERROR_NOT_SUPPORTED;
  const uint64_t threads = uint64_t(block_x) * block_y * block_z;
  if (!grid_x || !grid_y || !grid_z || grid_x > 0x7fffffff || grid_y > 65535 || grid_z > 65535 || !threads ||
      block_x > 1024 || block_y > 1024 || block_z > 64 || threads > 1024) {
    complain("%s: no launch with grid (%u, %u, %u) and block (%u, %u, %u)", kernel.name, grid_x, grid_y, grid_z,
             block_x, block_y, block_z);
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (kernel.max_threads && threads > kernel.max_threads) {
    complain("%s: %u threads in a block; its __launch_bounds__ are %u", kernel.name, unsigned(threads),
             kernel.max_threads);
    return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  }
  if (int64_t(shared) > function->shared_limit) {
    complain("%s: %u bytes of dynamic shared memory; it may have %d (cuFuncSetAttribute)", kernel.name, shared,
             function->shared_limit);
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (kernel.parameters && !parameters) return CUDA_ERROR_INVALID_VALUE;
  auto launch = std::make_shared<Launch>(Launch{
      function, function->module, stream->device, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared, {}});
  for (unsigned i = 0; i < kernel.parameters; ++i) {
    const auto* bytes = static_cast<const unsigned char*>(parameters[i]);
    launch->values.emplace_back(bytes, bytes + kernel.sizes[i]);
  }
  return submit(stream, kernel.name, [launch] { return launch->run(); });
}

namespace {
struct LaunchSettings {  // CUlaunchConfig
  unsigned grid[3], block[3], shared;
  void* stream;
  const void* attributes;
  unsigned attribute_count;
};
}  // namespace

// The attributes allow a kernel to begin early; here it does not.
EMULATOR_API Status cuLaunchKernelEx(const LaunchSettings* settings, void* handle, void** parameters, void** extra) {
  const auto& [grid, block, shared, stream, attributes, count] = *settings;
  return cuLaunchKernel(handle, grid[0], grid[1], grid[2], block[0], block[1], block[2], shared, stream, parameters,
                        extra);
}
