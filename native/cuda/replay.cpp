#include "cuda/replay.h"

#include <mutex>

#include "base/error.h"
#include "cuda/activity.h"
#include "cuda/device.h"
#include "cuda/launch.h"
#include "cuda/memory.h"

namespace cresset::cuda {
namespace {

constexpr uint64_t kMostKnownBytes = 64 << 20;
constexpr uint64_t kStart = 0xcbf29ce484222325u;

std::atomic<int> wanted = 0, held = 0;  // how many ask for it, and for none
std::mutex statistics_lock;
ReplayStatistics statistics;

uint64_t hash_of(uint64_t h, const char* bytes, size_t count) {
  for (size_t at = 0; at + 8 <= count; at += 8) {  // work is a multiple of 64 bytes
    uint64_t word;
    std::memcpy(&word, bytes + at, 8);
    h = (h ^ word) * 0x9e3779b97f4a7c15u;
    h ^= h >> 32;
  }
  return h;
}

const char* bytes_of(const Work& w) { return reinterpret_cast<const char*>(&w); }

// Null: it is no launch of a kernel.
const Kernel* kernel_of(const Work& w) {
  return std::strcmp(w.what, "cuLaunchKernel") == 0 ? static_cast<const KernelLaunch&>(w).kernel : nullptr;
}

// A stream that is captured: the default one cannot be.
StreamHandle capture_stream(int device) {
  static StreamHandle streams[kMaxDevices] = {};
  if (!streams[device]) started_driver->cuStreamCreateWithPriority.now(&streams[device], kStreamNonBlocking, 0);
  return streams[device];
}

void note_problem(std::string problem) {
  const std::lock_guard guard(statistics_lock);
  statistics.problem = std::move(problem);
}

}  // namespace

ReplayStatistics replay_statistics() {
  finish_launches();
  const std::lock_guard guard(statistics_lock);
  return statistics;
}

void replay(bool on, int device) {
  order_free_blocks(device, on);
  const auto count = [on] {
    wanted.fetch_add(on ? 1 : -1, std::memory_order_relaxed);
    return kSuccess;
  };
  try {
    enqueue_call(device, "replay", count);
  } catch (...) {  // an earlier launch has failed: the end is the end all the same
    if (!on) count();
    throw;
  }
}
void hold_replay(bool on) { held.fetch_add(on ? 1 : -1, std::memory_order_relaxed); }

bool Gathered::takes(const Work& work) const {
  if (!work.can_be_captured || wanted.load(std::memory_order_relaxed) <= 0 || held.load(std::memory_order_relaxed))
    return false;
  if (!changing_.empty() && changing_.contains(kernel_of(work))) return false;
  return work_.empty() || (work_[0]->device == work.device && work_[0]->stream == work.stream);
}

void Gathered::add(const Work& work) {
  if (work_.empty()) hash_ = kStart, bytes_ = 0;
  hash_ = hash_of(hash_, bytes_of(work), work.bytes);
  bytes_ += work.bytes;
  work_.push_back(&work);
}

// What was gathered as a graph; null: it cannot be.
GraphExecHandle Gathered::capture() {
  const int device = work_[0]->device;
  const StreamHandle stream = capture_stream(device);
  if (!stream || started_driver->cuStreamBeginCapture_v2.now(stream, kCaptureRelaxed) != kSuccess) {
    note_problem("the driver does not capture now");
    return nullptr;
  }
  struct alignas(64) Line {
    char bytes[64];
  };
  std::vector<Line> copy;
  Status status = kSuccess;
  for (const Work* w : work_) {
    copy.resize(w->bytes / sizeof(Line));
    std::memcpy(static_cast<void*>(copy.data()), w, w->bytes);
    auto& elsewhere = *reinterpret_cast<Work*>(copy.data());
    elsewhere.stream = stream;
    if ((status = elsewhere.run(elsewhere)) != kSuccess) break;
  }
  GraphHandle graph = nullptr;
  GraphExecHandle exec = nullptr;
  const Status ended = started_driver->cuStreamEndCapture.now(stream, &graph);
  if (status == kSuccess && ended == kSuccess && graph)
    status = started_driver->cuGraphInstantiateWithFlags.now(&exec, graph, 0);
  if (graph) started_driver->cuGraphDestroy.now(graph);
  if (status == kSuccess && exec) return exec;
  note_problem("a call cannot be part of a graph");
  return nullptr;
}

// Work that is like some that was seen before but for a few calls: a step's number, the place of random numbers. The
// kernels that differ are launched by themselves from now on, so that the others can be replayed.
void Gathered::learn_difference() {
  for (const auto& [hash, k] : known_) {
    if (k.bytes.size() != bytes_) continue;
    size_t at = 0;
    bool same_kind = true;
    std::vector<const Work*> differing;
    for (const Work* w : work_) {
      const char* const before = k.bytes.data() + at;
      same_kind = same_kind && std::memcmp(before, w, sizeof(Work)) == 0;
      if (kernel_of(*w))
        same_kind = same_kind && std::memcmp(before + sizeof(Work), bytes_of(*w) + sizeof(Work),
                                             sizeof(KernelLaunch) - sizeof(Work)) == 0;  // also the kernel and the grid
      if (std::memcmp(before, w, w->bytes) != 0) differing.push_back(w);
      at += w->bytes;
      if (!same_kind) break;
    }
    if (!same_kind || differing.empty()) continue;
    note_problem(join(differing[0]->what, " (", differing[0]->bytes, " bytes) and ", differing.size() - 1,
                      " other calls differ from the last time"));
    if (differing.size() * 8 > work_.size() + 8) continue;
    for (const Work* w : differing)
      if (const Kernel* k = kernel_of(*w)) changing_.insert(k);
    return;
  }
}

void Gathered::forget_all() {
  for (auto& [hash, k] : known_)
    if (k.graph) started_driver->cuGraphExecDestroy.now(k.graph);
  known_.clear();
  known_bytes_ = 0;
}

void Gathered::run(Execute execute, void* context) {
  if (work_.empty()) return;
  Known* known = nullptr;
  const auto [first, last] = known_.equal_range(hash_);
  for (auto it = first; it != last && !known; ++it) {
    const Known& k = it->second;
    size_t at = 0;
    bool same = k.bytes.size() == bytes_;
    for (const Work* w : work_) {
      same = same && std::memcmp(k.bytes.data() + at, w, w->bytes) == 0;
      at += w->bytes;
      if (!same) break;
    }
    if (same) known = &it->second;
  }
  const auto count = static_cast<int64_t>(work_.size());
  if (!known && count > 1) {
    if (known_.size() < 64) learn_difference();
    if (known_bytes_ + bytes_ > kMostKnownBytes) forget_all();
    Known k;
    k.bytes.reserve(bytes_);
    for (const Work* w : work_) k.bytes.append(bytes_of(*w), w->bytes);
    known_bytes_ += bytes_;
    known = &known_.emplace(hash_, std::move(k))->second;
  }
  bool made = false;
  if (known && !known->graph && !known->refused && ++known->seen >= 2) {
    known->graph = capture();
    known->refused = !known->graph;
    made = known->graph != nullptr;
  }
  bool replays = false;
  if (known && known->graph) {  // to who watches, all of it is the first one's
    const LaunchWatch* const watch = launch_watch.load(std::memory_order_relaxed);
    const uint64_t source = watch ? source_of(*work_[0]) : 0;
    if (watch) watch->before(*work_[0], source);
    replays = started_driver->cuGraphLaunch.now(known->graph, work_[0]->stream) == kSuccess;
    if (watch) watch->after(*work_[0], source);
  }
  if (!replays)
    for (const Work* w : work_) execute(*w, context);
  work_.clear();
  const std::lock_guard guard(statistics_lock);
  statistics.graphs += made;
  statistics.replays += replays;
  (replays ? statistics.replayed : statistics.plain) += count;
}

}  // namespace cresset::cuda
