// Page-locked host memory, from which a device copies without the processor's help. A backend that has it says so here.
#pragma once
#include "tensor/storage.h"

namespace cresset {

// As the index of the CPU in a TensorInfo: the memory is to be page-locked. The tensor's own device is the plain CPU.
inline constexpr int8_t kPinned = -2;

struct PinnedHost {
  bool (*available)() = nullptr;
  RefPtr<Storage> (*allocate)(int64_t bytes) = nullptr;
  bool (*holds)(const void* p) = nullptr;  // memory that somebody else made and had locked
};
extern PinnedHost pinned_host;

inline bool can_pin() { return pinned_host.available && pinned_host.available(); }

}  // namespace cresset
