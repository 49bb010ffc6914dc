// Locks in a process that forks.
#pragma once
#include <mutex>

namespace cresset {

// A mutex that a forked child finds free, and whatever it guards whole: a fork waits until nobody holds one.
class ForkLock {
 public:
  ForkLock();
  ~ForkLock();
  ForkLock(const ForkLock&) = delete;

  void lock() { mutex_.lock(); }
  bool try_lock() { return mutex_.try_lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
  ForkLock *before_ = nullptr, *after_ = nullptr;  // all there are, in the order in which they were made

  friend struct ForkLocks;
};

// What a fork does with all of them. A part that waits in its own handler for threads that may hold one calls these
// there first and last.
void hold_fork_locks();
void release_fork_locks();

}  // namespace cresset
