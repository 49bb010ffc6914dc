// The record that a profiler reads: every call of an operator, every node of a backward pass and every range a user
// names, with its times. While nobody records, a call pays for reading one flag.
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
  int64_t start = 0, end = -1;  // nanoseconds of a clock that never goes back; end is -1 while it is open
  uint64_t thread = 0;          // the system's number of the thread
  int64_t parent = -1;          // the event around it in the same thread
  int64_t bytes = 0;            // host memory in use at the end, less that at the start
  std::vector<Argument> arguments;
  Argument results;
  std::vector<std::string> stack;  // "file(line): function", innermost first
};

struct ProfileOptions {
  bool shapes = false, memory = false, stack = false;
};

extern std::atomic<bool> profiling;
extern void (*profile_stack)(std::vector<std::string>&);  // the Python frames; the bindings plug in how

// Several may record at once. start gives the place of the first event that is the caller's; the events are forgotten
// when the last one stops.
int64_t start_profile(ProfileOptions options);
std::vector<ProfileEvent> stop_profile(int64_t first);
void enter_profile(std::string name, ProfileKind kind, const Call* call);
void leave_profile(const Call* call);

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
