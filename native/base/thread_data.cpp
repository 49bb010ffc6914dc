#include "base/thread_data.h"

#include <cstddef>
#include <cstdlib>
#include <exception>

namespace cresset {
namespace {

constexpr size_t kRoom = 64 << 10;  // more than twice what the module has for each thread

constinit thread_local volatile bool made = false;

}  // namespace

bool make_thread_data() {
  void* const probe = std::malloc(kRoom);
  asm volatile("" : : "r"(probe) : "memory");  // or the compiler leaves out both calls
  if (!probe) return false;
  std::free(probe);
  made = true;                                    // which makes all of the module's,
  const int thrown = std::uncaught_exceptions();  // and this what the C++ library needs to throw
  asm volatile("" : : "r"(thrown));               // it is declared pure: unasked, it would not be called
  return true;
}

}  // namespace cresset
