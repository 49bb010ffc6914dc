// Threads: one pool, which is started when it is first needed, and anew in a forked child.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <type_traits>

namespace cresset {

int thread_count();
void set_thread_count(int n);

// Whether the caller is inside a parallel_for: what it starts there runs in its own thread.
bool in_parallel_region();

// Runs piece(work, begin, end) over [0, n) cut into equal pieces, in the caller's thread and in up to `threads` - 1
// others. The first piece to fail, in the order of the pieces, decides which exception the caller gets, after all have
// ended.
using RangeWork = void (*)(void* work, int64_t begin, int64_t end);
void run_pieces(int64_t n, int64_t threads, RangeWork piece, void* work);

// Runs f(begin, end) over [0, n) in chunks of at least `grain`. The pieces never overlap; what f computes for an index
// must not depend on the chunk it is in.
template <class F>
void parallel_for(int64_t n, int64_t grain, F&& f) {
  const int64_t threads = std::min<int64_t>(thread_count(), grain > 0 ? n / grain : n);
  if (threads <= 1 || in_parallel_region()) {
    if (n > 0) f(int64_t{0}, n);
    return;
  }
  using Work = std::remove_reference_t<F>;
  run_pieces(
      n, threads, [](void* work, int64_t begin, int64_t end) { (*static_cast<Work*>(work))(begin, end); },
      const_cast<std::remove_const_t<Work>*>(std::addressof(f)));
}

// Below this many elements a second thread costs more than it brings.
inline constexpr int64_t kParallelGrain = 32768;

}  // namespace cresset
