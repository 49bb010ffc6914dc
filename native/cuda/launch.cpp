#include "cuda/launch.h"

#include <algorithm>

#include "base/error.h"

namespace cresset::cuda {

const char* tag_of(Dtype d) {
  static constexpr const char* tags[] = {"u8",       "i8",         "i16",        "i32",  "i64", "f16",  "f32",
                                         "f64",      "c32",        "c64",        "c128", "b8",  "bf16", "f8e5m2",
                                         "f8e4m3fn", "f8e5m2fnuz", "f8e4m3fnuz", "u16",  "u32", "u64",  "f8e8m0fnu"};
  check_implemented(!is_container(d), "cuda: no kernel computes with ", name_of(d));
  return tags[static_cast<int>(d)];
}

namespace {

// Note [Launched early]
// Between the end of a kernel and the beginning of the next one about a microsecond passes, in which the device empties
// its caches and starts blocks. From compute capability 9.0 on, a kernel may be started while the one before it runs:
// its first statement, `after_earlier_work`, waits there until all that came before is done and can be seen, and then
// lets the next kernel start, whose blocks come when all of this one's have started and there is room. So every kernel
// of ours has to have it, and none may touch memory before (to ask for it, `prefetch`, is allowed). What others launch
// (libraries, copies) waits as ever for the end of ours.
constexpr LaunchAttribute kEarly = {kAttributeEarly, 1, {}};
constexpr int kFirstMajor = 9;  // of the compute capability

constexpr uint32_t kPlainShared = 48 * 1024;

Status launch_now(const Work& work) {
  const auto& l = static_cast<const KernelLaunch&>(work);
  FunctionHandle function = nullptr;
  if (const Status status = l.kernel->find(function); status != kSuccess) [[unlikely]]
    return status;
  if (l.shared > kPlainShared)
    if (const Status status = l.kernel->allow_shared(l.device, function); status != kSuccess) return status;
  char* const data = const_cast<char*>(reinterpret_cast<const char*>(&l + 1));
  void* parameters[KernelLaunch::kMostArguments];
  for (uint32_t i = 0; i < l.arguments; ++i) parameters[i] = data + l.offsets[i];
  if (properties(l.device).major >= kFirstMajor) {
    const LaunchSettings settings{
        {l.grid.x, l.grid.y, l.grid.z}, {l.block.x, l.block.y, l.block.z}, l.shared, l.stream, &kEarly, 1};
    return started_driver->cuLaunchKernelEx.now(&settings, function, parameters, nullptr);
  }
  return started_driver->cuLaunchKernel.now(function, l.grid.x, l.grid.y, l.grid.z, l.block.x, l.block.y, l.block.z,
                                            l.shared, l.stream, parameters, nullptr);
}

}  // namespace

KernelLaunch::KernelLaunch(Kernel& kernel, const Place& place, Grid grid, Grid block, int64_t shared)
    : Work{launch_now, "cuLaunchKernel", static_cast<int16_t>(place.device), 1, 0, nullptr, place.stream},
      shared(static_cast<uint32_t>(shared)),
      kernel(&kernel),
      grid(grid),
      block(block) {}

void launch_bytes(Kernel& kernel, const Place& place, Grid grid, Grid block, std::span<const char> argument) {
  KernelLaunch work(kernel, place, grid, block, 0);
  work.offsets[work.arguments++] = 0;
  enqueue(work, argument.size(), [&](char* to) { std::memcpy(to, argument.data(), argument.size()); });
}

KernelFamily::KernelFamily(const char* file, const char* entry, std::initializer_list<const char*> macros,
                           std::initializer_list<const char*> options)
    : text_(join("#include \"", file, "\"\n")), entry_(entry), macros_(macros), options_(options) {}
KernelFamily::KernelFamily(KernelText text, const char* entry, std::initializer_list<const char*> macros,
                           std::initializer_list<const char*> options)
    : text_(text.text), entry_(entry), macros_(macros), options_(options) {}

Kernel& KernelFamily::get(const Place& place, std::initializer_list<Choice> choices) const {
  invariant(choices.size() == macros_.size() && macros_.size() <= kMostMacros,
            std::string("the choices of the kernel ") + entry_);
  std::array<int32_t, kMostMacros> values{};
  size_t n = 0;
  for (const Choice& c : choices) values[n++] = c.value;
  std::lock_guard guard(lock_);
  for (size_t i = 0; i < known_.size(); ++i)
    if (known_[i]->device == place.device && known_[i]->values == values) {
      if (i) std::swap(known_[i], known_[0]);
      return *known_[0]->kernel;
    }
  std::vector<std::string> options(options_.begin(), options_.end());
  n = 0;
  for (const Choice& c : choices)
    options.push_back(c.is_dtype ? join("-D", macros_[n++], "=dtype_", tag_of(static_cast<Dtype>(c.value)))
                                 : join("-D", macros_[n++], "=", c.value));
  auto* made = new Known{place.device, values, &load_kernel(place.device, text_, entry_, options)};
  known_.insert(known_.begin(), made);
  return *made->kernel;
}

}  // namespace cresset::cuda
