// What the files of this device share: where its memory really is.
#pragma once
#include "dispatch/registration.h"
#include "tensor/backend.h"

namespace cresset::fake {

inline constexpr Device kDevice{DeviceType::privateuseone, 0};

// No process has memory there.
inline constexpr uintptr_t kFar = uintptr_t{1} << 46;
inline char* away(char* p) { return p ? reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(p) + kFar) : nullptr; }
inline char* here(char* p) { return p ? reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(p) - kFar) : nullptr; }

Tensor seen(const Tensor& t);  // the same elements as a tensor of the CPU; nothing is copied
Tensor sent(const Tensor& t);  // a copy on the device

}  // namespace cresset::fake
