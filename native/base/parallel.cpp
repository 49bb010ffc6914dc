#include "base/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <thread>

#include "base/denormals.h"
#include "base/thread_data.h"

namespace cresset {
namespace {

// ---- how many -----------------------------------------------------------------------------------------------------

// What a container may use: the cgroup quota, rounded up; 0 when there is none.
int cgroup_limit() {
  int limit = 0;
  if (FILE* f = std::fopen("/sys/fs/cgroup/cpu.max", "r")) {
    char quota[32];
    double period;
    if (std::fscanf(f, "%31s %lf", quota, &period) == 2 && std::strcmp(quota, "max") != 0)
      limit = static_cast<int>(std::ceil(std::atof(quota) / period));
    std::fclose(f);
  }
  return limit;
}

int count_processors() {
  cpu_set_t set;
  int n =
      sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  if (const int limit = cgroup_limit(); limit > 0) n = std::min(n, limit);
  return std::max(n, 1);
}

int processors() {
  static const int n = count_processors();
  return n;
}

// What an operation is divided among at most.
constexpr int kWords = 4, kMostPieces = 64 * kWords;

int wished_threads() {
  if (const char* wish = std::getenv("OMP_NUM_THREADS"))
    if (const int n = std::atoi(wish); n > 0) return std::min(n, kMostPieces);
  return std::min(processors(), kMostPieces);
}

std::atomic<int> the_thread_count{0};

// ---- the pool -----------------------------------------------------------------------------------------------------
//
// A caller takes one of a few regions, writes down its work there and opens its pieces, one bit each. Whoever clears a
// bit does that piece: the caller takes the first one and whatever nobody has begun; so it waits only for pieces that
// somebody is at, never for a thread that has yet to be given a processor. The thread of seat k looks for piece k
// first: what the last operation left in its processor's cache is where the next one wants it. Nothing is allocated,
// and nothing here is destroyed: threads may be at work while the process ends.

constexpr int kRegions = 16;
constexpr int64_t kMicrosecond = 1000;
// How long a thread looks out for more before it sleeps: waking it takes 5 to 50 us.
constexpr int64_t kIdleSpin = 300 * kMicrosecond, kEndSpin = 100 * kMicrosecond;
// A thread that looks out and finds that so much time has passed was not running: there is more to do than there are
// processors.
constexpr int64_t kPreempted = 200 * kMicrosecond, kScarceFor = 50'000 * kMicrosecond;

struct Failure {
  std::atomic_flag lock;
  std::exception_ptr raised;
  int64_t piece = kMostPieces;
};

struct alignas(64) Region {
  std::atomic<bool> taken{false};
  RangeWork piece;
  void* work;
  Failure* failure;
  int64_t n, count;
  bool flush;  // denormals, as in the caller's thread: the result does not depend on who computes it
  alignas(64) std::atomic<uint64_t> open[kWords];
  alignas(64) std::atomic<uint32_t> left{0};  // pieces that have not ended
  std::atomic<bool> caller_sleeps{false};
};

constinit Region regions[kRegions];
alignas(64) constinit std::atomic<uint32_t> changes{0};  // one more with each region that opens
alignas(64) constinit std::atomic<int> looking{0}, sleeping{0};
constinit std::atomic<int> started{0};
constinit std::atomic_flag starting;
constinit std::atomic<int64_t> scarce_until{0};
constinit thread_local bool inside = false;

int64_t now() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

bool processors_are_scarce(int64_t time) {
  return time < scarce_until.load(std::memory_order_relaxed) || thread_count() > processors();
}

// Looks until `happened()`, for at most `most` nanoseconds; not at all where others want the processor.
template <class Happened>
bool look_for(int64_t most, Happened happened) {
  const int64_t begin = now();
  int64_t last = begin;
  if (processors_are_scarce(begin)) return happened();
  for (;;) {
    for (int i = 0; i < 32; ++i) {
      if (happened()) return true;
      pause();
    }
    const int64_t time = now();
    if (time - last > kPreempted) {
      scarce_until.store(time + kScarceFor, std::memory_order_relaxed);
      return happened();
    }
    if (time - begin > most) return false;
    last = time;
  }
}

// A piece that nobody has begun, the one with the number `seat` or the next after it; -1: there is none.
int claim(Region& r, int seat) {
  for (int i = 0; i <= kWords; ++i) {
    const int first = seat >> 6, w = (first + i) % kWords;
    std::atomic<uint64_t>& word = r.open[w];
    uint64_t allowed = ~uint64_t{0};
    if (i == 0) allowed <<= seat & 63;
    while (const uint64_t open = word.load(std::memory_order_relaxed) & allowed) {
      const uint64_t bit = open & -open;
      if (word.fetch_and(~bit, std::memory_order_acq_rel) & bit) return 64 * w + std::countr_zero(bit);
    }
  }
  return -1;
}

void run_piece(Region& r, int64_t k) {
  try {
    r.piece(r.work, r.n * k / r.count, r.n * (k + 1) / r.count);
  } catch (...) {
    Failure& failure = *r.failure;
    while (failure.lock.test_and_set(std::memory_order_acquire)) pause();
    if (k < failure.piece) failure.raised = std::current_exception(), failure.piece = k;
    failure.lock.clear(std::memory_order_release);
  }
}

// Does what is open, the thread's own piece first.
bool help(Region& r, int seat) {
  bool helped = false;
  for (int k; (k = claim(r, seat)) >= 0; helped = true) {
    if (r.flush != flushes_denormals()) flush_denormals(r.flush);
    run_piece(r, k);
    if (r.left.fetch_sub(1) == 1 && r.caller_sleeps.load()) r.left.notify_all();
  }
  return helped;
}

void* serve(void* argument) {
  const int seat = static_cast<int>(reinterpret_cast<intptr_t>(argument));
  while (!make_thread_data())
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the caller does without it meanwhile
  inside = true;
  for (;;) {
    for (int n; seat >= (n = thread_count());) the_thread_count.wait(n);
    const uint32_t seen = changes.load();
    bool helped = false;
    for (Region& r : regions) helped |= help(r, seat);
    if (helped) continue;
    const auto changed = [seen] { return changes.load(std::memory_order_relaxed) != seen; };
    looking.fetch_add(1);
    const bool more = look_for(kIdleSpin, changed);
    looking.fetch_sub(1);
    if (more) continue;
    sleeping.fetch_add(1);
    changes.wait(seen);
    sleeping.fetch_sub(1);
  }
  return nullptr;
}

// In a forked child the caller's thread is the only one.
void begin_anew() {
  for (Region& r : regions) {
    for (auto& word : r.open) word.store(0);
    r.left.store(0);
    r.caller_sleeps.store(false);
    r.taken.store(false);
  }
  looking.store(0);
  sleeping.store(0);
  started.store(0);
  starting.clear();
}

bool start(int seat) {
  pthread_t thread;
  return pthread_create(&thread, nullptr, serve, reinterpret_cast<void*>(static_cast<intptr_t>(seat))) == 0 &&
         pthread_detach(thread) == 0;
}

// Where no more threads can be had, those that are there do the work.
void start_up_to(int threads) {
  if (started.load(std::memory_order_acquire) >= threads - 1 || starting.test_and_set(std::memory_order_acquire))
    return;
  static const bool watches_forks = pthread_atfork(nullptr, nullptr, begin_anew) == 0;
  if (watches_forks) {
    // Signals are for the program's own threads.
    sigset_t all, before;
    sigfillset(&all);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS}) sigdelset(&all, fault);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (int n = started.load(); n < threads - 1 && start(n + 1); ++n) started.store(n + 1);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  starting.clear(std::memory_order_release);
}

Region* take_region() {
  for (Region& r : regions)
    if (!r.taken.load(std::memory_order_relaxed) && !r.taken.exchange(true, std::memory_order_acquire)) return &r;
  return nullptr;
}

}  // namespace

int thread_count() {
  int n = the_thread_count.load(std::memory_order_relaxed);
  if (n == 0) the_thread_count.store(n = wished_threads(), std::memory_order_relaxed);
  return n;
}

void set_thread_count(int n) {
  the_thread_count.store(std::min(n, kMostPieces));
  the_thread_count.notify_all();
}

bool in_parallel_region() { return inside; }

void run_pieces(int64_t n, int64_t threads, RangeWork piece, void* work) {
  const int pieces = static_cast<int>(std::min<int64_t>(threads, kMostPieces));
  start_up_to(pieces);
  Region* r = started.load(std::memory_order_relaxed) > 0 ? take_region() : nullptr;
  if (!r) return piece(work, 0, n);
  Failure failure;
  r->piece = piece, r->work = work, r->failure = &failure, r->n = n, r->count = pieces;
  r->flush = flushes_denormals();
  r->left.store(static_cast<uint32_t>(pieces), std::memory_order_relaxed);
  for (int w = 0; 64 * w < pieces; ++w) {
    const int bits = std::min(pieces - 64 * w, 64);
    r->open[w].store((~uint64_t{0} >> (64 - bits)) & (w == 0 ? ~uint64_t{1} : ~uint64_t{0}), std::memory_order_release);
  }
  changes.fetch_add(1);
  if (const int wanted = std::min(pieces - 1 - looking.load(), sleeping.load()); wanted > 0) {
    if (wanted == sleeping.load())
      changes.notify_all();
    else
      for (int i = 0; i < wanted; ++i) changes.notify_one();
  }
  inside = true;
  uint32_t done = 0;
  for (int k = 0; k >= 0; k = claim(*r, 0), ++done) run_piece(*r, k);
  inside = false;
  if (r->left.fetch_sub(done) != done &&
      !look_for(kEndSpin, [r] { return r->left.load(std::memory_order_acquire) == 0; })) {
    r->caller_sleeps.store(true);
    for (uint32_t left; (left = r->left.load()) != 0;) r->left.wait(left);
    r->caller_sleeps.store(false);
  }
  r->taken.store(false, std::memory_order_release);
  if (failure.raised) std::rethrow_exception(failure.raised);
}

}  // namespace cresset
