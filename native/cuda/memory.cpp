#include "cuda/memory.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <map>
#include <mutex>
#include <set>

#include "base/error.h"
#include "cuda/device.h"

namespace cresset::cuda {

std::string (*allocation_site)() = nullptr;

namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kRound = 512, kSmallLimit = kMiB, kSmallSegment = 2 * kMiB, kLargeSegment = 20 * kMiB,
                  kOwnSegment = 10 * kMiB, kSegmentRound = 2 * kMiB;
constexpr int64_t kSiteFrom = kMiB;  // blocks from this size on remember who asked for them

int64_t round_up(int64_t bytes, int64_t to) { return (bytes + to - 1) / to * to; }
int64_t segment_size(int64_t bytes) {
  if (bytes <= kSmallLimit) return kSmallSegment;
  return bytes < kOwnSegment ? kLargeSegment : round_up(bytes, kSegmentRound);
}
std::string megabytes(int64_t bytes) {
  char text[48];
  if (bytes >= 1024 * kMiB)
    snprintf(text, sizeof text, "%.2f GiB", static_cast<double>(bytes) / (1024.0 * kMiB));
  else
    snprintf(text, sizeof text, "%.2f MiB", static_cast<double>(bytes) / kMiB);
  return text;
}
int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

struct Block;
struct BySize {
  bool operator()(const Block* a, const Block* b) const;
};
struct Pool {
  std::set<Block*, BySize> free;
  bool large;
};

struct Block {
  char* data = nullptr;
  int64_t bytes = 0, requested = 0;
  StreamHandle stream = nullptr;
  Pool* pool = nullptr;
  uint64_t pool_id = 0;
  bool in_use = false, recent = false;
  Block *before = nullptr, *after = nullptr;  // neighbors in the segment
  std::vector<StreamHandle> users;            // other streams that work on it
  int pending = 0;                            // events that are waited for
  std::string site;
};
bool BySize::operator()(const Block* a, const Block* b) const {
  return a->bytes != b->bytes ? a->bytes < b->bytes : a->data < b->data;
}

class DeviceAllocator {
 public:
  int device = 0;

  Memory allocate(int64_t wanted) {
    const StreamHandle stream = enter(device);
    const int64_t bytes = std::max(round_up(wanted, kRound), kRound);
    std::string site;  // asked for before the lock is taken: looking at frames may free tensors
    if (allocation_site && (bytes >= kSiteFrom || history_limit_)) site = allocation_site();
    std::unique_lock guard(lock_);
    if (!waiting_.empty()) collect_finished(false);
    const uint64_t id = pool_id_;
    Pool& pool = pool_of(id, stream, bytes > kSmallLimit);
    Block* block = take_recent(pool, bytes);
    if (!block) block = take(pool, bytes);
    if (!block) block = grow(pool, id, stream, bytes, wanted, site);
    if (block->bytes - bytes >= (pool.large ? kMiB : kRound)) split(block, bytes);
    block->in_use = true;
    block->requested = wanted;
    block->site = std::move(site);
    count(&MemoryStatistics::allocation, pool, 1);
    count(&MemoryStatistics::allocated_bytes, pool, block->bytes);
    count(&MemoryStatistics::active, pool, 1);
    count(&MemoryStatistics::active_bytes, pool, block->bytes);
    count(&MemoryStatistics::requested_bytes, pool, wanted);
    if (history_limit_) [[unlikely]]
      note(MemoryEvent::alloc, block);
    return {block->data, block};
  }

  void free(Block* block) {
    std::unique_lock guard(lock_);
    Pool& pool = *block->pool;
    count(&MemoryStatistics::allocation, pool, -1);
    count(&MemoryStatistics::allocated_bytes, pool, -block->bytes);
    count(&MemoryStatistics::requested_bytes, pool, -block->requested);
    if (history_limit_) [[unlikely]]
      note(MemoryEvent::free, block);
    block->in_use = false;
    block->site.clear();
    if (block->users.empty()) return keep_recent(block);
    enter(device);
    for (const StreamHandle stream : block->users) {
      EventHandle event = nullptr;
      CRESSET_DRIVER(cuEventCreate(&event, kEventNoTiming));
      CRESSET_DRIVER(cuEventRecord(event, stream));
      waiting_.push_back({event, block});
      ++block->pending;
    }
    block->users.clear();
  }

  Block* find(const char* data) {
    std::unique_lock guard(lock_);
    auto segment = segments_.upper_bound(const_cast<char*>(data));
    if (segment == segments_.begin()) return nullptr;
    for (Block* b = std::prev(segment)->second.first; b; b = b->after)
      if (b->data == data) return b->in_use ? b : nullptr;
    return nullptr;
  }

  void record(Block* block, StreamHandle stream) {
    std::unique_lock guard(lock_);
    if (block->stream == stream) return;
    auto& users = block->users;
    if (std::find(users.begin(), users.end(), stream) == users.end()) users.push_back(stream);
  }

  void empty_cache() {
    std::unique_lock guard(lock_);
    enter(device);
    collect_finished(true);
    release_free_segments();
  }

  void order_free_blocks(bool on) {
    std::unique_lock guard(lock_);
    ordered_ += on ? 1 : -1;
    merge_recent();
  }

  void set_fraction(double fraction) {
    std::unique_lock guard(lock_);
    fraction_ = fraction;
  }
  double fraction() const { return fraction_; }

  void begin_pool(uint64_t pool) {
    std::unique_lock guard(lock_);
    pool_id_ = pool;
    live_pools_.insert(pool);
  }
  void end_pool() {
    std::unique_lock guard(lock_);
    pool_id_ = 0;
  }
  void release_pool(uint64_t pool) {
    std::unique_lock guard(lock_);
    live_pools_.erase(pool);
  }

  MemoryStatistics statistics() {
    std::unique_lock guard(lock_);
    return statistics_;
  }
  void reset_peaks() {
    std::unique_lock guard(lock_);
    each_figure([](Figure& f) { f.peak = f.current; });
  }
  void reset_accumulated() {
    std::unique_lock guard(lock_);
    each_figure([](Figure& f) { f.allocated = f.freed = 0; });
    statistics_.retries = statistics_.failures = statistics_.device_allocations = statistics_.device_frees = 0;
  }

  std::vector<SegmentFacts> snapshot() {
    std::unique_lock guard(lock_);
    std::vector<SegmentFacts> all;
    for (const auto& [data, segment] : segments_) {
      SegmentFacts s{reinterpret_cast<uint64_t>(data), segment.bytes,          segment.first->stream,
                     segment.first->pool->large,       segment.first->pool_id, {}};
      for (const Block* b = segment.first; b; b = b->after)
        s.blocks.push_back({reinterpret_cast<uint64_t>(b->data), b->bytes, b->requested,
                            b->in_use    ? BlockFacts::allocated
                            : b->pending ? BlockFacts::waiting
                                         : BlockFacts::free,
                            b->site});
      all.push_back(std::move(s));
    }
    return all;
  }
  void record_history(int64_t limit) {
    std::unique_lock guard(lock_);
    history_limit_ = limit;
    if (!limit) history_.clear();
  }
  std::vector<MemoryEvent> history() {
    std::unique_lock guard(lock_);
    return {history_.begin(), history_.end()};
  }

 private:
  struct Segment {
    int64_t bytes;
    Block* first;
  };
  // Freed, not yet merged with neighbors.
  static constexpr size_t kRecentBlocks = 64;
  std::vector<Block*> recent_;
  int ordered_ = 0;  // how many want none to wait

  Block* take_recent(const Pool& pool, int64_t bytes) {
    for (size_t i = recent_.size(); i-- > 0;) {
      Block* block = recent_[i];
      if (block->bytes != bytes || block->pool != &pool) continue;
      recent_.erase(recent_.begin() + static_cast<std::ptrdiff_t>(i));
      block->recent = false;
      return block;
    }
    return nullptr;
  }
  void keep_recent(Block* block) {
    count(&MemoryStatistics::active, *block->pool, -1);
    count(&MemoryStatistics::active_bytes, *block->pool, -block->bytes);
    if (ordered_) return give_back(block);
    block->recent = true;  // before another one looks for free neighbors
    if (recent_.size() == kRecentBlocks) {
      give_back(recent_.front());
      recent_.erase(recent_.begin());
    }
    recent_.push_back(block);
  }
  void merge_recent() {
    for (Block* block : recent_) give_back(block);
    recent_.clear();
  }
  struct Waiting {
    EventHandle event;
    Block* block;
  };
  std::mutex lock_;
  std::map<std::tuple<uint64_t, StreamHandle, bool>, Pool> pools_;
  std::map<char*, Segment> segments_;
  std::deque<Waiting> waiting_;
  std::set<uint64_t> live_pools_;
  MemoryStatistics statistics_;
  double fraction_ = 1;
  uint64_t pool_id_ = 0;
  std::atomic<int64_t> history_limit_ = 0;
  std::deque<MemoryEvent> history_;
  Pool* last_pool_ = nullptr;
  std::tuple<uint64_t, StreamHandle, bool> last_key_;

  Pool& pool_of(uint64_t id, StreamHandle stream, bool large) {
    const std::tuple<uint64_t, StreamHandle, bool> key{id, stream, large};
    if (!last_pool_ || key != last_key_) {
      last_pool_ = &pools_[key];
      last_pool_->large = large;
      last_key_ = key;
    }
    return *last_pool_;
  }

  Block* take(Pool& pool, int64_t bytes) {
    Block probe;
    probe.bytes = bytes;
    const auto found = pool.free.lower_bound(&probe);
    if (found == pool.free.end()) return nullptr;
    Block* block = *found;
    // A large free block is not broken up for a much smaller one that will soon want its own size again.
    if (pool.large && block->bytes >= 200 * kMiB && block->bytes - bytes > block->bytes / 2 && bytes < kOwnSegment)
      return nullptr;
    pool.free.erase(found);
    if (block->before || block->after) count_split(block, -1);
    return block;
  }

  Block* grow(Pool& pool, uint64_t id, StreamHandle stream, int64_t bytes, int64_t wanted, const std::string& site) {
    const int64_t size = segment_size(bytes);
    Address address = 0;
    const auto limit = static_cast<int64_t>(fraction_ * static_cast<double>(properties(device).memory));
    const auto ask = [&] {
      if (fraction_ < 1 && statistics_.reserved_bytes[0].current + size > limit) return kOutOfMemory;
      int mode = kCaptureRelaxed;                             // a stream that is being captured does not forbid it
      driver().cuThreadExchangeStreamCaptureMode.now(&mode);  // new memory need not wait for launches
      const Status status = driver().cuMemAlloc_v2.now(&address, static_cast<size_t>(size));
      driver().cuThreadExchangeStreamCaptureMode.now(&mode);
      return status;
    };
    if (!recent_.empty()) {
      merge_recent();
      if (Block* block = take(pool, bytes)) return block;
    }
    Status status = ask();
    if (status == kOutOfMemory) {
      ++statistics_.retries;
      collect_finished(true);
      if (Block* block = take(pool, bytes)) return block;
      release_free_segments();
      status = ask();
    }
    if (status == kOutOfMemory) {
      ++statistics_.failures;
      note_out_of_memory(wanted, site);
      fail_out_of_memory(wanted, limit);
    }
    check_status(status, "cuMemAlloc_v2");
    ++statistics_.device_allocations;
    auto* block = new Block;
    block->data = reinterpret_cast<char*>(address);
    block->bytes = size;
    block->stream = stream;
    block->pool = &pool;
    block->pool_id = id;
    segments_[block->data] = {size, block};
    count(&MemoryStatistics::segment, pool, 1);
    count(&MemoryStatistics::reserved_bytes, pool, size);
    note(MemoryEvent::segment_alloc, block);
    return block;
  }

  void split(Block* block, int64_t bytes) {
    auto* rest = new Block;
    rest->data = block->data + bytes;
    rest->bytes = block->bytes - bytes;
    rest->stream = block->stream;
    rest->pool = block->pool;
    rest->pool_id = block->pool_id;
    rest->before = block;
    rest->after = block->after;
    if (rest->after) rest->after->before = rest;
    block->after = rest;
    block->bytes = bytes;
    rest->pool->free.insert(rest);
    count_split(rest, 1);
  }

  // Back to its pool, merged with free neighbors.
  void give_back(Block* block) {
    Pool& pool = *block->pool;
    block->recent = false;
    for (Block* side : {block->before, block->after}) {
      if (!side || side->in_use || side->pending || side->recent) continue;
      pool.free.erase(side);
      count_split(side, -1);
      if (side == block->before) {
        block->data = side->data;
        block->before = side->before;
        if (block->before)
          block->before->after = block;
        else
          segments_[block->data].first = block;
      } else {
        block->after = side->after;
        if (block->after) block->after->before = block;
      }
      block->bytes += side->bytes;
      delete side;
    }
    block->requested = 0;
    pool.free.insert(block);
    if (block->before || block->after) count_split(block, 1);
  }

  void collect_finished(bool wait) {
    for (auto at = waiting_.begin(); at != waiting_.end();) {
      if (wait) {
        CRESSET_DRIVER(cuEventSynchronize(at->event));
      } else if (driver().cuEventQuery(at->event) == kNotReady) {
        ++at;
        continue;
      }
      driver().cuEventDestroy_v2(at->event);
      if (--at->block->pending == 0) keep_recent(at->block);
      at = waiting_.erase(at);
    }
  }

  void release_free_segments() {
    merge_recent();
    driver().cuCtxSynchronize();
    for (auto at = segments_.begin(); at != segments_.end();) {
      Block* block = at->second.first;
      const bool whole = !block->in_use && !block->pending && !block->after;
      if (!whole || (block->pool_id && live_pools_.count(block->pool_id))) {
        ++at;
        continue;
      }
      driver().cuMemFree_v2(reinterpret_cast<Address>(block->data));
      ++statistics_.device_frees;
      block->pool->free.erase(block);
      count(&MemoryStatistics::segment, *block->pool, -1);
      count(&MemoryStatistics::reserved_bytes, *block->pool, -block->bytes);
      note(MemoryEvent::segment_free, block);
      delete block;
      at = segments_.erase(at);
    }
  }

  [[noreturn]] void fail_out_of_memory(int64_t wanted, int64_t limit) {
    size_t free = 0, total = 0;
    driver().cuMemGetInfo_v2(&free, &total);
    const int64_t allocated = statistics_.allocated_bytes[0].current, reserved = statistics_.reserved_bytes[0].current;
    std::string message =
        join("CUDA out of memory. Tried to allocate ", megabytes(wanted), ". GPU ", device, " has a total capacity of ",
             megabytes(static_cast<int64_t>(total)), " of which ", megabytes(static_cast<int64_t>(free)), " is free. ",
             megabytes(allocated), " is allocated by tensors, and ", megabytes(reserved - allocated),
             " is reserved but unallocated.");
    if (fraction_ < 1)
      message += join(" This process may use ", megabytes(limit), " (set_per_process_memory_fraction).");
    std::map<std::string, std::pair<int64_t, int64_t>> by_site;  // bytes, blocks
    for (const auto& [data, segment] : segments_)
      for (const Block* block = segment.first; block; block = block->after) {
        if (!block->in_use) continue;
        auto& sum = by_site[block->site.empty() ? "(small blocks)" : block->site.substr(0, block->site.find('\n'))];
        sum.first += block->bytes;
        ++sum.second;
      }
    std::vector<std::pair<std::string, std::pair<int64_t, int64_t>>> holders(by_site.begin(), by_site.end());
    std::sort(holders.begin(), holders.end(),
              [](const auto& a, const auto& b) { return a.second.first > b.second.first; });
    if (!holders.empty()) message += "\nThe largest holders:";
    for (size_t i = 0; i < std::min<size_t>(holders.size(), 8); ++i)
      message += join("\n  ", megabytes(holders[i].second.first), " in ", holders[i].second.second,
                      holders[i].second.second == 1 ? " block" : " blocks", " from ", holders[i].first);
    message +=
        "\nA smaller batch, activation checkpointing (utils.checkpoint), bfloat16 (autocast) or `del` of what is not "
        "needed would help.";
    throw OutOfMemory(message);
  }

  // ---- figures
  void count(Figures MemoryStatistics::* which, const Pool& pool, int64_t amount) {
    (statistics_.*which)[0].add(amount);
    (statistics_.*which)[pool.large ? 2 : 1].add(amount);
  }
  void count_split(const Block* block, int64_t sign) {
    count(&MemoryStatistics::inactive_split, *block->pool, sign);
    count(&MemoryStatistics::inactive_split_bytes, *block->pool, sign * block->bytes);
  }
  template <class F>
  void each_figure(F f) {
    for (Figures* figures :
         {&statistics_.allocation, &statistics_.segment, &statistics_.active, &statistics_.inactive_split,
          &statistics_.allocated_bytes, &statistics_.reserved_bytes, &statistics_.active_bytes,
          &statistics_.inactive_split_bytes, &statistics_.requested_bytes})
      for (Figure& figure : *figures) f(figure);
  }

  // ---- history
  void note(MemoryEvent::Kind kind, const Block* block) {
    if (history_limit_)
      remember({kind, reinterpret_cast<uint64_t>(block->data), block->bytes, now(), block->stream, block->site});
  }
  void note_out_of_memory(int64_t wanted, const std::string& site) {
    if (history_limit_) remember({MemoryEvent::out_of_memory, 0, wanted, now(), nullptr, site});
  }
  void remember(MemoryEvent event) {
    if (static_cast<int64_t>(history_.size()) >= history_limit_) history_.pop_front();
    history_.push_back(std::move(event));
  }
};

// Never destroyed: tensors may die after static destructors have run.
DeviceAllocator& allocator(int device) {
  static auto* all = [] {
    auto* made = new DeviceAllocator[kMaxDevices];
    for (int i = 0; i < kMaxDevices; ++i) made[i].device = i;
    return made;
  }();
  check(device >= 0 && device < kMaxDevices, "CUDA error: invalid device ordinal ", device);
  return all[device];
}

// ---------------------------------------------------------------- pinned memory

class PinnedMemory {
 public:
  void* allocate(int64_t bytes) {
    std::unique_lock guard(lock_);
    const int64_t size = std::max<int64_t>(round_up(bytes, kRound), kRound);
    for (auto at = free_.lower_bound(size); at != free_.end() && at->first <= 2 * size; ++at) {
      if (!is_idle(*at->second)) continue;
      Pinned* block = at->second;
      free_.erase(at);
      return use(block);
    }
    enter(current_device());
    void* p = nullptr;
    Status status = driver().cuMemHostAlloc(&p, static_cast<size_t>(size), kHostPortable | kHostMapped);
    if (status == kOutOfMemory) {
      release();
      status = driver().cuMemHostAlloc(&p, static_cast<size_t>(size), kHostPortable | kHostMapped);
    }
    check_status(status, "cuMemHostAlloc");
    figures_.segment.add(1);
    figures_.reserved_bytes.add(size);
    return use(new Pinned{static_cast<char*>(p), size, {}});
  }
  void free(void* p) {
    std::unique_lock guard(lock_);
    const auto found = in_use_.find(static_cast<char*>(p));
    if (found == in_use_.end()) return;
    free_.emplace(found->second->bytes, found->second);
    figures_.allocation.add(-1);
    figures_.allocated_bytes.add(-found->second->bytes);
    in_use_.erase(found);
  }
  bool holds(const void* p) {
    std::unique_lock guard(lock_);
    return find(p);
  }
  void note_use(const void* p, int device, StreamHandle stream) {
    std::unique_lock guard(lock_);
    Pinned* block = find(p);
    if (!block) return;
    enter(device);
    EventHandle event = nullptr;
    CRESSET_DRIVER(cuEventCreate(&event, kEventNoTiming));
    CRESSET_DRIVER(cuEventRecord(event, stream));
    block->events.push_back(event);
  }
  void empty() {
    std::unique_lock guard(lock_);
    release();
  }

  void add_registered(char* p, int64_t bytes) {
    std::unique_lock guard(lock_);
    registered_[p] = bytes;
    any_registered_ = true;
  }
  void remove_registered(char* p) {
    std::unique_lock guard(lock_);
    registered_.erase(p);
    any_registered_ = !registered_.empty();
  }
  bool is_registered(const void* p) {
    if (!any_registered_) return false;
    std::unique_lock guard(lock_);
    const char* at = static_cast<const char*>(p);
    auto next = registered_.upper_bound(const_cast<char*>(at));
    return next != registered_.begin() && at < std::prev(next)->first + std::prev(next)->second;
  }

  PinnedStatistics statistics() {
    std::unique_lock guard(lock_);
    return figures_;
  }
  template <class F>
  void each_figure(F f) {
    std::unique_lock guard(lock_);
    for (Figure* figure :
         {&figures_.allocation, &figures_.allocated_bytes, &figures_.segment, &figures_.reserved_bytes})
      f(*figure);
  }

 private:
  struct Pinned {
    char* data;
    int64_t bytes;
    std::vector<EventHandle> events;
  };
  std::mutex lock_;
  std::multimap<int64_t, Pinned*> free_;
  std::map<char*, Pinned*> in_use_;
  std::map<char*, int64_t> registered_;
  std::atomic<bool> any_registered_ = false;
  PinnedStatistics figures_;

  char* use(Pinned* block) {
    in_use_[block->data] = block;
    figures_.allocation.add(1);
    figures_.allocated_bytes.add(block->bytes);
    return block->data;
  }
  Pinned* find(const void* p) {
    const char* at = static_cast<const char*>(p);
    auto next = in_use_.upper_bound(const_cast<char*>(at));
    if (next == in_use_.begin()) return nullptr;
    Pinned* block = std::prev(next)->second;
    return at < block->data + block->bytes ? block : nullptr;
  }
  bool is_idle(Pinned& block) {
    for (const EventHandle event : block.events)
      if (driver().cuEventQuery(event) == kNotReady) return false;
    for (const EventHandle event : block.events) driver().cuEventDestroy_v2(event);
    block.events.clear();
    return true;
  }
  void release() {
    for (auto at = free_.begin(); at != free_.end();) {
      if (!is_idle(*at->second)) {
        ++at;
        continue;
      }
      driver().cuMemFreeHost(at->second->data);
      figures_.segment.add(-1);
      figures_.reserved_bytes.add(-at->second->bytes);
      delete at->second;
      at = free_.erase(at);
    }
  }
};

PinnedMemory& pinned() {
  static auto* the = new PinnedMemory;
  return *the;
}

}  // namespace

Memory allocate(int device, int64_t bytes) { return allocator(device).allocate(bytes); }
void free(int device, void* block) { allocator(device).free(static_cast<Block*>(block)); }
void* find_block(int device, const char* data) { return allocator(device).find(data); }
void record_stream(int device, void* block, StreamHandle stream) {
  allocator(device).record(static_cast<Block*>(block), stream);
}
void order_free_blocks(int device, bool on) { allocator(device).order_free_blocks(on); }
void empty_cache(int device) { allocator(device).empty_cache(); }
void set_memory_fraction(int device, double fraction) { allocator(device).set_fraction(fraction); }
double memory_fraction(int device) { return allocator(device).fraction(); }

uint64_t new_pool() {
  static std::mutex lock;
  static uint64_t last = 0;
  std::lock_guard guard(lock);
  return ++last;
}
void begin_pool(int device, uint64_t pool) { allocator(device).begin_pool(pool); }
void end_pool(int device, uint64_t) { allocator(device).end_pool(); }
void release_pool(int device, uint64_t pool) { allocator(device).release_pool(pool); }

MemoryStatistics memory_statistics(int device) { return allocator(device).statistics(); }
void reset_peak_statistics(int device) { allocator(device).reset_peaks(); }
void reset_accumulated_statistics(int device) { allocator(device).reset_accumulated(); }
std::vector<SegmentFacts> memory_snapshot(int device) { return allocator(device).snapshot(); }
void record_memory_history(int device, int64_t most_events) { allocator(device).record_history(most_events); }
std::vector<MemoryEvent> memory_history(int device) { return allocator(device).history(); }

void* allocate_pinned(int64_t bytes) { return pinned().allocate(bytes); }
void free_pinned(void* p) { pinned().free(p); }
bool is_pinned(const void* p) { return pinned().holds(p); }
void note_pinned_use(const void* p, int device, StreamHandle stream) { pinned().note_use(p, device, stream); }
void empty_pinned_cache() { pinned().empty(); }
RefPtr<Storage> pinned_storage(int64_t bytes) {
  void* const p = allocate_pinned(bytes);
  RefPtr<Storage> storage = Storage::borrow(p, bytes, Device{}, [p] { free_pinned(p); });
  storage->pinned = true;
  return storage;
}
void note_registered(void* p, int64_t bytes) { pinned().add_registered(static_cast<char*>(p), bytes); }
void forget_registered(void* p) { pinned().remove_registered(static_cast<char*>(p)); }
bool is_registered(const void* p) { return pinned().is_registered(p); }
PinnedStatistics pinned_statistics() { return pinned().statistics(); }
void reset_pinned_peaks() {
  pinned().each_figure([](Figure& f) { f.peak = f.current; });
}
void reset_pinned_sums() {
  pinned().each_figure([](Figure& f) { f.allocated = f.freed = 0; });
}

}  // namespace cresset::cuda
