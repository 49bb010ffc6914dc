#include "distributed/heartbeat.h"

#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace cresset {

struct Heartbeat::State {
  std::mutex lock;
  std::condition_variable changed;
  bool stopped = false;
  std::thread thread;
  pid_t process = getpid();
};

Heartbeat::Heartbeat(int socket, std::string message, double seconds) : state_(new State) {
  // Signals are for the program's own threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  state_->thread = std::thread([state = state_, socket, message = std::move(message), seconds] {
    std::unique_lock lock(state->lock);
    while (!state->changed.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return state->stopped; }))
      if (send(socket, message.data(), message.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != EAGAIN) return;
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Heartbeat::~Heartbeat() {
  if (state_->process != getpid()) return;  // in a child of fork there is no such thread
  {
    const std::lock_guard lock(state_->lock);
    state_->stopped = true;
  }
  state_->changed.notify_all();
  state_->thread.join();
  delete state_;
}

}  // namespace cresset
