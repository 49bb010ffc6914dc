// The emulated GPUs as the parts of the emulator see them: devices, memory, streams, and the one lock around it all.
// Work is done at once by the thread that asks for it, except while its stream is being captured and in the late mode
// of queues.cpp.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "status.h"

#define EMULATOR_API extern "C" __attribute__((visibility("default")))
#define EMULATOR_SHARED __attribute__((visibility("default")))

namespace emulator {

using Address = uint64_t;

// Says on stderr why a call was refused.
EMULATOR_SHARED void complain(const char* format, ...) __attribute__((format(printf, 1, 2)));

// ---- graphs and streams

struct Node {
  std::string name;
  std::function<Status()> work;
  bool calls_host = false;   // a function of the user's, which must not run under the lock
  uint32_t correlation = 0;  // of the listener
};
// Who is told of work: the emulated CUPTI. Work that is captured is told of when its graph is launched.
struct Listener {
  uint32_t (*asked)(const std::string& name);  // gives a correlation
  void (*done)(const Node& node, int device, uint32_t stream, std::chrono::steady_clock::time_point start,
               std::chrono::steady_clock::time_point end);
};
EMULATOR_SHARED extern const Listener* listener;
struct Graph {
  std::vector<Node> nodes;
};

struct Device;
struct Stream;
// A moment in a stream's work.
struct Mark {
  Stream* stream;
  bool done;
  std::chrono::steady_clock::time_point when;
};
// What a stream has to do: one of the three.
struct Task {
  Node node;
  std::shared_ptr<Mark> awaited, mark;
};
struct Capture {
  Graph* graph = nullptr;
  Stream* origin = nullptr;
  int mode = 0;  // CUstreamCaptureMode: 0 global, 1 thread-local, 2 relaxed
  std::thread::id thread;
  bool invalid = false;
  std::set<Stream*> streams;  // the origin and those that joined by waiting for its events
};
struct Stream {
  Device* device;
  int priority = 0;
  bool blocking = true;  // waits for the legacy stream and it for this one
  bool is_legacy = false;
  uint32_t number = 7;  // as CUPTI counts them
  Capture* capture = nullptr;
  uint64_t position = 0;   // counts what was captured on this stream
  bool unjoined = false;   // captured work that the origin does not wait for yet
  std::deque<Task> queue;  // in the late mode
};

// ---- devices

struct Device {
  int ordinal;
  size_t total = 0, used = 0;
  int retained = 0;
  std::set<int> peers;  // whose memory our kernels may touch
  Stream legacy;
  Status failure = CUDA_SUCCESS;  // of late work that nobody has waited for yet
};

EMULATOR_SHARED std::mutex& lock();
bool is_started();
std::vector<Device>& devices();
EMULATOR_SHARED Device* current();  // the device of the thread's context, or null

// Checks that come first in nearly every call: under the lock, after cuInit, with a context.
#define EMULATOR_ENTER()                              \
  std::lock_guard emulator_guard(::emulator::lock()); \
  if (!::emulator::is_started()) return CUDA_ERROR_NOT_INITIALIZED
#define EMULATOR_ENTER_CONTEXT() \
  EMULATOR_ENTER();              \
  if (!::emulator::current()) return CUDA_ERROR_INVALID_CONTEXT

// ---- memory

enum class Kind { device, pinned, registered };
struct Allocation {
  Address begin;
  size_t size;
  Kind kind;
  Device* device;
  void* mapping = nullptr;
  size_t mapped = 0;
  Address end() const { return begin + size; }
};
// The allocation that holds the address (or ends there, with `or_end`); null if none does.
const Allocation* find_allocation(Address address, bool or_end = false);
// Where an address lies, in words.
std::string describe_address(Address address);
// May the device read and write these bytes? Complains in the name of `who` if not.
EMULATOR_SHARED bool device_may_use(const char* who, const char* what, Device* device, Address address, size_t bytes);
// Is this memory of the host's? Complains if part of it is the device's.
bool host_may_use(const char* who, const char* what, const void* address, size_t bytes);

// Device memory can be touched while one of these lives. Matters with CRESSET_EMULATOR_PROTECT=1.
class Access {
 public:
  Access();
  ~Access();
};

// ---- work

// The stream of a handle (null, legacy and per-thread streams included); null for a handle that is none.
EMULATOR_SHARED Stream* find_stream(void* handle);
// Does the work now, or records it when the stream is being captured. The caller holds the lock.
EMULATOR_SHARED Status submit(Stream* stream, std::string name, std::function<Status()> work, bool calls_host = false);
// Every stream of the device.
std::vector<Stream*> all_streams(Device* device);
Status do_or_queue(Stream* stream, Node node);
std::shared_ptr<Mark> put_mark(Stream* stream);
void wait_for(Stream* stream, const std::shared_ptr<Mark>& mark);
// Do what is queued; the status is that of late work that failed.
void finish_until(const Mark& mark);
Status finish(Stream* stream);
Status finish(Device* device);
bool progress(Stream* stream);  // does one task; is the queue empty?
Status take_failure(Device* device);

// The status for a call that must not be made while something is captured (it ends the capture), or success.
Status refuse_in_capture(const char* who);

}  // namespace emulator
