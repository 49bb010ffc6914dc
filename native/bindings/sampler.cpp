#include "bindings/sampler.h"

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <chrono>

#include "dispatch/profile.h"

namespace cresset {
namespace {

constexpr int kPatience = 2;           // periods in which the main thread waits
constexpr int64_t kRunning = 100'000;  // nanoseconds of the processor in a period

// Nanoseconds of the processor that the thread had; 0 when it is gone.
int64_t processor_time(unsigned long thread) {
  clockid_t clock;
  timespec now{};
  if (pthread_getcpuclockid(static_cast<pthread_t>(thread), &clock) != 0 || clock_gettime(clock, &now) != 0) return 0;
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

void Sampler::start(double seconds, int signal) {
  signal_ = signal;
  seconds_ = seconds;
  stops_ = false;
  active_ = true;
  sums_ = {};
  threads_.clear();
  main_ = static_cast<uint64_t>(syscall(SYS_gettid));
  main_thread_ = pthread_self();
  process_ = getpid();
  threads_[main_] = {profile_now(), 0};
  sigset_t all, before;  // signals are for the threads of the user
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Sampler::stop() {
  if (!thread_.joinable()) return;
  if (getpid() != process_) return thread_.detach();  // a forked child has no such thread
  {
    const std::lock_guard guard(mutex_);
    stops_ = true;
  }
  wakes_.notify_all();
  PyThreadState* state = PyEval_SaveThread();
  thread_.join();
  PyEval_RestoreThread(state);
  sample();  // the rest, up to here
  active_ = false;
}

void Sampler::look() {
  if (active_) sample();
}

void Sampler::run() {
  std::unique_lock guard(mutex_);
  const auto period = std::chrono::duration<double>(seconds_);
  const auto main_number = static_cast<unsigned long>(main_thread_);
  int64_t ran = processor_time(main_number);
  int waited = 0;
  while (!wakes_.wait_for(guard, period, [this] { return stops_; })) {
    const int64_t runs = processor_time(main_number);
    const bool is_running = runs - ran > kRunning;
    ran = runs;
    if (is_running) {
      waited = 0;
      if (!profile_is_busy(main_)) pthread_kill(main_thread_, signal_);
    } else if (++waited >= kPatience) {
      waited = 0;
      guard.unlock();
      const PyGILState_STATE gil = PyGILState_Ensure();
      sample();
      PyGILState_Release(gil);
      guard.lock();
    }
  }
}

void Sampler::sample() {
  const bool looks_at_itself = getpid() == process_ && static_cast<uint64_t>(syscall(SYS_gettid)) == main_;
  PyThreadState* const own = PyThreadState_Get();
  ++sums_.samples;
  for (PyThreadState* t = PyInterpreterState_ThreadHead(PyInterpreterState_Get()); t; t = PyThreadState_Next(t)) {
    if (t == own && !looks_at_itself) continue;
    const auto number = static_cast<uint64_t>(t->native_thread_id);
    const bool is_main = number == main_;
    const auto [place, is_new] = threads_.try_emplace(number);
    Thread& thread = place->second;
    const int64_t time = is_main ? profile_now() : processor_time(t->thread_id), busy = profile_busy(number);
    const int64_t passed = (time - thread.time) - (busy - thread.busy);
    const Thread before = thread;
    thread = {time, busy};
    if (is_new || passed <= 0 || time < before.time) continue;
    PyFrameObject* frame = PyThreadState_GetFrame(t);
    sums_.time[python_stacks().number_of(frame)] += passed;
    Py_XDECREF(frame);
  }
}

}  // namespace cresset
