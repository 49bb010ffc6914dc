#include "distributed/shared.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstring>
#include <functional>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace cresset::mpi {
namespace {

constexpr int64_t kChunk = int64_t{1} << 19;  // bytes of a sum that are seen by the others at a time
constexpr int kChunks = 2;                    // that may be under way: few, so that they stay in the cache
constexpr int kCalls = 8;                     // how far one may be ahead of the slowest
constexpr int64_t kBlock = 2048;              // elements that stay in the nearest cache

enum Counter { shown, met, brought, reduced, fetched, kCounters };

int64_t machine() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return static_cast<int64_t>(std::hash<std::string>{}(name));
}

// Note [Stores]
// The lines that are written here were read by another core a moment ago. An ordinary store has to take each of them
// away from that core's cache first: where two cores share no cache, 2.3 GB/s, against 50 GB/s for stores that go past
// the cache. Where they do share one, ordinary stores are the faster ones, for what passes the cache is read from
// memory again. Which cores a process has, only the system knows, and it may change that at any time: so both are
// tried, by the clock (Pace). Rank 0 chooses for all, for the time that it takes depends on what the others do. Stores
// past the cache are not ordered with others: `publish` orders them.

void copy_past_cache(char* to, const char* from, int64_t bytes) {
#ifdef __SSE2__
  const auto misplaced = static_cast<int64_t>(-reinterpret_cast<uintptr_t>(to) % 16);
  const int64_t head = std::min(misplaced, bytes);
  std::memcpy(to, from, static_cast<size_t>(head));
  int64_t i = head;
  for (; i + 16 <= bytes; i += 16)
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i), _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
  std::memcpy(to + i, from + i, static_cast<size_t>(bytes - i));
#else
  std::memcpy(to, from, static_cast<size_t>(bytes));
#endif
}

// Lets the others see what was written up to here.
void publish(std::atomic<int64_t>& counter, int64_t value) {
#ifdef __SSE2__
  _mm_sfence();
#endif
  counter.store(value, std::memory_order_release);
}

}  // namespace

// What one process shows the others. Only it writes here.
struct Shared::Slot {
  alignas(128) std::atomic<int64_t> counters[kCounters];
  int64_t word;
  alignas(128) int64_t fingerprints[kCalls];
  Stores stores[kCalls];
  char small[kCalls][kSmall];
  alignas(
      4096) char chunks[kChunks][kChunk];  // elements for the others' shares; in the place of its own share, the result
};

void Sum::set_pieces(std::vector<Piece> given) {
  pieces = std::move(given);
  int64_t start = 0;
  for (Piece& piece : pieces) {
    piece.start = start;
    start += piece.count;
  }
}

int64_t Sum::count() const { return pieces.empty() ? 0 : pieces.back().start + pieces.back().count; }

int64_t Sum::bytes() const { return count() * size_of(dtype); }

namespace {

// The elements from `begin` to `end` of consecutive pieces: f(where they are, how many, how many came before).
template <class F>
void walk(const Sum& sum, int64_t begin, int64_t end, F&& f) {
  const int64_t size = size_of(sum.dtype), first = begin;
  auto piece = std::partition_point(sum.pieces.begin(), sum.pieces.end(),
                                    [&](const Piece& p) { return p.start + p.count <= begin; });
  for (; begin < end; ++piece) {
    const int64_t n = std::min(piece->start + piece->count, end) - begin;
    if (n > 0) f(static_cast<char*>(piece->at) + (begin - piece->start) * size, n, begin - first);
    begin += n;
  }
}

// Elements times the sum's factor, for the others.
void scale_for_others(const Sum& sum, const char* from, char* to, int64_t count) {
  const int64_t size = size_of(sum.dtype);
  if (sum.stores == Stores::ordinary) return scale(sum.dtype, from, to, count, sum.factor);
  if (sum.factor == 1) return copy_past_cache(to, from, count * size);
  alignas(64) char scaled[kBlock * 8];
  for (int64_t i = 0; i < count; i += kBlock) {
    const int64_t n = std::min(kBlock, count - i);
    scale(sum.dtype, from + i * size, scaled, n, sum.factor);
    copy_past_cache(to + i * size, scaled, n * size);
  }
}

}  // namespace

Stores Pace::next() {
  if (--until_trial_ > 0) return faster();
  until_trial_ = pause_;
  pause_ = std::min<int64_t>(2 * pause_, 512);
  return faster() == Stores::ordinary ? Stores::past_cache : Stores::ordinary;
}

void Pace::saw(Stores stores, double seconds) {
  const Stores before = faster();
  double& cost = cost_[static_cast<int>(stores)];
  // The least of what was seen lately: what took longer was disturbed. What was not seen for long may have changed.
  cost = stores == before ? std::min(cost * 1.02, seconds) : seconds;
  if (faster() != before) until_trial_ = pause_ = 8;
}

Shared::Shared(void* at, int file, int rank, int size) : at_(at), file_(file), rank_(rank), size_(size) {}

Shared::~Shared() {
  close_file();
  munmap(at_, sizeof(Slot) * static_cast<size_t>(size_));
}

void Shared::close_file() {
  if (file_ >= 0) close(file_);
  file_ = -1;
}

std::unique_ptr<Shared> Shared::make(int rank, int size) {
  if (size > kMembers) return nullptr;
  const size_t bytes = sizeof(Slot) * static_cast<size_t>(size);
  const int file = memfd_create("cresset-distributed", MFD_CLOEXEC);
  if (file < 0) return nullptr;
  void* at = MAP_FAILED;
  int64_t word = 0;
  if (ftruncate(file, static_cast<off_t>(bytes)) == 0 && getrandom(&word, sizeof word, 0) == sizeof word)
    at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (at == MAP_FAILED) {
    close(file);
    return nullptr;
  }
  std::unique_ptr<Shared> shared(new Shared(at, file, rank, size));
  shared->slot(0).word = word;
  return shared;
}

std::unique_ptr<Shared> Shared::find(const Address& address, int rank, int size) {
  if (address.machine != machine()) return nullptr;
  const size_t bytes = sizeof(Slot) * static_cast<size_t>(size);
  const std::string path = "/proc/" + std::to_string(address.process) + "/fd/" + std::to_string(address.file);
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return nullptr;
  struct stat facts{};
  void* at = MAP_FAILED;
  if (fstat(file, &facts) == 0 && facts.st_size == static_cast<off_t>(bytes))
    at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (at == MAP_FAILED) return nullptr;
  std::unique_ptr<Shared> shared(new Shared(at, -1, rank, size));
  // On another machine, the same numbers may name something else.
  return shared->slot(0).word == address.word ? std::move(shared) : nullptr;
}

Shared::Address Shared::address() const { return {getpid(), file_, slot(0).word, machine()}; }

Shared::Slot& Shared::slot(int rank) const { return static_cast<Slot*>(at_)[rank]; }

char* Shared::part(int rank, int64_t chunk) const { return slot(rank).chunks[chunk % kChunks]; }

int64_t Shared::least(int which) const {
  int64_t n = INT64_MAX;
  for (int r = 0; r < size_; r++) n = std::min(n, slot(r).counters[which].load(std::memory_order_acquire));
  return n;
}

Pace& Shared::pace(const Sum& sum) { return paces_[std::bit_width(static_cast<uint64_t>(sum.bytes())) - 1]; }

bool Shared::show(int64_t call, int64_t fingerprint, const Sum* sum) {
  if (least(met) <= call - kCalls) return false;
  Slot& mine = slot(rank_);
  mine.fingerprints[call % kCalls] = fingerprint;
  if (sum && is_small(*sum))
    walk(*sum, 0, sum->count(), [&](const char* from, int64_t n, int64_t before) {
      scale_for_others(*sum, from, mine.small[call % kCalls] + before * size_of(sum->dtype), n);
    });
  else if (sum && rank_ == 0)
    mine.stores[call % kCalls] = pace(*sum).next();
  publish(mine.counters[shown], call + 1);
  return true;
}

Shared::Met Shared::meet(int64_t call, Sum* sum) {
  if (least(shown) <= call) return Met::not_yet;
  const int place = static_cast<int>(call % kCalls);
  for (int r = 0; r < size_; r++)
    if (slot(r).fingerprints[place] != slot(rank_).fingerprints[place]) return Met::different;
  if (sum && is_small(*sum)) {
    // Everybody adds up all of them, in the same order: the same bits everywhere.
    alignas(64) char total[kSmall];
    std::memcpy(total, slot(0).small[place], static_cast<size_t>(sum->bytes()));
    for (int r = 1; r < size_; r++)
      combine(sum->dtype, sum->reduction, {slot(r).small[place]}, {total}, total, sum->count());
    walk(*sum, 0, sum->count(), [&](char* to, int64_t n, int64_t before) {
      std::memcpy(to, total + before * size_of(sum->dtype), static_cast<size_t>(n * size_of(sum->dtype)));
    });
  } else if (sum) {
    sum->stores = slot(0).stores[place];
  }
  publish(slot(rank_).counters[met], call + 1);
  return Met::same;
}

Shared::Range Shared::share(int rank, int64_t elements) const {
  // Shares begin at cache lines, whatever the dtype.
  const auto edge = [&](int r) { return r == size_ ? elements : elements * r / size_ / 64 * 64; };
  return {edge(rank), edge(rank + 1)};
}

void Shared::begin(const Sum& sum) {
  chunks_ += needed_;
  needed_ = (sum.bytes() + kChunk - 1) / kChunk;
  brought_ = reduced_ = fetched_ = 0;
  seconds_ = 0;
}

bool Shared::step(const Sum& sum) {
  const auto start = std::chrono::steady_clock::now();
  const int64_t before = brought_ + reduced_ + fetched_;
  const bool is_done = go_on(sum);
  if (brought_ + reduced_ + fetched_ != before)  // else it only looked
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (is_done && rank_ == 0) pace(sum).saw(sum.stores, seconds_ / static_cast<double>(sum.bytes()));
  return is_done;
}

bool Shared::go_on(const Sum& sum) {
  while (fetched_ < needed_) {
    // What was begun is ended first: its elements are in the cache.
    if (fetched_ < reduced_ && least(reduced) > chunks_ + fetched_) {
      fetch(sum, fetched_++);
    } else if (reduced_ < brought_ && least(brought) > chunks_ + reduced_) {
      reduce(sum, reduced_++);
    } else if (brought_ < needed_ && least(fetched) >= chunks_ + brought_ - (kChunks - 1)) {
      bring(sum, brought_++);
    } else {
      return false;
    }
  }
  return true;
}

// Note [Chunks under way]
// Chunk k lies where chunk k - kChunks lay. It is brought when all have fetched that one: then nobody reads any of it.
// Shares of a short chunk have other edges, so where one brings, another's result may have been.

Shared::Chunk Shared::chunk(const Sum& sum, int64_t index) const {
  const int64_t most = kChunk / size_of(sum.dtype), start = index * most;
  return {start, std::min(most, sum.count() - start)};
}

void Shared::bring(const Sum& sum, int64_t index) {
  const int64_t size = size_of(sum.dtype);
  const auto [start, n] = chunk(sum, index);
  char* to = part(rank_, chunks_ + index);
  const Range mine = share(rank_, n);
  for (const Range others : {Range{0, mine.begin}, Range{mine.end, n}})
    walk(sum, start + others.begin, start + others.end, [&](const char* from, int64_t count, int64_t before) {
      scale_for_others(sum, from, to + (others.begin + before) * size, count);
    });
  publish(slot(rank_).counters[brought], chunks_ + index + 1);
}

void Shared::reduce(const Sum& sum, int64_t index) {
  const int64_t size = size_of(sum.dtype);
  const auto [start, all] = chunk(sum, index);
  const Range mine = share(rank_, all);
  char* parts[kMembers];
  for (int r = 0; r < size_; r++) parts[r] = part(r, chunks_ + index) + mine.begin * size;
  alignas(64) char total[kBlock * 8];
  walk(sum, start + mine.begin, start + mine.end, [&](char* at, int64_t count, int64_t before) {
    for (int64_t i = 0; i < count; i += kBlock) {
      const int64_t n = std::min(kBlock, count - i), offset = (before + i) * size;
      char* const here = at + i * size;
      const auto operand = [&](int r) { return r == rank_ ? Operand{here, sum.factor} : Operand{parts[r] + offset}; };
      // In the order of ranks, as if one process did it all.
      char* const into = rank_ < 2 ? here : total;
      combine(sum.dtype, sum.reduction, operand(1), operand(0), into, n);
      for (int r = 2; r < size_; r++) combine(sum.dtype, sum.reduction, operand(r), {into}, into, n);
      if (into != here) std::memcpy(here, into, static_cast<size_t>(n * size));
      if (sum.stores == Stores::ordinary)
        std::memcpy(parts[rank_] + offset, here, static_cast<size_t>(n * size));
      else
        copy_past_cache(parts[rank_] + offset, here, n * size);
    }
  });
  publish(slot(rank_).counters[reduced], chunks_ + index + 1);
}

void Shared::fetch(const Sum& sum, int64_t index) {
  const int64_t size = size_of(sum.dtype);
  const auto [start, n] = chunk(sum, index);
  for (int r = 0; r < size_; r++) {
    if (r == rank_) continue;
    const Range theirs = share(r, n);
    const char* from = part(r, chunks_ + index);
    walk(sum, start + theirs.begin, start + theirs.end, [&](char* to, int64_t count, int64_t before) {
      std::memcpy(to, from + (theirs.begin + before) * size, static_cast<size_t>(count * size));
    });
  }
  publish(slot(rank_).counters[fetched], chunks_ + index + 1);
}

}  // namespace cresset::mpi
