#include "tensor/backend.h"

namespace cresset {

Backend* backends[kDeviceTypes] = {};

Device resolve(Device device) {
  if (device.type != DeviceType::cuda) return device;
  return {device.type, static_cast<int8_t>(backend_of(device).resolve(device.index))};
}

char* address_for_others(const Tensor& t) {
  char* const memory = t.storage()->plain();
  char* const address = memory ? memory + t.offset() * size_of(t.dtype()) : nullptr;
  if (has_backend(t.device()) && address) backend_of(t.device()).settle();
  return address;
}

}  // namespace cresset
