#include "base/thread_data.h"

#include <pthread.h>

#include <cstddef>
#include <cstdlib>
#include <exception>

namespace cresset {
namespace {

constexpr size_t kRoom = 64 << 10;  // more than twice what the module has for each thread

constinit thread_local volatile bool made = false;

// Note [Destructors at the end of a thread]
// For each thread-local object that has a destructor, the compiler asks the C++ library to call it when the thread
// ends. That wants memory, and where there is none the C library ends the process. So the linker sends these calls here
// (native/CMakeLists.txt): where there is no memory, the object is not destructed, and what it holds is lost with its
// thread. The key of POSIX that tells the end of a thread wants no memory.

struct Last {
  void (*destruct)(void*);
  void* object;
  Last* before;
};
constinit thread_local Last* last = nullptr;

void destruct_all(void*) {
  while (Last* const one = last) {
    last = one->before;
    one->destruct(one->object);
    std::free(one);
  }
}

pthread_key_t key = 0;
pthread_once_t key_made = PTHREAD_ONCE_INIT;
bool has_key = false;

void make_key() { has_key = pthread_key_create(&key, destruct_all) == 0; }

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

extern "C" int __wrap___cxa_thread_atexit(void (*destruct)(void*), void* object, void*) {
  using namespace cresset;
  pthread_once(&key_made, make_key);
  if (!has_key || (!last && pthread_setspecific(key, &key) != 0)) return -1;
  auto* const one = static_cast<Last*>(std::malloc(sizeof(Last)));
  if (!one) return -1;
  *one = {destruct, object, last};
  last = one;
  return 0;
}
