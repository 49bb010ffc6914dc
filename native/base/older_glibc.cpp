// Functions that a C library older than this system's does not have, for a module that shall run there
// (tools/older_glibc.py). They are ours alone: nobody else sees them.
#ifdef CRESSET_OLDER_GLIBC
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

extern "C" {

int __xstat(int version, const char* path, struct stat* facts);
int __fxstat(int version, int file, struct stat* facts);
int __fxstat64(int version, int file, struct stat64* facts);

#ifdef __x86_64__
constexpr int kVersion = 1;
#else
constexpr int kVersion = 0;
#endif

int stat(const char* path, struct stat* facts) noexcept { return __xstat(kVersion, path, facts); }
int fstat(int file, struct stat* facts) noexcept { return __fxstat(kVersion, file, facts); }
int fstat64(int file, struct stat64* facts) noexcept { return __fxstat64(kVersion, file, facts); }

pid_t gettid() noexcept { return static_cast<pid_t>(syscall(SYS_gettid)); }

uint32_t arc4random() noexcept {
  uint32_t word = 0;
  while (getrandom(&word, sizeof word, 0) != sizeof word) {
  }
  return word;
}

// Whether the process has one thread only: the older library did not say, so reference counts are always atomic.
char __libc_single_threaded = 0;
}
#endif
