// Every read and write of a kernel is checked. g++ calls these functions before each (-fsanitize=kernel-address): is it
// the device's memory, is the address a multiple of the size? On a GPU it must be; here it would go unnoticed.
#pragma once

namespace emulated {

// Where reads and writes were found good lately. The driver empties it before each launch.
inline constexpr int recent_count = 4;
static EmulatedRange recent[recent_count];
static int recent_next;

#define EMULATED_UNCHECKED __attribute__((no_sanitize("kernel-address")))

EMULATED_UNCHECKED
__attribute__((noinline)) static void look_up(unsigned long address, unsigned long bytes, bool writes) {
  recent[recent_next] = host.find_range(address, bytes, writes);  // does not come back when there is none
  recent_next = (recent_next + 1) % recent_count;
}

EMULATED_UNCHECKED __attribute__((noinline)) static void check(unsigned long address, unsigned long bytes,
                                                               unsigned long alignment, bool writes) {
  if (address & (alignment - 1)) host.misaligned(address, bytes, writes);
  const auto frame = (unsigned long)__builtin_frame_address(0);
  if (address - frame < (256 << 10)) return;  // the thread's own variables
  for (const EmulatedRange& range : recent)
    if (address - range.begin < range.bytes && address - range.begin + bytes <= range.bytes) return;
  look_up(address, bytes, writes);
}

}  // namespace emulated

#define EMULATED_CHECKS(bytes)                                                        \
  extern "C" EMULATED_UNCHECKED void __asan_load##bytes##_noabort(unsigned long a) {  \
    emulated::check(a, bytes, bytes, false);                                          \
  }                                                                                   \
  extern "C" EMULATED_UNCHECKED void __asan_store##bytes##_noabort(unsigned long a) { \
    emulated::check(a, bytes, bytes, true);                                           \
  }
EMULATED_CHECKS(1)
EMULATED_CHECKS(2)
EMULATED_CHECKS(4)
EMULATED_CHECKS(8)
EMULATED_CHECKS(16)
#undef EMULATED_CHECKS
extern "C" EMULATED_UNCHECKED void __asan_loadN_noabort(unsigned long a, unsigned long bytes) {
  emulated::check(a, bytes, 1, false);
}
extern "C" EMULATED_UNCHECKED void __asan_storeN_noabort(unsigned long a, unsigned long bytes) {
  emulated::check(a, bytes, 1, true);
}
extern "C" void __asan_handle_no_return() {}
extern "C" void __asan_before_dynamic_init(const char*) {}
extern "C" void __asan_after_dynamic_init() {}
