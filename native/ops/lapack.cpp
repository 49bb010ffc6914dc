#include "ops/lapack.h"

#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <mutex>
#include <utility>

#include "base/fork_lock.h"
#include "dispatch/call.h"
#include "tensor/allocator.h"

namespace cresset {

std::vector<std::string> (*places_of_lapack)() = nullptr;

namespace {

// OpenBLAS ends the process when it cannot have a buffer (32 MiB for each of its threads when it is loaded, and one for
// a caller), and interrupts it when it cannot start a thread (8 MiB of stack each, once more after a fork). So nobody
// calls it without that much room.
constexpr size_t kBuffer = size_t{32} << 20, kStack = size_t{8} << 20, kRest = size_t{16} << 20;
constexpr size_t kLibrary = size_t{64} << 20;  // its code and tables, as the loader maps them
// Matrices of fewer bytes are for one thread: OpenBLAS wakes all of its own for every matrix but tiny ones, and they
// look out for work for longer than a small one takes. Whatever set_num_threads says, so that no result depends on it.
constexpr int64_t kForOneThread = 128 << 10;
constexpr double kLongWork = 1e6;  // steps; some hundred microseconds

constexpr int kRoutines = static_cast<int>(Lapack::count);
// What they are called for real and for complex numbers.
constexpr std::pair<const char*, const char*> kNames[kRoutines] = {
    {"geev", "geev"},   {"gels", "gels"},   {"gelsd", "gelsd"}, {"gelss", "gelss"}, {"gelsy", "gelsy"},
    {"geqrf", "geqrf"}, {"gesdd", "gesdd"}, {"getrf", "getrf"}, {"getrs", "getrs"}, {"sytrf", "hetrf"},
    {"sytrs", "hetrs"}, {"orgqr", "ungqr"}, {"ormqr", "unmqr"}, {"potrf", "potrf"}, {"potri", "potri"},
    {"syevd", "heevd"}, {"sytrf", "sytrf"}, {"sytrs", "sytrs"}, {"trsm", "trsm"},
};

struct Library {
  void* handle = nullptr;
  int threads = 1;  // of its own
  size_t room = 0;  // what it takes, once it is there
  void (*set_threads)(int) = nullptr;
  std::atomic<void*> routines[kRoutines][4] = {};
};

void check_room(size_t bytes) {
  if (has_room(bytes)) return;
  empty_host_cache();
  if (has_room(bytes)) return;
  fail(ErrorKind::out_of_memory, "linalg: out of memory: LAPACK (OpenBLAS) needs ", bytes >> 20,
       " MiB of room for its workspace, which cannot be had");
}

template <class F>
F symbol(void* handle, const char* name) {
  return reinterpret_cast<F>(dlsym(handle, name));
}

Library* open() {
  const long cores = sysconf(_SC_NPROCESSORS_ONLN);
  check_room(kLibrary + static_cast<size_t>(std::clamp(cores, 1L, 64L)) * (kBuffer + kStack) + kRest);
  for (const std::string& path : places_of_lapack ? places_of_lapack() : std::vector<std::string>()) {
    void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) continue;
    const auto get_threads = symbol<int (*)()>(handle, "scipy_openblas_get_num_threads64_");
    const auto set_threads = symbol<void (*)(int)>(handle, "scipy_openblas_set_num_threads64_");
    if (!get_threads || !set_threads || !dlsym(handle, "scipy_dgetrf_64_")) continue;
    auto* found = new Library;
    found->handle = handle, found->set_threads = set_threads, found->threads = get_threads();
    found->room = kBuffer + static_cast<size_t>(found->threads) * kStack + kRest;
    return found;
  }
  fail(
      "linalg: this function needs LAPACK, which was not found. Install it with `pip install scipy-openblas64` "
      "(NumPy's wheels for Linux bring it too)");
}

Library& library() {
  static std::atomic<Library*> the{nullptr};
  if (Library* const found = the.load(std::memory_order_acquire)) return *found;
  static auto* lock = new ForkLock;
  std::lock_guard guard(*lock);
  if (!the.load(std::memory_order_relaxed)) the.store(open(), std::memory_order_release);
  return *the.load(std::memory_order_relaxed);
}

int letter_of(Dtype d) {
  switch (d) {
    case Dtype::f32: return 0;
    case Dtype::f64: return 1;
    case Dtype::c64: return 2;
    case Dtype::c128: return 3;
    default: fail(ErrorKind::not_implemented, "linalg: LAPACK has no routines for '", name_of(d), "'");
  }
}

void* find(Lapack routine, Dtype dtype) {
  Library& from = library();
  const int which = static_cast<int>(routine), letter = letter_of(dtype);
  std::atomic<void*>& known = from.routines[which][letter];
  if (void* const found = known.load(std::memory_order_relaxed)) [[likely]]
    return found;
  const auto& [real, complex] = kNames[which];
  const std::string name = join("scipy_", std::string(1, "sdcz"[letter]), letter < 2 ? real : complex, "_64_");
  void* const found = dlsym(from.handle, name.c_str());
  check(found, "linalg: the LAPACK that was found has no ", name);
  known.store(found, std::memory_order_relaxed);
  return found;
}

// Everything is passed by its address, apart from the lengths of texts, which are words of the same size behind it.
constexpr size_t kMostWords = 32;
using Words = std::array<void*, kMostWords>;

template <size_t>
using Word = void*;
template <size_t... at>
void call_with(void* routine, const Words& words, std::index_sequence<at...>) {
  reinterpret_cast<void (*)(Word<at>...)>(routine)(words[at]...);
}
template <size_t count>
void call_counted(void* routine, const Words& words) {
  call_with(routine, words, std::make_index_sequence<count>());
}
template <size_t... counts>
constexpr auto callers_for(std::index_sequence<counts...>) {
  return std::array{&call_counted<counts>...};
}

}  // namespace

LapackWork::LapackWork(int64_t bytes, double steps) : away_(nullptr), alone_(false) {
  const Library& from = library();
  check_room(from.room);
  alone_ = from.threads > 1 && bytes < kForOneThread;
  if (alone_) from.set_threads(1);
  if (steps > kLongWork && leave_interpreter) away_ = leave_interpreter();
}
LapackWork::~LapackWork() {
  if (away_) enter_interpreter(away_);
  if (alone_) library().set_threads(library().threads);
}

int64_t call_lapack(Lapack routine, Dtype dtype, std::initializer_list<LapackArgument> arguments) {
  static constexpr auto callers = callers_for(std::make_index_sequence<kMostWords>());
  Words words;
  size_t count = 0, options = 0;
  int64_t info = 0;
  for (const LapackArgument& a : arguments) {
    words[count++] = a.word();
    options += a.is_option();
  }
  words[count++] = &info;
  for (size_t i = 0; i < options; ++i) words[count++] = reinterpret_cast<void*>(uintptr_t{1});
  callers[count](find(routine, dtype), words);
  invariant(info >= 0 || routine == Lapack::gesdd,
            join("LAPACK's ", kNames[static_cast<int>(routine)].first, " refused argument ", -info));
  return info;
}

LapackSizes workspace_of(Lapack routine, Dtype dtype, std::initializer_list<int64_t> what, AskLapack ask,
                         const void* context) {
  // What was asked for last: asking takes as long as a small factorization.
  struct Known {
    bool known;
    Lapack routine;
    Dtype dtype;
    std::array<int64_t, 5> what;
    LapackSizes sizes;
  };
  static thread_local std::array<Known, 32> answers{};
  std::array<int64_t, 5> key{};
  size_t hash = static_cast<size_t>(routine) * 4 + static_cast<size_t>(letter_of(dtype));
  size_t n = 0;
  for (const int64_t value : what) hash = hash * 31 + static_cast<size_t>(value), key[n++] = value;
  Known& place = answers[hash % answers.size()];
  if (place.known && place.routine == routine && place.dtype == dtype && place.what == key) return place.sizes;
  std::complex<double> numbers{};
  int64_t integers = 0;
  ask(context, &numbers, &integers);
  const bool single = dtype == Dtype::f32 || dtype == Dtype::c64;
  float as_single;
  std::memcpy(&as_single, &numbers, sizeof as_single);
  // Single precision may round the size down: two more per million are never missing.
  const auto size = static_cast<int64_t>(single ? as_single : numbers.real());
  place = {true, routine, dtype, key, {std::max<int64_t>(1, size + size / 500000 + 1), std::max<int64_t>(1, integers)}};
  return place.sizes;
}

}  // namespace cresset
