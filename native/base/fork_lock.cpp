#include "base/fork_lock.h"

#include <pthread.h>
#include <sched.h>

namespace cresset {

struct ForkLocks {
  std::mutex list;  // guards the pointers
  ForkLock* last = nullptr;

  // Never destroyed: locks may end after static destructors have run.
  static ForkLocks& all() {
    static ForkLocks* the = [] {
      pthread_atfork(hold_fork_locks, release_fork_locks, release_fork_locks);
      return new ForkLocks;
    }();
    return *the;
  }

  // How often the thread that forks holds them.
  static int& times() {
    static thread_local int n = 0;
    return n;
  }

  // Whoever holds one may be waiting for another: so all of them, or none and once more.
  void hold() {
    list.lock();
    ForkLock* held = nullptr;
    for (ForkLock* l = last; l;) {
      if (l->try_lock()) {
        held = l;
        l = l->before_;
        continue;
      }
      for (ForkLock* free = held; free; free = free->after_) free->unlock();
      held = nullptr;
      list.unlock();  // a lock may end while its thread holds another
      sched_yield();
      list.lock();
      l = last;
    }
  }
  void release() {
    for (ForkLock* l = last; l; l = l->before_) l->unlock();
    list.unlock();
  }
};

ForkLock::ForkLock() {
  ForkLocks& all = ForkLocks::all();
  const std::lock_guard guard(all.list);
  before_ = all.last;
  if (before_) before_->after_ = this;
  all.last = this;
}

ForkLock::~ForkLock() {
  ForkLocks& all = ForkLocks::all();
  const std::lock_guard guard(all.list);
  (after_ ? after_->before_ : all.last) = before_;
  if (before_) before_->after_ = after_;
}

void hold_fork_locks() {
  if (ForkLocks::times()++ == 0) ForkLocks::all().hold();
}

void release_fork_locks() {
  if (--ForkLocks::times() == 0) ForkLocks::all().release();
}

}  // namespace cresset
