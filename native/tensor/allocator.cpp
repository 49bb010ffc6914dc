#include "tensor/allocator.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/fork_lock.h"

namespace cresset {
namespace {

// Small blocks are cells of up to 1 KiB, in steps of 64 bytes, on a free list of the thread.
constexpr size_t kSmall = 1024, kStep = 64;
constexpr size_t kHugePage = size_t{2} << 20;

// Some room is always given where no limit is set and the system promises more memory than it has: two quick questions
// instead of a mapping, which takes as long as a small factorization.
constexpr size_t kSmallRoom = size_t{256} << 20;
bool is_unlimited() {
#ifdef __linux__
  static const bool promises = [] {
    std::ifstream file("/proc/sys/vm/overcommit_memory");
    int mode = 2;  // never more than there is
    return file >> mode && mode != 2;
  }();
  rlimit space{}, data{};
  return promises && getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur == RLIM_INFINITY &&
         getrlimit(RLIMIT_DATA, &data) == 0 && data.rlim_cur == RLIM_INFINITY;
#else
  return false;
#endif
}

// A size class: eight steps between powers of two, so that at most an eighth is wasted.
size_t class_size(size_t bytes) {
  const size_t power = std::bit_floor(bytes);
  const size_t step = std::max(power / 8, kStep);
  return (bytes + step - 1) / step * step;
}

struct Cache {
  ForkLock lock;
  struct Bin {
    size_t size;
    std::vector<void*> blocks;
  };
  std::vector<Bin> bins;  // few classes are alive at a time; searched from the front, most recent first
  std::atomic<int64_t> in_use{0}, peak{0}, cached{0};

  void* take(size_t size) {
    std::lock_guard guard(lock);
    for (size_t i = 0; i < bins.size(); ++i)
      if (bins[i].size == size) {
        if (bins[i].blocks.empty()) return nullptr;
        void* p = bins[i].blocks.back();
        bins[i].blocks.pop_back();
        cached -= static_cast<int64_t>(size);
        return p;
      }
    return nullptr;
  }
  // Where there is no memory to note the block down, it goes back to the system: whoever frees it can bear no error.
  void put(void* p, size_t size) noexcept {
    std::lock_guard guard(lock);
    try {
      const auto bin = std::find_if(bins.begin(), bins.end(), [size](const Bin& b) { return b.size == size; });
      if (bin != bins.end())
        bin->blocks.push_back(p);
      else
        bins.push_back({size, {p}});
      cached += static_cast<int64_t>(size);
    } catch (const std::bad_alloc&) {
      std::free(p);
    }
  }
  void clear() {
    std::lock_guard guard(lock);
    for (auto& bin : bins) {
      for (void* p : bin.blocks) std::free(p);
      cached -= static_cast<int64_t>(bin.size * bin.blocks.size());
    }
    bins.clear();
  }
};

// Never destroyed: tensors may die after static destructors have run.
Cache& cache() {
  static Cache* the = new Cache;
  return *the;
}

// What is kept for later at most.
constexpr int64_t kCacheLimit = int64_t{2} << 30;

struct FreeLists {
  static constexpr int kClasses = kSmall / kStep + 1;
  struct Cell {
    Cell* next;
  };
  std::array<Cell*, kClasses> heads{};
  std::array<uint32_t, kClasses> counts{};
  ~FreeLists();
};
thread_local bool free_lists_alive = true;
thread_local FreeLists free_lists;
#ifdef __SANITIZE_ADDRESS__
constexpr uint32_t kCellsKept = 0;  // every block comes from malloc, so that the sanitizer sees its bounds and its end
constexpr bool kCaches = false;
#else
constexpr uint32_t kCellsKept = 4096;
constexpr bool kCaches = true;
#endif

FreeLists::~FreeLists() {
  free_lists_alive = false;
  for (Cell* head : heads)
    while (head) std::free(std::exchange(head, head->next));
}

}  // namespace

void* allocate_cell(size_t bytes) {
  const size_t k = (bytes + kStep - 1) / kStep;
  if (free_lists_alive) {
    if (FreeLists::Cell* cell = free_lists.heads[k]) {
      free_lists.heads[k] = cell->next;
      --free_lists.counts[k];
      return cell;
    }
  }
  void* p =
      kCaches ? std::aligned_alloc(kStep, std::max<size_t>(k, 1) * kStep) : std::malloc(std::max<size_t>(bytes, 1));
  if (!p) fail(ErrorKind::out_of_memory, "out of memory: could not allocate ", bytes, " bytes");
  return p;
}

void free_cell(void* p, size_t bytes) {
  const size_t k = (bytes + kStep - 1) / kStep;
  if (!free_lists_alive || free_lists.counts[k] >= kCellsKept) return std::free(p);
  free_lists.heads[k] = new (p) FreeLists::Cell{free_lists.heads[k]};
  ++free_lists.counts[k];
}

void* allocate_host(size_t bytes) {
  if (bytes <= kSmall) return allocate_cell(bytes);
  const size_t size = class_size(bytes);
  void* p = cache().take(size);
  if (!p) {
    if (!kCaches) p = std::malloc(bytes);
    const size_t alignment = size >= 2 * kHugePage ? kHugePage : kStep;
    const size_t rounded = (size + alignment - 1) / alignment * alignment;
    if (!p && bytes <= (size_t{1} << 47)) p = std::aligned_alloc(alignment, rounded);
    if (!p && bytes <= (size_t{1} << 47)) {
      empty_host_cache();
      p = std::aligned_alloc(alignment, rounded);
    }
    if (!p)
      fail(ErrorKind::out_of_memory, "DefaultCPUAllocator: can't allocate memory: you tried to allocate ", bytes,
           " bytes");
    if (kCaches && alignment == kHugePage) madvise(p, rounded, MADV_HUGEPAGE);
  }
  const int64_t now = cache().in_use += static_cast<int64_t>(size);
  if (now > cache().peak) cache().peak = now;
  return p;
}

void free_host(void* p, size_t bytes) {
  if (bytes <= kSmall) return free_cell(p, bytes);
  const size_t size = class_size(bytes);
  cache().in_use -= static_cast<int64_t>(size);
  if (!kCaches || cache().cached + static_cast<int64_t>(size) > kCacheLimit) return std::free(p);
  cache().put(p, size);
}

bool has_room(size_t bytes) {
  if (bytes <= kSmallRoom && is_unlimited()) return true;
  void* const p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p != MAP_FAILED) munmap(p, bytes);
  return p != MAP_FAILED;
}

void empty_host_cache() { cache().clear(); }

HostMemoryStatistics host_memory_statistics() { return {cache().in_use, cache().peak, cache().cached}; }
void reset_peak_host_memory() { cache().peak = cache().in_use.load(); }

}  // namespace cresset
