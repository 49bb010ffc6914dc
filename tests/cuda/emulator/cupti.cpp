// CUPTI's activities of the emulated GPU: records of the sizes and places that CUPTI 13 has them, by a clock of its
// own. With CRESSET_EMULATOR_CUPTI=0 another profiler is there already, as it were.
#include <unistd.h>
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <set>

#include <pthread.h>

#include "emulator.h"

namespace emulator {
namespace {

using Clock = std::chrono::steady_clock;
enum Kind { copy = 1, fill = 2, driver = 4, kernel = 10, external = 39 };
constexpr Status busy = Status(39), no_more = Status(12), invalid = Status(1), empty_stack = Status(35);

// Where things lie in a record, and how long it is.
class Record {
 public:
  Record(Kind kind, size_t bytes) : bytes_(bytes, 0xa5) { put(0, int(kind)); }
  template <class T>
  void put(size_t at, T value) {
    std::memcpy(bytes_.data() + at, &value, sizeof value);
  }
  const std::vector<uint8_t>& bytes() const { return bytes_; }

 private:
  std::vector<uint8_t> bytes_;
};
size_t size_of(int kind) {
  switch (kind) {
    case copy: return 96;
    case fill: return 88;
    case driver: return 40;
    case kernel: return 216;
    case external: return 24;
    default: return 0;
  }
}

std::set<int> enabled;
std::vector<uint8_t> pending;
std::set<std::string> names;  // records point to them
uint32_t correlations = 0;
thread_local std::vector<uint64_t> sources;
void (*request)(uint8_t**, size_t*, size_t*) = nullptr;
void (*complete)(void*, uint32_t, uint8_t*, size_t, size_t) = nullptr;

uint64_t time_of(Clock::time_point when) {
  return uint64_t(std::chrono::duration_cast<std::chrono::nanoseconds>(when.time_since_epoch()).count()) +
         5'000'000'000u;
}
void keep(const Record& record) { pending.insert(pending.end(), record.bytes().begin(), record.bytes().end()); }

// The number of the driver's function that begins such work.
uint32_t function_of(const std::string& name) {
  if (name.starts_with("cuMemcpyHtoD")) return 277;
  if (name.starts_with("cuMemcpyDtoH")) return 279;
  if (name.starts_with("cuMemcpy")) return 281;
  return name.starts_with("cuMemset") ? 216 : 307;
}

// The driver's lock is held.
uint32_t on_asked(const std::string& name) {
  const uint32_t correlation = ++correlations;
  const auto now = time_of(Clock::now());
  if (enabled.contains(external) && !sources.empty()) {
    Record r(external, size_of(external));
    r.put(4, 3), r.put(8, sources.back()), r.put(16, correlation);
    keep(r);
  }
  if (enabled.contains(driver)) {
    Record r(driver, size_of(driver));
    r.put(4, function_of(name)), r.put(8, now), r.put(16, now + 100);
    r.put(24, uint32_t(getpid())), r.put(28, uint32_t(pthread_self())), r.put(32, correlation), r.put(36, 0u);
    keep(r);
  }
  return correlation;
}

void on_done(const Node& node, int device, uint32_t stream, Clock::time_point start, Clock::time_point end) {
  const bool copies = node.name.starts_with("cuMemcpy"), fills = node.name.starts_with("cuMemset");
  const Kind kind = copies ? copy : fills ? fill : kernel;
  if (!enabled.contains(kind)) return;
  Record r(kind, size_of(kind));
  if (kind == kernel) {
    r.put(6, uint16_t{32});
    r.put(16, time_of(start)), r.put(24, time_of(end));
    r.put(40, uint32_t(device)), r.put(48, stream), r.put(92, node.correlation);
    for (size_t i = 0; i < 6; ++i) r.put(52 + 4 * i, int32_t{1});
    r.put(76, int32_t{0}), r.put(80, int32_t{0});
    r.put(104, names.insert(node.name).first->c_str());
  } else {
    const uint32_t function = function_of(node.name);
    r.put(4, copies ? uint32_t(function == 277 ? 1 : function == 279 ? 2 : 8) : 0u);
    r.put(8, uint64_t{64}), r.put(16, time_of(start)), r.put(24, time_of(end));
    r.put(32, uint32_t(device)), r.put(40, stream), r.put(44, node.correlation);
  }
  keep(r);
}
const Listener kListener = {on_asked, on_done};

}  // namespace
}  // namespace emulator

using namespace emulator;

EMULATOR_API Status cuptiActivityRegisterCallbacks(decltype(request) asks, decltype(complete) gives) {
  request = asks, complete = gives;
  return CUDA_SUCCESS;
}
EMULATOR_API Status cuptiActivityEnable(int kind) {
  const char* wish = std::getenv("CRESSET_EMULATOR_CUPTI");
  if (wish && *wish == '0') return busy;
  std::lock_guard guard(lock());
  enabled.insert(kind);
  listener = &kListener;
  return CUDA_SUCCESS;
}
EMULATOR_API Status cuptiActivityDisable(int kind) {
  std::lock_guard guard(lock());
  enabled.erase(kind);
  if (enabled.empty()) listener = nullptr;
  return CUDA_SUCCESS;
}
EMULATOR_API Status cuptiActivityFlushAll(uint32_t) {
  std::vector<uint8_t> records;
  {
    std::lock_guard guard(lock());
    records.swap(pending);
  }
  for (size_t at = 0; at < records.size();) {  // in buffers that hold whole records
    uint8_t* buffer = nullptr;
    size_t size = 0, most = 0, used = 0;
    request(&buffer, &size, &most);
    while (at + used < records.size()) {
      int kind;
      std::memcpy(&kind, records.data() + at + used, sizeof kind);
      if (used + size_of(kind) > size) break;
      used += size_of(kind);
    }
    if (!used) return CUDA_ERROR_OUT_OF_MEMORY;
    std::memcpy(buffer, records.data() + at, used);
    complete(nullptr, 0, buffer, size, used);
    at += used;
  }
  return CUDA_SUCCESS;
}
EMULATOR_API Status cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid, uint8_t** record) {
  int kind = 0;
  if (*record) std::memcpy(&kind, *record, sizeof kind);
  uint8_t* const next = *record ? *record + size_of(kind) : buffer;
  if (next >= buffer + valid) return no_more;
  *record = next;
  return CUDA_SUCCESS;
}
EMULATOR_API Status cuptiActivityPushExternalCorrelationId(int kind, uint64_t id) {
  if (kind != 3) return invalid;
  sources.push_back(id);
  return CUDA_SUCCESS;
}
EMULATOR_API Status cuptiActivityPopExternalCorrelationId(int kind, uint64_t* last) {
  if (kind != 3) return invalid;
  if (sources.empty()) return empty_stack;
  *last = sources.back();
  sources.pop_back();
  return CUDA_SUCCESS;
}
EMULATOR_API Status cuptiGetTimestamp(uint64_t* nanoseconds) {
  *nanoseconds = time_of(Clock::now());
  return CUDA_SUCCESS;
}
EMULATOR_API Status cuptiGetCallbackName(int domain, uint32_t function, const char** name) {
  *name = domain != 1       ? nullptr
          : function == 277 ? "cuMemcpyHtoDAsync_v2"
          : function == 279 ? "cuMemcpyDtoHAsync_v2"
          : function == 281 ? "cuMemcpyDtoDAsync_v2"
          : function == 216 ? "cuMemsetD8Async"
                            : "cuLaunchKernel";
  return CUDA_SUCCESS;
}
EMULATOR_API Status cuptiGetResultString(Status status, const char** text) {
  *text = status == busy ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED" : "CUPTI_ERROR_UNKNOWN";
  return CUDA_SUCCESS;
}
