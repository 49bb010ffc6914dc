// The record that a profiler reads: every call of an operator, every node of a backward pass and every range a user
// names, with its times. While nobody records, a call pays for reading one flag.
//
// Note [Events and sums]
// `events` keeps each call: for tables and traces of some steps. `sums` adds calls up by the lines of Python that made
// them and forgets them: for whole programs, however long they run. Both can be on at once.
#pragma once
#include <atomic>
#include <string>
#include <vector>

#include "dispatch/operator.h"

namespace cresset {

enum class ProfileKind : uint8_t { operation, function, node, range };

struct ProfileEvent {
  // The tensors of one argument or the results; a number has none.
  struct Argument {
    bool is_list = false;
    std::vector<Dims> shapes;
    std::vector<Dtype> dtypes;
  };
  std::string name;
  ProfileKind kind = ProfileKind::operation;
  int64_t start = 0, end = -1;               // nanoseconds of a clock that never goes back; end is -1 while it is open
  uint64_t thread = 0;                       // the system's number of the thread
  int64_t parent = -1;                       // the event around it in the same thread
  int64_t host_bytes = 0, device_bytes = 0;  // what its thread allocated meanwhile, less what it freed
  std::vector<Argument> arguments;
  Argument results;
  int32_t stack = -1;  // a number of `profile_stack`
};

// The calls of one name from one stack, added up.
struct ProfileSum {
  int32_t stack = -1;
  std::string name;
  int64_t calls = 0, time = 0;  // calls that no other operator made; nanoseconds without what was called
};

struct ProfileOptions {
  bool events = true, shapes = false, memory = false, stack = false, sums = false;
};

extern std::atomic<bool> profiling;
// The Python frames of this thread as a number, -1 where there are none; the bindings plug in how.
extern int32_t (*profile_stack)();

// Told, on the thread itself, that it has entered and left something; null: nobody.
extern std::atomic<void (*)()> profile_entered, profile_left;

int64_t profile_now();  // the clock of the events

// Several may record at once. What nobody wants any more is forgotten: events when the last one stops that keeps them.
struct ProfileRecorder {
  int64_t number = 0, first = 0;  // first: the place of the first event that is its own
};
ProfileRecorder start_profile(ProfileOptions options);
std::vector<ProfileEvent> stop_profile(int64_t number);
bool is_profiling_last();                // whether no more than one records
std::vector<ProfileSum> profile_sums();  // so far
int64_t profile_busy(uint64_t thread);   // nanoseconds a thread has spent in operators so far, with `sums`
bool profile_is_busy(uint64_t thread);   // whether it is in one now
void enter_profile(std::string name, ProfileKind kind, const Call* call);
void leave_profile(const Call* call);

// What this thread is inside of.
struct ProfilePlace {
  int64_t event = -1;
  int32_t stack = -1;
  bool in_backward = false;
  uint64_t thread = 0;
};
ProfilePlace profile_place();
int32_t profile_stack_of(int64_t event);  // -1: it is not kept

// One event, as long as it lives.
class Profiled {
 public:
  explicit Profiled(const Call& c) : on_(profiling.load(std::memory_order_relaxed)), call_(&c) {
    if (on_) [[unlikely]]
      enter_profile("aten::" + c.op.name(), ProfileKind::operation, &c);
  }
  Profiled(const char* prefix, const char* name, ProfileKind kind) : on_(profiling.load(std::memory_order_relaxed)) {
    if (on_) [[unlikely]]
      enter_profile(std::string(prefix) + name, kind, nullptr);
  }
  ~Profiled() {
    if (on_) [[unlikely]]
      leave_profile(call_);
  }
  Profiled(const Profiled&) = delete;

 private:
  const bool on_;
  const Call* call_ = nullptr;
};

}  // namespace cresset
