// What the emulated NVRTC gives as a "cubin" and the emulated driver takes: this header, then the bytes of a shared
// object.
#pragma once
#include <cstdint>

namespace emulator {

inline constexpr char image_magic[8] = {'E', 'M', 'U', 'L', 'A', 'T', 'E', 'D'};
struct ImageHeader {
  char magic[8];
  uint64_t bytes;
};

}  // namespace emulator
