// Where Python spends its time between operators: every millisecond somebody looks which lines run.
#pragma once
#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "bindings/python_stack.h"

namespace cresset {

// Note [Samples and what they weigh]
// A sample stands for the time since the one before it, less what its thread spent in operators, which the recorder
// knows exactly. So a sample that comes late, because a long operator had the interpreter, weighs no more for it, and
// all samples of the main thread together weigh what passed outside of operators. Of other threads, which mostly wait
// for each other, the processor's time is taken instead.
//
// A thread of ours keeps the time, and the main thread itself looks: a signal makes it, at the next place where the
// interpreter asks for signals. A thread that waits for the interpreter lock would get it where lines give it away, and
// blame those. The signal is sent only while the main thread runs Python: not inside an operator, whose time is known,
// and not while it waits for the system, whose call it would interrupt; then our thread looks.
class Sampler {
 public:
  void start(double seconds, int signal);  // from the main thread, where `signal` calls look()
  void look();
  void stop();
  struct Sums {
    std::unordered_map<int32_t, int64_t> time;  // by stack, nanoseconds
    int64_t samples = 0;
  };
  Sums sums() const { return sums_; }  // with the interpreter lock

 private:
  struct Thread {
    int64_t time = 0, busy = 0;
  };
  void run();
  void sample();

  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable wakes_;
  bool stops_ = false;
  double seconds_ = 0;
  int signal_ = 0;
  std::atomic<bool> active_ = false;
  uint64_t main_ = 0;
  int process_ = 0;
  pthread_t main_thread_{};
  std::unordered_map<uint64_t, Thread> threads_;
  Sums sums_;
};

}  // namespace cresset
