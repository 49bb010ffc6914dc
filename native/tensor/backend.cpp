#include "tensor/backend.h"

#include "tensor/pending.h"

namespace cresset {

constinit Backend* backends[kDeviceTypes] = {};

Backend::Backend(DeviceType type) : type(type) { backends[static_cast<int>(type)] = this; }

RefPtr<Storage> Backend::allocate_pinned(int64_t) { fail("'", name_of(type), "' has no page-locked memory"); }

Device resolve(Device device) {
  // A tensor of the CPU has no index, whatever was asked for: "cpu:0" is where "cpu" is.
  if (device.is_cpu() && device.index != kPinned) return Device{};
  if (!is_accelerator(device)) return device;
  Backend* const backend = find_backend(device);
  return backend ? Device{device.type, static_cast<int8_t>(backend->resolve(device.index))} : device;
}

Backend* pinning_backend() {
  for (Backend* b : backends)
    if (b && b->can_pin()) return b;
  return nullptr;
}

char* address_for_others(const Tensor& t) {
  before_write(*t.storage());
  char* const memory = t.storage()->plain();
  char* const address = memory ? memory + t.offset() * size_of(t.dtype()) : nullptr;
  if (is_accelerator(t.device()) && address) backend_of(t.device()).settle();
  return address;
}

}  // namespace cresset
