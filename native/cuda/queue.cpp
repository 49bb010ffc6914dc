#include "cuda/queue.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <system_error>
#include <thread>

#include "base/error.h"
#include "base/fork_lock.h"
#include "cuda/activity.h"
#include "cuda/compile.h"
#include "cuda/device.h"
#include "cuda/replay.h"

namespace cresset::cuda {

std::atomic<uint64_t> launches_written = 0, launches_made = 0;
std::atomic<Status> failed_launch = kSuccess;

namespace {

std::atomic<int> waiting = 0;  // how many wait until all is launched: nothing is gathered while they do

constexpr uint64_t kBytes = uint64_t{1} << 20;
constexpr auto kPatience = std::chrono::microseconds(200);  // so long the thread looks for work before it sleeps

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
}

class Spinlock {
 public:
  void lock() {
    for (int turns = 0; held_.test_and_set(std::memory_order_acquire); ++turns)
      if (turns < 100)
        pause();
      else
        sched_yield();
  }
  void unlock() { held_.clear(std::memory_order_release); }

 private:
  std::atomic_flag held_;
};

// A ring of bytes: [launches_made, launches_written) is full, counted from the beginning of time. Work never goes over
// the ring's end: a gap is skipped.
class Ring {
 public:
  Ring() : bytes_(static_cast<char*>(std::aligned_alloc(64, kBytes))) {}

  char* reserve(size_t bytes) {
    invariant(bytes <= kBytes / 4, "the size of a launch");
    lock_.lock();
    start();
    start_ = launches_written.load(std::memory_order_relaxed);
    const uint64_t left = kBytes - start_ % kBytes;
    if (left < bytes) {
      wait_for_room(start_ + left);
      std::memset(bytes_ + start_ % kBytes, 0, sizeof(Work));  // no function: a gap
      start_ += left;
    }
    end_ = start_ + bytes;
    wait_for_room(end_);
    return bytes_ + start_ % kBytes;
  }
  void commit() {
    if (const LaunchWatch* watch = launch_watch.load(std::memory_order_relaxed)) [[unlikely]]
      note_source(watch->source());
    if (!thread_wanted_) {
      execute(*reinterpret_cast<const Work*>(bytes_ + start_ % kBytes));
      launches_made.store(end_, std::memory_order_relaxed);
      launches_written.store(end_, std::memory_order_relaxed);
      return lock_.unlock();
    }
    launches_written.store(end_, std::memory_order_seq_cst);
    const bool sleeps = asleep_.load(std::memory_order_seq_cst);
    lock_.unlock();
    if (sleeps) [[unlikely]] {
      asleep_.store(false);
      asleep_.notify_one();
    }
  }
  // While a process forks, nobody writes and nothing is on its way; in the child there is no thread.
  void hold() {
    hold_fork_locks();
    lock_.lock();
    finish_launches();
  }
  void release() {
    lock_.unlock();
    release_fork_locks();
  }
  void forget_thread() {
    thread_wanted_ = false;
    release();
  }

 private:
  char* bytes_;
  Spinlock lock_;
  uint64_t start_ = 0, end_ = 0, known_made_ = 0;  // of the writer, who holds the lock
  bool started_ = false, thread_wanted_ = false;
  std::atomic<bool> asleep_ = false;
  int entered_ = -1;  // the device whose context the thread has
  Gathered gathered_;
  uint64_t* sources_ = nullptr;

  void wait_for_room(uint64_t end) {
    if (end - known_made_ <= kBytes) [[likely]]
      return;
    for (int turns = 0; end - (known_made_ = launches_made.load(std::memory_order_acquire)) > kBytes; ++turns)
      if (turns < 100)
        pause();
      else
        sched_yield();
  }

  // Note [Activities]: who wrote the work at each place of the ring, while somebody wants to know.
  void note_source(uint64_t source) {
    if (!sources_) sources_ = static_cast<uint64_t*>(std::calloc(kBytes / 64, sizeof(uint64_t)));
    if (sources_) sources_[start_ % kBytes / 64] = source;
  }

  void start();
  void execute(const Work& work) {
    const LaunchWatch* const watch = launch_watch.load(std::memory_order_relaxed);
    const uint64_t source = watch ? source_of(work) : 0;
    if (watch) [[unlikely]]
      watch->before(work, source);
    const Status status = work.run(work);
    if (watch) [[unlikely]]
      watch->after(work, source);
    if (status != kSuccess) [[unlikely]] {
      failed_what = work.what, failed_explain = work.explain;
      failed_launch.store(status, std::memory_order_release);
    }
  }
  static void execute_gathered(const Work& work, void* ring) { static_cast<Ring*>(ring)->execute(work); }
  void run() {
    uint64_t at = 0;
    while (true) {
      uint64_t end = launches_written.load(std::memory_order_acquire);
      if (at == end && !gathered_.is_empty()) end = wait_for_more(at);
      if (at == end) {
        gathered_.run(execute_gathered, this);
        launches_made.store(at, std::memory_order_release);
        end = wait_for_work(at);
      }
      while (at != end) {
        const auto& work = *reinterpret_cast<const Work*>(bytes_ + at % kBytes);
        if (!work.run) {
          at += kBytes - at % kBytes;
        } else {
          const uint64_t next = at + work.bytes;
          const bool takes = gathered_.takes(work);
          if (!takes && !gathered_.is_empty()) gathered_.run(execute_gathered, this);
          if (work.device != entered_) {
            started_driver->cuCtxSetCurrent.now(context(work.device));
            entered_ = work.device;
          }
          if (takes)
            gathered_.add(work);
          else
            execute(work);
          at = next;
          if (gathered_.is_full()) gathered_.run(execute_gathered, this);
        }
        if (gathered_.is_empty()) launches_made.store(at, std::memory_order_release);
      }
    }
  }
  // More work, while some is gathered; `at` when somebody waits for that, or nothing comes.
  uint64_t wait_for_more(uint64_t at) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point until = Clock::now() + kPatience;
    do {
      for (int turns = 0; turns < 64; ++turns) {
        if (const uint64_t end = launches_written.load(std::memory_order_acquire); end != at) return end;
        if (waiting.load(std::memory_order_acquire)) return launches_written.load(std::memory_order_acquire);
        pause();
      }
    } while (Clock::now() < until);
    return at;
  }
  uint64_t wait_for_work(uint64_t at) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point until = Clock::now() + kPatience;
    uint64_t end = at;
    do {
      for (int turns = 0; turns < 64; ++turns) {
        if ((end = launches_written.load(std::memory_order_acquire)) != at) return end;
        pause();
      }
    } while (Clock::now() < until);
    while (true) {
      asleep_.store(true, std::memory_order_seq_cst);
      if ((end = launches_written.load(std::memory_order_seq_cst)) != at) {
        asleep_.store(false);
        return end;
      }
      asleep_.wait(true);
    }
  }

 public:
  uint64_t source_of(const Work& work) const {
    return sources_ ? sources_[(reinterpret_cast<const char*>(&work) - bytes_) / 64] : 0;
  }

  const char* failed_what = "";
  const char* (*failed_explain)(Status) = nullptr;
};

Ring& ring() {
  static auto* the = new Ring;
  return *the;
}

bool wants_thread() {
  const char* blocking = std::getenv("CUDA_LAUNCH_BLOCKING");
  return std::thread::hardware_concurrency() > 1 && !(blocking && *blocking && std::strcmp(blocking, "0") != 0);
}

void Ring::start() {
  if (started_) [[likely]]
    return;
  started_ = true;
  driver_problem();  // the driver is there before what is registered here: it goes away later
  thread_wanted_ = wants_thread();
  if (!thread_wanted_) return;
  pthread_atfork([] { ring().hold(); }, [] { ring().release(); }, [] { ring().forget_thread(); });
  std::atexit([] { finish_launches(); });
  sigset_t all, before;  // signals are for the threads of the user
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  try {
    std::thread([this] { run(); }).detach();
  } catch (const std::system_error&) {  // the process may not have more threads
    thread_wanted_ = false;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace

void wait_for_launches() {
  const uint64_t written = launches_written.load(std::memory_order_acquire);
  waiting.fetch_add(1);
  for (int turns = 0; static_cast<int64_t>(written - launches_made.load(std::memory_order_acquire)) > 0; ++turns)
    if (turns < 2000)
      pause();
    else if (turns < 10000)
      sched_yield();
    else  // a kernel is being compiled, and wants the processor
      std::this_thread::sleep_for(std::chrono::microseconds(20));
  waiting.fetch_sub(1);
}

void raise_launch_failure() {
  const Status status = failed_launch.exchange(kSuccess);
  if (status == kSuccess) return;
  if (status == kNotCompiled) raise_compile_problem();
  const Ring& r = ring();
  check(!r.failed_explain, "CUDA error: ", r.failed_explain ? r.failed_explain(status) : "", " when calling `",
        r.failed_what, "`");
  raise_status(status, r.failed_what);
}

uint64_t source_of(const Work& work) { return ring().source_of(work); }

char* queue::reserve(size_t bytes) { return ring().reserve(bytes); }
void queue::commit() { ring().commit(); }

}  // namespace cresset::cuda
