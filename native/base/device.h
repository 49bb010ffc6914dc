// Where a tensor's data lives.
#pragma once
#include <cstdint>
#include <ostream>

namespace cresset {

// All can be named, as in PyTorch. Something can be put where a Backend is (tensor/backend.h); `meta` has shapes and no
// memory.
enum class DeviceType : uint8_t {
  cpu,
  cuda,
  meta,
  xpu,
  mps,
  hpu,
  mtia,
  xla,
  ipu,
  maia,
  hip,
  lazy,
  vulkan,
  mkldnn,
  opengl,
  opencl,
  ideep,
  ve,
  fpga,
  privateuseone,
  count
};
inline constexpr int kDeviceTypes = static_cast<int>(DeviceType::count);
inline constexpr const char* kDeviceNames[] = {"cpu",    "cuda",   "meta",  "xpu", "mps",  "hpu",          "mtia",
                                               "xla",    "ipu",    "maia",  "hip", "lazy", "vulkan",       "mkldnn",
                                               "opengl", "opencl", "ideep", "ve",  "fpga", "privateuseone"};

struct Device {
  DeviceType type = DeviceType::cpu;
  int8_t index = -1;  // -1: the current one
  bool operator==(const Device&) const = default;
  bool is_cpu() const { return type == DeviceType::cpu; }
  bool is_meta() const { return type == DeviceType::meta; }
};

inline const char* name_of(DeviceType t) { return kDeviceNames[static_cast<int>(t)]; }
inline std::ostream& operator<<(std::ostream& out, Device d) {
  out << name_of(d.type);
  if (d.index >= 0) out << ':' << static_cast<int>(d.index);
  return out;
}

// Where new tensors go when nobody says where; the CPU at first.
Device default_device();
void set_default_device(Device d);

enum class MemoryFormat : uint8_t { contiguous, preserve, channels_last, channels_last_3d };
enum class LayoutKind : uint8_t { strided, sparse_coo, sparse_csr, jagged };

}  // namespace cresset
