#include "cuda/launch.h"

#include <algorithm>

#include "base/error.h"

namespace cresset::cuda {

const char* tag_of(Dtype d) {
  static constexpr const char* tags[] = {"u8",       "i8",         "i16",        "i32",  "i64", "f16",  "f32",
                                         "f64",      "c32",        "c64",        "c128", "b8",  "bf16", "f8e5m2",
                                         "f8e4m3fn", "f8e5m2fnuz", "f8e4m3fnuz", "u16",  "u32", "u64",  "f8e8m0fnu"};
  return tags[static_cast<int>(d)];
}

namespace {

Status launch_now(const Work& work) {
  const auto& l = static_cast<const KernelLaunch&>(work);
  char* const data = const_cast<char*>(reinterpret_cast<const char*>(&l + 1));
  void* parameters[KernelLaunch::kMostArguments];
  for (uint32_t i = 0; i < l.arguments; ++i) parameters[i] = data + l.offsets[i];
  return started_driver->cuLaunchKernel.now(l.function, l.grid.x, l.grid.y, l.grid.z, l.block.x, l.block.y, l.block.z,
                                            l.shared, l.stream, parameters, nullptr);
}

}  // namespace

KernelLaunch::KernelLaunch(FunctionHandle f, const Place& place, Grid grid, Grid block, int64_t shared)
    : Work{launch_now, "cuLaunchKernel", static_cast<int16_t>(place.device), 1, 0, nullptr, place.stream},
      shared(static_cast<uint32_t>(shared)),
      function(f),
      grid(grid),
      block(block) {}

void launch_bytes(FunctionHandle function, const Place& place, Grid grid, Grid block, std::span<const char> argument) {
  KernelLaunch work(function, place, grid, block, 0);
  work.offsets[work.arguments++] = 0;
  enqueue(work, argument.size(), [&](char* to) { std::memcpy(to, argument.data(), argument.size()); });
}

KernelFamily::KernelFamily(const char* file, const char* entry, std::initializer_list<const char*> macros,
                           std::initializer_list<const char*> options)
    : text_(join("#include \"", file, "\"\n")), entry_(entry), macros_(macros), options_(options) {}
KernelFamily::KernelFamily(KernelText text, const char* entry, std::initializer_list<const char*> macros,
                           std::initializer_list<const char*> options)
    : text_(text.text), entry_(entry), macros_(macros), options_(options) {}

void KernelFamily::allow_shared(Known& k, int64_t shared) {
  if (shared <= 48 * 1024 || k.takes_more) [[likely]]
    return;
  CRESSET_DRIVER(cuFuncSetAttribute(k.kernel.function, kFunctionSharedLimit,
                                    static_cast<int>(properties(k.device).shared_per_block_optin)));
  k.takes_more = true;
}

const Kernel& KernelFamily::get(const Place& place, std::initializer_list<Choice> choices, int64_t shared) const {
  invariant(choices.size() == macros_.size() && macros_.size() <= kMostMacros,
            std::string("the choices of the kernel ") + entry_);
  std::array<int32_t, kMostMacros> values{};
  size_t n = 0;
  for (const Choice& c : choices) values[n++] = c.value;
  std::lock_guard guard(lock_);
  for (size_t i = 0; i < known_.size(); ++i)
    if (known_[i]->device == place.device && known_[i]->values == values) {
      if (i) std::swap(known_[i], known_[0]);
      allow_shared(*known_[0], shared);
      return known_[0]->kernel;
    }
  std::vector<std::string> options(options_.begin(), options_.end());
  n = 0;
  for (const Choice& c : choices)
    options.push_back(c.is_dtype ? join("-D", macros_[n++], "=dtype_", tag_of(static_cast<Dtype>(c.value)))
                                 : join("-D", macros_[n++], "=", c.value));
  auto* made = new Known{place.device, values, load_kernel(place.device, text_, entry_, options)};
  allow_shared(*made, shared);
  known_.insert(known_.begin(), made);
  return made->kernel;
}

}  // namespace cresset::cuda
