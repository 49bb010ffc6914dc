#include "cuda/background.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>

namespace cresset::cuda {
namespace {

class Workers {
 public:
  bool add(std::function<void()> job) {
    const std::lock_guard guard(mutex_);
    if (closed_ || !start()) return false;
    jobs_.push_back(std::move(job));
    changed_.notify_one();
    return true;
  }
  void finish() {
    std::unique_lock guard(mutex_);
    changed_.wait(guard, [&] { return jobs_.empty() && busy_ == 0; });
  }
  // The process ends: what has begun is waited for, since NVRTC goes away next.
  void close() {
    std::unique_lock guard(mutex_);
    closed_ = true;
    jobs_.clear();
    changed_.wait(guard, [&] { return busy_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  int busy_ = 0, threads_ = 0;
  bool closed_ = false;
  pid_t process_ = 0;

  bool start() {
    if (process_ == getpid()) return threads_ > 0;
    if (process_ != 0) {  // a child has none of its parent's threads, and NVRTC may have been at work when it was made
      closed_ = true;
      return false;
    }
    process_ = getpid();
    sigset_t all, before;  // signals are for the threads of the user
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    const int wanted = static_cast<int>(std::clamp(std::thread::hardware_concurrency() / 4, 1u, 4u));
    try {
      for (; threads_ < wanted; ++threads_) std::thread([this] { run(); }).detach();
    } catch (const std::system_error&) {  // the process may not have more threads
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return threads_ > 0;
  }

  void run() {
    std::unique_lock guard(mutex_);
    while (true) {
      changed_.wait(guard, [&] { return !jobs_.empty(); });
      const std::function<void()> job = std::move(jobs_.front());
      jobs_.pop_front();
      ++busy_;
      guard.unlock();
      job();
      guard.lock();
      --busy_;
      changed_.notify_all();
    }
  }
};

Workers& workers() {
  static auto* the = [] {
    std::atexit([] { workers().close(); });
    return new Workers;
  }();
  return *the;
}

}  // namespace

bool in_background(std::function<void()> job) { return workers().add(std::move(job)); }
void finish_background() { workers().finish(); }

}  // namespace cresset::cuda
