#include "distributed/heartbeat.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>

namespace cresset {
namespace {

using Clock = std::chrono::steady_clock;

void append_length(std::string& to, size_t size) {
  const uint32_t length = static_cast<uint32_t>(size);
  to.append(reinterpret_cast<const char*>(&length), 4);
}

}  // namespace

struct Heartbeat::State {
  int socket = -1;
  std::string before;
  double seconds = 1;
  mutable std::mutex lock;
  std::string note, received, messages;
  Clock::time_point last = Clock::now(), looked = last;  // when something came; when the thread ran
  bool closed = false, stopped = false;
  int wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  std::thread thread;
  pid_t process = getpid();

  bool send_one() {
    std::string text;
    {
      const std::lock_guard guard(lock);
      append_length(text, before.size() + 4 + note.size());
      text += before;
      append_length(text, note.size());
      text += note;
    }
    return send(socket, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT) >= 0 || errno == EAGAIN;
  }

  // Whether the thread has not run for long: then this process was stopped, and what came meanwhile is not read yet.
  bool stood_still(Clock::time_point now) const { return now - looked > std::chrono::duration<double>(2 * seconds); }

  // Whether the other end is still there.
  bool receive() {
    char data[4096];
    const ssize_t size = recv(socket, data, sizeof data, MSG_DONTWAIT);
    if (size < 0) return errno == EAGAIN || errno == EINTR;
    const std::lock_guard guard(lock);
    last = Clock::now();
    received.append(data, static_cast<size_t>(size));
    uint32_t length;
    while (received.size() >= 4 && (std::memcpy(&length, received.data(), 4), received.size() - 4 >= length)) {
      // An echo has one empty field.
      if (length > 4) messages.append(received, 0, length + 4);
      received.erase(0, length + 4);
    }
    return size > 0;
  }

  void run() {
    const auto pause = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    auto next = Clock::now() + pause;
    while (true) {
      pollfd waits[2] = {{socket, POLLIN, 0}, {wake, POLLIN, 0}};
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now()).count();
      poll(waits, 2, left > 0 ? static_cast<int>(left) : 0);
      if (waits[1].revents) return;
      {
        const std::lock_guard guard(lock);
        const auto now = Clock::now();
        if (stood_still(now)) last = now;
        looked = now;
      }
      bool there = !waits[0].revents || receive();
      if (there && Clock::now() >= next) {
        there = send_one();
        next = Clock::now() + pause;
      }
      if (!there) {
        const std::lock_guard guard(lock);
        closed = true;
        return;
      }
    }
  }
};

Heartbeat::Heartbeat(int socket, std::string before, double seconds) : state_(new State) {
  state_->socket = socket;
  state_->before = std::move(before);
  state_->seconds = seconds;
  // Signals are for the program's own threads.
  sigset_t all, mask;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &mask);
  state_->thread = std::thread([state = state_] { state->run(); });
  pthread_sigmask(SIG_SETMASK, &mask, nullptr);
}

Heartbeat::~Heartbeat() {
  if (state_->process != getpid()) return;  // in a child of fork there is no such thread
  eventfd_write(state_->wake, 1);
  state_->thread.join();
  close(state_->wake);
  delete state_;
}

void Heartbeat::note(std::string text) {
  const std::lock_guard guard(state_->lock);
  state_->note = std::move(text);
}

std::string Heartbeat::heard() {
  const std::lock_guard guard(state_->lock);
  return std::exchange(state_->messages, {});
}

double Heartbeat::silence() const {
  const std::lock_guard guard(state_->lock);
  const auto now = Clock::now();
  if (state_->closed) return -1.0;
  return state_->stood_still(now) ? 0.0 : std::chrono::duration<double>(now - state_->last).count();
}

}  // namespace cresset
