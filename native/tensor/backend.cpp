#include "tensor/backend.h"

namespace cresset {

Backend* backends[kDeviceTypes] = {};

Device resolve(Device device) {
  if (device.type != DeviceType::cuda) return device;
  return {device.type, static_cast<int8_t>(backend_of(device).resolve(device.index))};
}

}  // namespace cresset
