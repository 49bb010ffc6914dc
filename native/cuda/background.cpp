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
  bool add(std::function<void()> job, Urgency urgency) {
    const std::lock_guard guard(mutex_);
    if (closed_ || !start()) return false;
    (urgency == Urgency::waited_for ? urgent_ : later_).push_back(std::move(job));
    changed_.notify_one();
    return true;
  }
  void finish() {
    std::unique_lock guard(mutex_);
    changed_.wait(guard, [&] { return urgent_.empty() && later_.empty() && busy_ == 0; });
  }
  // The process ends: what has begun is waited for, since NVRTC goes away next.
  void close() {
    std::unique_lock guard(mutex_);
    closed_ = true;
    later_.clear();
    urgent_.clear();  // whoever launches compiles them by itself
    changed_.wait(guard, [&] { return busy_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> urgent_, later_;
  int busy_ = 0, busy_later_ = 0, threads_ = 0;
  bool closed_ = false;
  pid_t process_ = 0;

  // NVRTC does one thing at a time in some of its versions: what is waited for does not share it with the rest.
  bool takes_later() const {
    return !later_.empty() && busy_ == busy_later_ && busy_later_ < std::max(threads_ / 2, 1);
  }
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
    const int wanted = static_cast<int>(std::clamp(std::thread::hardware_concurrency() / 2, 1u, 8u));
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
      changed_.wait(guard, [&] { return !urgent_.empty() || takes_later(); });
      const bool later = urgent_.empty();
      auto& from = later ? later_ : urgent_;
      const std::function<void()> job = std::move(from.front());
      from.pop_front();
      ++busy_, busy_later_ += later;
      guard.unlock();
      job();
      guard.lock();
      --busy_, busy_later_ -= later;
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

bool in_background(std::function<void()> job, Urgency urgency) { return workers().add(std::move(job), urgency); }
void finish_background() { workers().finish(); }

}  // namespace cresset::cuda
