#include "dispatch/profile.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <mutex>
#include <unordered_map>

#include "base/fork_lock.h"
#include "dispatch/profile_memory.h"

namespace cresset {

std::atomic<bool> profiling = false;
int32_t (*profile_stack)() = nullptr;
std::atomic<void (*)()> profile_entered = nullptr, profile_left = nullptr;

namespace {

// Never destroyed: threads may be at work while the process ends.
ForkLock& lock = *new ForkLock;
auto& events = *new std::vector<ProfileEvent>;
int64_t forgotten = 0;  // events before the first of these: an event's place is counted from the beginning of time
ProfileOptions wished;  // by all recorders together
struct Recorder {
  int64_t first;
  ProfileOptions options;
};
auto& recorders = *new std::map<int64_t, Recorder>;
int64_t started = 0;                  // recorders, so far
std::atomic<uint64_t> recording = 0;  // which one this is: what a thread has open from an earlier one means nothing

auto& sums = *new std::map<std::pair<int32_t, std::string>, ProfileSum>;
struct Busy {
  int64_t before = 0, since = -1;  // since: when the operator began that the thread is in
};
auto& busy = *new std::unordered_map<uint64_t, Busy>;

// What a thread is inside of, outermost first.
struct Frame {
  int64_t event = -1, start = 0, inside = 0;  // inside: the time of what it called
  ProfileBytes bytes;
  int32_t stack = -1;
  ProfileKind kind = ProfileKind::operation;
  std::string name;  // with sums
};
struct Open {
  uint64_t recording = 0;
  std::vector<Frame> frames;
  int operators = 0, nodes = 0;  // of the frames
};
thread_local Open open;

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

// A range is a user's name for whatever runs inside: its time is not an operator's.
bool is_operator(ProfileKind kind) { return kind != ProfileKind::range; }

void add_up(const Frame& f, int64_t end) {
  ProfileSum& sum = sums[{f.stack, f.name}];
  sum.time += end - f.start - f.inside;
  sum.calls += open.operators == 0;
  if (open.operators > 0) return;
  Busy& b = busy[this_thread()];
  b.before += end - f.start;
  b.since = -1;
}

}  // namespace

int64_t profile_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// What all recorders want, after one came or went.
static void gather_wishes() {
  wished = {.events = false};
  bool keeps_memory = false, adds_memory_up = false;
  for (const auto& [number, recorder] : recorders) {
    const ProfileOptions& o = recorder.options;
    wished.events |= o.events;
    wished.shapes |= o.shapes;
    wished.memory |= o.memory;
    wished.stack |= o.stack;
    wished.sums |= o.sums;
    keeps_memory |= o.memory && o.events;
    adds_memory_up |= o.memory && o.sums;
  }
  watch_profile_memory(wished.memory, keeps_memory, adds_memory_up);
}

ProfileRecorder start_profile(ProfileOptions options) {
  const std::scoped_lock held(lock);
  if (recorders.empty()) ++recording;
  if (options.sums && !wished.sums) {
    sums.clear();
    busy.clear();
  }
  const ProfileRecorder made{++started, forgotten + static_cast<int64_t>(events.size())};
  recorders[made.number] = {made.first, options};
  gather_wishes();
  profiling = true;
  return made;
}

std::vector<ProfileEvent> stop_profile(int64_t number) {
  const std::scoped_lock held(lock);
  const auto found = recorders.find(number);
  check(found != recorders.end(), "profiler: it is not recording, so that nothing can be stopped");
  const Recorder recorder = found->second;
  recorders.erase(found);
  const int64_t end = profile_now();
  std::vector<ProfileEvent> mine;
  if (recorder.options.events) mine.assign(events.begin() + (recorder.first - forgotten), events.end());
  for (ProfileEvent& e : mine) {
    if (e.end < 0) e.end = end;
    e.parent = e.parent >= recorder.first ? e.parent - recorder.first : -1;
  }
  gather_wishes();
  if (!wished.events) {
    forgotten += static_cast<int64_t>(events.size());
    events.clear();
    events.shrink_to_fit();
  }
  if (recorders.empty()) {
    profiling = false;
    ++recording;
  }
  return mine;
}

bool is_profiling_last() {
  const std::scoped_lock held(lock);
  return recorders.size() <= 1;
}

std::vector<ProfileSum> profile_sums() {
  const std::scoped_lock held(lock);
  std::vector<ProfileSum> all;
  for (const auto& [key, sum] : sums) {
    all.push_back(sum);
    all.back().stack = key.first, all.back().name = key.second;
  }
  return all;
}

int64_t profile_busy(uint64_t thread) {
  const std::scoped_lock held(lock);
  const auto found = busy.find(thread);
  if (found == busy.end()) return 0;
  return found->second.before + (found->second.since >= 0 ? profile_now() - found->second.since : 0);
}

bool profile_is_busy(uint64_t thread) {
  const std::scoped_lock held(lock);
  const auto found = busy.find(thread);
  return found != busy.end() && found->second.since >= 0;
}

ProfilePlace profile_place() {
  ProfilePlace place;
  place.thread = this_thread();
  if (open.recording != recording || open.frames.empty()) return place;
  place.event = open.frames.back().event;
  place.stack = open.frames.back().stack;
  place.in_backward = open.nodes > 0;
  return place;
}

int32_t profile_stack_of(int64_t event) {
  const std::scoped_lock held(lock);
  const int64_t place = event - forgotten;
  return place >= 0 && place < static_cast<int64_t>(events.size()) ? events[static_cast<size_t>(place)].stack : -1;
}

static void open_frame(std::string name, ProfileKind kind, const Call* call) {
  std::vector<ProfileEvent::Argument> arguments;
  if (wished.shapes && call) arguments = arguments_of(*call);
  const int32_t stack = wished.stack && profile_stack ? profile_stack() : -1;
  const std::scoped_lock held(lock);
  if (open.recording != recording) open = {recording, {}, 0, 0};
  Frame frame;
  frame.kind = kind;
  // Inside a large operator the interpreter is let go of: it is the same line.
  frame.stack = stack < 0 && !open.frames.empty() ? open.frames.back().stack : stack;
  frame.bytes = profile_bytes();
  if (wished.events) {
    ProfileEvent e;
    e.kind = kind;
    e.thread = this_thread();
    e.stack = frame.stack;
    e.parent = open.frames.empty() || open.frames.back().event < forgotten ? -1 : open.frames.back().event;
    e.arguments = std::move(arguments);
    e.name = wished.sums ? name : std::move(name);
    frame.event = forgotten + static_cast<int64_t>(events.size());
    events.push_back(std::move(e));
  }
  frame.start = profile_now();
  if (frame.event >= 0) events.back().start = frame.start;
  if (wished.sums) {
    frame.name = std::move(name);
    if (is_operator(kind) && open.operators == 0) busy[this_thread()].since = frame.start;
  }
  open.operators += is_operator(kind);
  open.nodes += kind == ProfileKind::node;
  open.frames.push_back(std::move(frame));
}

void enter_profile(std::string name, ProfileKind kind, const Call* call) {
  open_frame(std::move(name), kind, call);
  if (auto* const tell = profile_entered.load(std::memory_order_relaxed)) tell();
}

void leave_profile(const Call* call) {
  const int64_t end = profile_now();
  if (auto* const tell = profile_left.load(std::memory_order_relaxed)) tell();
  const std::scoped_lock held(lock);
  if (open.recording != recording || open.frames.empty()) return;  // it began before the recording, or outlived it
  const Frame f = std::move(open.frames.back());
  open.frames.pop_back();
  open.operators -= is_operator(f.kind);
  open.nodes -= f.kind == ProfileKind::node;
  if (!open.frames.empty()) open.frames.back().inside += is_operator(f.kind) ? end - f.start : f.inside;
  if (wished.sums && is_operator(f.kind)) add_up(f, end);
  if (f.event < forgotten) return;  // nobody keeps it
  ProfileEvent& e = events[static_cast<size_t>(f.event - forgotten)];
  e.end = end;
  const ProfileBytes bytes = profile_bytes();
  e.host_bytes = bytes.host - f.bytes.host, e.device_bytes = bytes.device - f.bytes.device;
  if (wished.shapes && call)
    for (const Tensor& t : call->outputs) note(t, e.results);
}

}  // namespace cresset
