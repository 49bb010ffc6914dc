#include "dispatch/profile.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <mutex>

#include "base/fork_lock.h"
#include "tensor/allocator.h"

namespace cresset {

std::atomic<bool> profiling = false;
void (*profile_stack)(std::vector<std::string>&) = nullptr;

namespace {

// Never destroyed: threads may be at work while the process ends.
ForkLock& lock = *new ForkLock;
auto& events = *new std::vector<ProfileEvent>;
ProfileOptions wished;
int recorders = 0;
uint64_t recording = 0;  // which one this is: what a thread has open from an earlier one means nothing

// The events a thread is inside of.
struct Open {
  uint64_t recording = 0;
  std::vector<int64_t> events;
};
thread_local Open open;

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

uint64_t this_thread() {
  static thread_local const uint64_t number = static_cast<uint64_t>(syscall(SYS_gettid));
  return number;
}

void note(const Tensor& t, ProfileEvent::Argument& to) {
  if (!t.defined()) return;
  to.shapes.emplace_back(t.sizes());
  to.dtypes.push_back(t.dtype());
}

std::vector<ProfileEvent::Argument> arguments_of(const Call& c) {
  std::vector<ProfileEvent::Argument> all(c.op.signature.parameters.size());
  for (int i = 0; i < static_cast<int>(all.size()); ++i) {
    ProfileEvent::Argument& to = all[static_cast<size_t>(i)];
    if (c.args[i].kind == Kind::tensor) note(c.tensor(i), to);
    if (c.args[i].kind == Kind::tensors) {
      to.is_list = true;
      for (const Tensor& t : c.tensors(i)) note(t, to);
    }
  }
  return all;
}

}  // namespace

int64_t start_profile(ProfileOptions options) {
  const std::scoped_lock held(lock);
  if (recorders++ == 0) {
    wished = {};
    ++recording;
  }
  wished.shapes |= options.shapes;
  wished.memory |= options.memory;
  wished.stack |= options.stack;
  profiling = true;
  return static_cast<int64_t>(events.size());
}

std::vector<ProfileEvent> stop_profile(int64_t first) {
  const std::scoped_lock held(lock);
  check(recorders > 0, "profiler: it is not recording, so that nothing can be stopped");
  const int64_t end = now();
  std::vector<ProfileEvent> mine(events.begin() + std::min<int64_t>(first, static_cast<int64_t>(events.size())),
                                 events.end());
  for (ProfileEvent& e : mine) {
    if (e.end < 0) e.end = end;
    e.parent = e.parent >= first ? e.parent - first : -1;
  }
  if (--recorders == 0) {
    profiling = false;
    events.clear();
    events.shrink_to_fit();
    ++recording;
  }
  return mine;
}

void enter_profile(std::string name, ProfileKind kind, const Call* call) {
  ProfileEvent e;
  e.name = std::move(name);
  e.kind = kind;
  e.thread = this_thread();
  if (wished.shapes && call) e.arguments = arguments_of(*call);
  if (wished.stack && profile_stack) profile_stack(e.stack);
  if (wished.memory) e.bytes = -host_memory_statistics().in_use;
  const std::scoped_lock held(lock);
  if (open.recording != recording) {
    open.events.clear();
    open.recording = recording;
  }
  e.parent = open.events.empty() ? -1 : open.events.back();
  open.events.push_back(static_cast<int64_t>(events.size()));
  events.push_back(std::move(e));
  events.back().start = now();
}

void leave_profile(const Call* call) {
  const int64_t end = now();
  const std::scoped_lock held(lock);
  if (open.recording != recording || open.events.empty()) return;  // it began before the recording, or outlived it
  ProfileEvent& e = events[static_cast<size_t>(open.events.back())];
  open.events.pop_back();
  e.end = end;
  if (wished.memory) e.bytes += host_memory_statistics().in_use;
  if (wished.shapes && call)
    for (const Tensor& t : call->outputs) note(t, e.results);
}

}  // namespace cresset
