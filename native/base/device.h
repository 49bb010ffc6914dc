// Where a tensor's data lives.
#pragma once
#include <cstdint>
#include <ostream>

namespace cresset {

enum class DeviceType : uint8_t { cpu, cuda, meta };
inline constexpr int kDeviceTypes = 3;

struct Device {
  DeviceType type = DeviceType::cpu;
  int8_t index = -1;  // -1: the current one
  bool operator==(const Device&) const = default;
  bool is_cpu() const { return type == DeviceType::cpu; }
  bool is_meta() const { return type == DeviceType::meta; }
};

inline const char* name_of(DeviceType t) { return t == DeviceType::cpu ? "cpu" : t == DeviceType::cuda ? "cuda" : "meta"; }
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
