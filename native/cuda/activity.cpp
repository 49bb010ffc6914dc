#include "cuda/activity.h"

#include <cxxabi.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <unordered_map>

#include "base/error.h"
#include "base/fork_lock.h"
#include "cuda/cupti.h"
#include "cuda/device.h"
#include "cuda/launch.h"
#include "cuda/library.h"
#include "dispatch/profile.h"

namespace cresset::cuda {

std::atomic<const LaunchWatch*> launch_watch = nullptr;

namespace {

ForkLock& lock = *new ForkLock;
int recorders = 0, keepers = 0;
bool with_cupti = false;
std::string why_not_cupti;
auto& activities = *new std::vector<Activity>;
std::atomic<uint32_t> used_devices = 0;  // a bit each
int64_t clock_difference = 0;            // profile_now() less CUPTI's clock

uint64_t this_thread() { return static_cast<uint64_t>(syscall(SYS_gettid)); }

// CUPTI names threads by their pthread's lower half.
auto& thread_numbers = *new std::unordered_map<uint32_t, uint64_t>;
void note_thread() {
  static thread_local bool noted = false;
  if (noted) return;
  noted = true;
  const std::scoped_lock held(lock);
  thread_numbers[static_cast<uint32_t>(pthread_self())] = this_thread();
}

uint64_t source_here() {
  const ProfilePlace place = profile_place();
  if (place.event >= 0) return static_cast<uint64_t>(place.event) + 1;
  return place.stack >= 0 ? kOfStack + static_cast<uint64_t>(place.stack) : 0;
}

std::string readable(const char* name) {
  if (!name) return "kernel";
  int status = 0;
  char* text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string found = status == 0 && text ? text : name;
  std::free(text);
  return found;
}

// ---- with CUPTI

constexpr size_t kBufferBytes = size_t{1} << 20;
constexpr int kKinds[] = {kCuptiCorrelation, kCuptiDriver, kCuptiRuntime,    kCuptiKernel,
                          kCuptiCopy,        kCuptiFill,   kCuptiCopyBetween};

const char* copy_name(uint32_t direction) {
  switch (direction & 0xff) {
    case 1: return "Memcpy HtoD";
    case 2: return "Memcpy DtoH";
    case 8: return "Memcpy DtoD";
    case 9: return "Memcpy HtoH";
    case 10: return "Memcpy PtoP";
    default: return "Memcpy";
  }
}

// The numbers that CUPTI was told of, by correlation; merged when the recording stops.
auto& sources = *new std::unordered_map<uint32_t, uint64_t>;

void read_record(const int* record) {
  Activity a;
  switch (*record) {
    case kCuptiCorrelation: {
      const auto& r = *reinterpret_cast<const CuptiCorrelationRecord*>(record);
      if (r.external_kind == kCuptiOurs) sources[r.correlation] = r.external;
      return;
    }
    case 3:
    case kCuptiKernel: {
      const auto& r = *reinterpret_cast<const CuptiKernelRecord*>(record);
      a.name = readable(r.name);
      a.start = static_cast<int64_t>(r.start), a.end = static_cast<int64_t>(r.end);
      a.device = static_cast<int>(r.device), a.stream = r.stream, a.correlation = r.correlation;
      for (int i = 0; i < 3; ++i)
        a.grid[i] = static_cast<unsigned>(r.grid[i]), a.block[i] = static_cast<unsigned>(r.block[i]);
      a.shared = static_cast<unsigned>(r.static_shared + r.dynamic_shared), a.registers = r.registers;
      break;
    }
    case kCuptiCopy:
    case kCuptiCopyBetween:
    case kCuptiFill: {
      const auto& r = *reinterpret_cast<const CuptiMemoryRecord*>(record);
      a.kind = *record == kCuptiFill ? Activity::fill : Activity::copy;
      a.name = *record == kCuptiFill ? "Memset" : *record == kCuptiCopyBetween ? "Memcpy PtoP" : copy_name(r.which);
      a.start = static_cast<int64_t>(r.start), a.end = static_cast<int64_t>(r.end);
      a.device = static_cast<int>(r.device), a.stream = r.stream, a.correlation = r.correlation;
      a.bytes = static_cast<int64_t>(r.bytes);
      break;
    }
    case kCuptiDriver:
    case kCuptiRuntime: {
      const auto& r = *reinterpret_cast<const CuptiCallRecord*>(record);
      const char* name = nullptr;
      cupti().cuptiGetCallbackName(*record == kCuptiDriver ? 1 : 2, r.function, &name);
      a.kind = Activity::call;
      a.name = name ? name : "call";
      a.start = static_cast<int64_t>(r.start), a.end = static_cast<int64_t>(r.end);
      const auto known = thread_numbers.find(r.thread);
      a.thread = known != thread_numbers.end() ? known->second : r.thread, a.correlation = r.correlation;
      break;
    }
    default: return;
  }
  a.start += clock_difference, a.end += clock_difference;
  activities.push_back(std::move(a));
}

// ---- sums

auto& sums = *new std::unordered_map<uint64_t, int64_t>;  // nanoseconds of the devices, by source
constexpr size_t kMostKept = size_t{1} << 16;
constexpr uint32_t kMostLate = uint32_t{1} << 20;  // so much later than its call a kernel may be told of

// Adds up what nobody keeps. Of some it is not known yet who asked for them: they wait, unless this is the end.
void fold(bool is_end) {
  std::vector<Activity> waiting;
  uint32_t last = 0;
  for (Activity& a : activities) {
    last = std::max(last, a.correlation);
    if (a.kind == Activity::call) continue;
    const auto found = sources.find(a.correlation);
    uint64_t source = a.source ? a.source : found != sources.end() ? found->second : 0;
    if (source && source < kOfStack) {  // somebody else kept the events meanwhile
      const int32_t stack = profile_stack_of(static_cast<int64_t>(source) - 1);
      if (stack >= 0) source = kOfStack + static_cast<uint64_t>(stack);
    }
    if (source || is_end)
      sums[source] += a.end - a.start;
    else
      waiting.push_back(std::move(a));
  }
  activities.swap(waiting);
  if (sources.size() > 2 * size_t{kMostLate})
    std::erase_if(sources, [&](const auto& known) { return known.first + kMostLate < last; });
}

void on_request(uint8_t** buffer, size_t* size, size_t* most) {
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, kBufferBytes));
  *size = *buffer ? kBufferBytes : 0;
  *most = 0;
}
void on_complete(ContextHandle, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  const std::scoped_lock held(lock);
  const int* record = nullptr;
  while (valid > 0 && cupti().cuptiActivityGetNextRecord(buffer, valid, &record) == kSuccess) read_record(record);
  std::free(buffer);
  if (!keepers && activities.size() > kMostKept) fold(false);
}

void push_source(uint64_t source) {
  note_thread();
  cupti().cuptiActivityPushExternalCorrelationId(kCuptiOurs, source);
}
void push_source_here() { push_source(source_here()); }
void pop_source() {
  uint64_t last = 0;
  cupti().cuptiActivityPopExternalCorrelationId(kCuptiOurs, &last);
}
const LaunchWatch kToldToCupti = {source_here,
                                  [](const Work& work, uint64_t source) {
                                    used_devices |= 1u << work.device;
                                    push_source(source);
                                  },
                                  [](const Work&, uint64_t) { pop_source(); }};

// Whether CUPTI records from now on.
bool start_cupti() {
  const Cupti& c = cupti();
  why_not_cupti = c.problem;
  if (const char* wish = std::getenv("CRESSET_PROFILER_CUPTI"); wish && std::strcmp(wish, "0") == 0)
    why_not_cupti = "CRESSET_PROFILER_CUPTI=0 asks for events";
  if (!why_not_cupti.empty()) return false;
  Status status = c.cuptiActivityRegisterCallbacks(on_request, on_complete);
  for (const int kind : kKinds)
    if (status == kSuccess) status = c.cuptiActivityEnable(kind);
  if (status != kSuccess) {
    why_not_cupti = c.explain(status);
    for (const int kind : kKinds) c.cuptiActivityDisable(kind);
    return false;
  }
  uint64_t theirs = 0;
  const int64_t before = profile_now();
  c.cuptiGetTimestamp(&theirs);
  clock_difference = before + (profile_now() - before) / 2 - static_cast<int64_t>(theirs);
  return true;
}

void stop_cupti() {
  for (const int kind : kKinds) cupti().cuptiActivityDisable(kind);
}

// ---- with events

struct Timed {
  std::string name;
  int device;
  StreamHandle stream;
  uint64_t source, thread;
  int64_t asked, done;  // on the host
  EventHandle start = nullptr, end = nullptr;
  unsigned grid[3] = {}, block[3] = {}, shared = 0;
};
auto& timed = *new std::vector<Timed>;
constexpr size_t kMostTimed = 8192;  // then they are waited for and read
uint32_t correlations = 0;
struct Origin {
  EventHandle event = nullptr;
  int64_t time = 0;  // of profile_now(), when the event was over
};
Origin origins[kMaxDevices];

std::string name_of(const Work& work) {
  if (std::strcmp(work.what, "cuLaunchKernel") != 0) return work.what;
  using NameOf = Status (*)(const char** name, FunctionHandle function);
  static const auto name_of_function = [] {
    const Library library({"libcuda.so.1", "libcuda.so"});
    return reinterpret_cast<NameOf>(library.find("cuFuncGetName"));
  }();
  const char* name = nullptr;
  FunctionHandle function = nullptr;
  if (!name_of_function || static_cast<const KernelLaunch&>(work).kernel->find(function) != kSuccess ||
      name_of_function(&name, function) != kSuccess)
    return work.what;
  return readable(name);
}

// On the thread that launches, which has the device's context.
void before_timed(const Work& work, uint64_t source) {
  const Driver& d = *started_driver;
  int captured = 0;
  if (!work.can_be_captured || d.cuStreamIsCapturing.now(work.stream, &captured) != kSuccess || captured) return;
  used_devices |= 1u << work.device;
  Timed t{name_of(work), work.device, work.stream, source, this_thread(), profile_now(), 0};
  if (d.cuEventCreate.now(&t.start, kEventDefault) != kSuccess) return;
  if (d.cuEventCreate.now(&t.end, kEventDefault) != kSuccess) {
    d.cuEventDestroy_v2.now(t.start);
    return;
  }
  if (std::strcmp(work.what, "cuLaunchKernel") == 0) {
    const auto& l = static_cast<const KernelLaunch&>(work);
    const unsigned grid[] = {l.grid.x, l.grid.y, l.grid.z}, block[] = {l.block.x, l.block.y, l.block.z};
    std::copy_n(grid, 3, t.grid), std::copy_n(block, 3, t.block);
    t.shared = l.shared;
  }
  const std::scoped_lock held(lock);
  Origin& origin = origins[work.device];
  if (!origin.event) {  // the first work of the device: its clock is read once
    d.cuEventCreate.now(&origin.event, kEventDefault);
    d.cuEventRecord.now(origin.event, work.stream);
    d.cuEventSynchronize.now(origin.event);
    origin.time = profile_now();
  }
  d.cuEventRecord.now(t.start, work.stream);
  timed.push_back(std::move(t));
}
// On the thread that launches, or when nothing is on its way.
void read_timed() {
  const Driver& d = *started_driver;
  for (const Timed& t : timed) {
    float start = 0, length = 0;
    if (t.done && d.cuEventSynchronize.now(t.end) == kSuccess &&
        d.cuEventElapsedTime.now(&start, origins[t.device].event, t.start) == kSuccess &&
        d.cuEventElapsedTime.now(&length, t.start, t.end) == kSuccess) {
      const uint32_t correlation = ++correlations;
      Activity a;
      a.name = t.name, a.device = t.device, a.stream = reinterpret_cast<uint64_t>(t.stream), a.source = t.source;
      a.kind = t.name.starts_with("cuMemcpy")   ? Activity::copy
               : t.name.starts_with("cuMemset") ? Activity::fill
                                                : Activity::kernel;
      a.start = origins[t.device].time + static_cast<int64_t>(double{start} * 1e6);
      a.end = a.start + static_cast<int64_t>(double{length} * 1e6);
      a.correlation = correlation;
      std::copy_n(t.grid, 3, a.grid), std::copy_n(t.block, 3, a.block);
      a.shared = t.shared;
      activities.push_back(a);
      Activity call;
      call.kind = Activity::call, call.name = "launch", call.start = t.asked, call.end = t.done;
      call.thread = t.thread, call.correlation = correlation, call.source = t.source;
      activities.push_back(call);
    }
    d.cuEventDestroy_v2.now(t.start);
    d.cuEventDestroy_v2.now(t.end);
  }
  timed.clear();
}

void after_timed(const Work& work, uint64_t) {
  const std::scoped_lock held(lock);
  if (timed.empty() || timed.back().done) return;  // it was not timed
  Timed& t = timed.back();
  started_driver->cuEventRecord.now(t.end, work.stream);
  t.done = profile_now();
  if (timed.size() < kMostTimed) return;
  read_timed();
  if (!keepers) fold(false);
}
const LaunchWatch kTimed = {source_here, before_timed, after_timed};

}  // namespace

void start_activities(bool keep) {
  check_device(0);
  {
    const std::scoped_lock held(lock);
    keepers += keep;
    if (recorders++ > 0) return;
  }
  finish_launches();
  with_cupti = start_cupti();
  used_devices = 0;
  profile_entered = with_cupti ? push_source_here : nullptr;
  profile_left = with_cupti ? pop_source : nullptr;
  launch_watch = with_cupti ? &kToldToCupti : &kTimed;
}

Activities stop_activities(bool keep, int64_t since) {
  bool is_last;
  {
    const std::scoped_lock held(lock);
    check(recorders > 0, "profiler: the devices are not recorded, so that nothing can be stopped");
    is_last = --recorders == 0;
  }
  finish_launches();
  if (is_last) {
    launch_watch = nullptr;
    profile_entered = nullptr, profile_left = nullptr;
  }
  if (is_started()) {
    for (int device = 0; device < device_count(); ++device)
      if (used_devices.load() >> device & 1 || device == current_device()) synchronize(device);
  }
  if (with_cupti) {  // outside of the lock: on_complete takes it
    cupti().cuptiActivityFlushAll(1);
    if (is_last) stop_cupti();
  }
  const std::scoped_lock held(lock);
  if (!with_cupti && started_driver) read_timed();
  Activities mine;
  if (keep) {
    for (Activity& a : activities) {
      if (const auto found = sources.find(a.correlation); found != sources.end()) a.source = found->second;
      if (a.start >= since) mine.kept.push_back(a);
    }
    --keepers;
  }
  if (!keepers) fold(is_last);
  if (!keep) mine.sums.assign(sums.begin(), sums.end());
  if (!is_last) return mine;
  for (Origin& o : origins) {
    if (o.event) driver().cuEventDestroy_v2(o.event);
    o = {};
  }
  activities.clear();
  activities.shrink_to_fit();
  sources.clear();
  sums.clear();
  return mine;
}

ActivitySource activity_source() {
  const std::scoped_lock held(lock);
  return {with_cupti ? "CUPTI" : "events", with_cupti ? "" : why_not_cupti};
}

}  // namespace cresset::cuda
