// Streams, events, and the capture of work into graphs.
//
// The order in which work is captured is an order in which it may be done, so a graph is a list. What must hold between
// streams is checked: a stream joins a capture by waiting for an event of it, and has to be waited for before the
// capture ends.
#include <algorithm>
#include <cstdio>
#include <memory>

#include "emulator.h"

namespace emulator {
namespace {

struct Event {
  Device* device;
  bool timed = true;
  std::shared_ptr<Mark> mark;  // null: not recorded
  Capture* capture = nullptr;  // in which it was recorded last
  Stream* stream = nullptr;
  uint64_t position = 0;
};

template <class T>
class Handles {
 public:
  T* add(std::unique_ptr<T> item) { return all_.emplace(item.get(), std::move(item)).first->first; }
  T* find(void* handle) const {
    auto found = all_.find(static_cast<T*>(handle));
    return found == all_.end() ? nullptr : found->first;
  }
  bool remove(void* handle) { return all_.erase(static_cast<T*>(handle)) > 0; }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }

 private:
  std::map<T*, std::unique_ptr<T>> all_;
};

struct Everything {
  Handles<Stream> streams;
  Handles<Event> events;
  Handles<Graph> graphs, executables;
  Handles<Capture> captures;
};
Everything& all() {
  static auto* the = new Everything;
  return *the;
}
thread_local int interaction = 0;  // CUstreamCaptureMode of the thread: 0 global, 1 thread-local, 2 relaxed

Status invalidate(Capture* capture, const char* who, Status status) {
  complain("%s: not while a stream is captured; the capture is spoilt", who);
  capture->invalid = true;
  return status;
}

void note_work(Stream* stream) {
  ++stream->position;
  if (stream != stream->capture->origin) stream->unjoined = true;
}

// The legacy stream and blocking streams wait for each other, which a capture cannot hold.
Capture* disturbed_by(const Stream* stream) {
  if (stream->is_legacy)
    for (const auto& [capture, owner] : all().captures)
      for (const Stream* captured : capture->streams)
        if (captured->blocking && captured->device == stream->device) return capture;
  return nullptr;
}

// May somebody wait for the stream?
Status may_be_asked(const char* who, Stream* stream) {
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  if (stream->capture) return invalidate(stream->capture, who, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  if (Capture* capture = disturbed_by(stream)) return invalidate(capture, who, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  return CUDA_SUCCESS;
}

void end_capture(Capture* capture) {
  for (Stream* stream : capture->streams) stream->capture = nullptr, stream->unjoined = false;
  for (const auto& [event, owner] : all().events)
    if (event->capture == capture) event->capture = nullptr, event->mark = nullptr;
  all().captures.remove(capture);
}

}  // namespace

Stream* find_stream(void* handle) {
  if (reinterpret_cast<uintptr_t>(handle) <= 2) return current() ? &current()->legacy : nullptr;
  return all().streams.find(handle);
}

Status submit(Stream* stream, std::string name, std::function<Status()> work, bool calls_host) {
  if (Capture* capture = disturbed_by(stream))
    return invalidate(capture, name.c_str(), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  Node node{std::move(name), std::move(work), calls_host};
  if (!stream->capture) {
    if (listener) node.correlation = listener->asked(node.name);
    return do_or_queue(stream, std::move(node));
  }
  if (stream->capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  stream->capture->graph->nodes.push_back(std::move(node));
  note_work(stream);
  return CUDA_SUCCESS;
}

std::vector<Stream*> all_streams(Device* device) {
  std::vector<Stream*> found = {&device->legacy};
  for (const auto& [stream, owner] : all().streams)
    if (stream->device == device) found.push_back(stream);
  return found;
}

Status refuse_in_capture(const char* who) {
  if (interaction == 2) return CUDA_SUCCESS;
  for (const auto& [capture, owner] : all().captures) {
    const bool own = capture->thread == std::this_thread::get_id();
    if (capture->mode != 2 && (own || (capture->mode == 0 && interaction == 0)))
      return invalidate(capture, who, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
  return CUDA_SUCCESS;
}

}  // namespace emulator

using namespace emulator;

// ---- streams

EMULATOR_API Status cuStreamCreateWithPriority(void** handle, unsigned flags, int priority) {
  EMULATOR_ENTER_CONTEXT();
  if (flags > 1) return CUDA_ERROR_INVALID_VALUE;
  auto stream = std::make_unique<Stream>();
  static uint32_t streams = 13;
  stream->device = current(), stream->blocking = flags == 0, stream->priority = std::clamp(priority, -5, 0);
  stream->number = streams++;
  *handle = all().streams.add(std::move(stream));
  return CUDA_SUCCESS;
}
EMULATOR_API Status cuStreamCreate(void** handle, unsigned flags) {
  return cuStreamCreateWithPriority(handle, flags, 0);
}
EMULATOR_API Status cuStreamDestroy_v2(void* handle) {
  EMULATOR_ENTER_CONTEXT();
  Stream* stream = all().streams.find(handle);
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  if (stream->capture) return invalidate(stream->capture, "cuStreamDestroy", CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  const Status status = finish(stream);
  all().streams.remove(handle);
  return status;
}
EMULATOR_API Status cuStreamSynchronize(void* handle) {
  EMULATOR_ENTER_CONTEXT();
  Stream* stream = find_stream(handle);
  if (Status status = may_be_asked("cuStreamSynchronize", stream)) return status;
  return finish(stream);
}
EMULATOR_API Status cuStreamQuery(void* handle) {
  EMULATOR_ENTER_CONTEXT();
  Stream* stream = find_stream(handle);
  if (Status status = may_be_asked("cuStreamQuery", stream)) return status;
  return progress(stream) ? take_failure(stream->device) : CUDA_ERROR_NOT_READY;
}
EMULATOR_API Status cuStreamGetPriority(void* handle, int* priority) {
  EMULATOR_ENTER_CONTEXT();
  Stream* stream = find_stream(handle);
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  *priority = stream->priority;
  return CUDA_SUCCESS;
}
// There is no profiler to tell.
EMULATOR_API Status cuProfilerStart() { return CUDA_SUCCESS; }
EMULATOR_API Status cuProfilerStop() { return CUDA_SUCCESS; }

EMULATOR_API Status cuCtxSynchronize() {
  EMULATOR_ENTER_CONTEXT();
  for (const auto& [capture, owner] : all().captures)
    if (capture->origin->device == current())
      return invalidate(capture, "cuCtxSynchronize", CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  return finish(current());
}
EMULATOR_API Status cuLaunchHostFunc(void* handle, void (*function)(void*), void* data) {
  EMULATOR_ENTER_CONTEXT();
  Stream* stream = find_stream(handle);
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  return submit(stream, "cuLaunchHostFunc", [=] { return function(data), CUDA_SUCCESS; }, true);
}

// ---- events

EMULATOR_API Status cuEventCreate(void** handle, unsigned flags) {
  EMULATOR_ENTER_CONTEXT();
  if (flags > 7) return CUDA_ERROR_INVALID_VALUE;
  auto event = std::make_unique<Event>();
  event->device = current(), event->timed = !(flags & 2);
  *handle = all().events.add(std::move(event));
  return CUDA_SUCCESS;
}
EMULATOR_API Status cuEventDestroy_v2(void* handle) {
  EMULATOR_ENTER();
  return all().events.remove(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
EMULATOR_API Status cuEventRecord(void* handle, void* stream_handle) {
  EMULATOR_ENTER_CONTEXT();
  Event* event = all().events.find(handle);
  Stream* stream = find_stream(stream_handle);
  if (!event || !stream || event->device != stream->device) return CUDA_ERROR_INVALID_HANDLE;
  if (Capture* capture = disturbed_by(stream))
    return invalidate(capture, "cuEventRecord", CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  if (stream->capture && stream->capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  event->capture = stream->capture, event->stream = stream, event->position = stream->position;
  event->mark = stream->capture ? std::make_shared<Mark>(Mark{stream, true, {}}) : put_mark(stream);
  return CUDA_SUCCESS;
}
EMULATOR_API Status cuEventSynchronize(void* handle) {
  EMULATOR_ENTER();
  Event* event = all().events.find(handle);
  if (!event) return CUDA_ERROR_INVALID_HANDLE;
  if (event->capture) return invalidate(event->capture, "cuEventSynchronize", CUDA_ERROR_CAPTURED_EVENT);
  if (event->mark) finish_until(*event->mark);
  return take_failure(event->device);
}
EMULATOR_API Status cuEventQuery(void* handle) {
  EMULATOR_ENTER();
  Event* event = all().events.find(handle);
  if (!event) return CUDA_ERROR_INVALID_HANDLE;
  if (event->capture) return invalidate(event->capture, "cuEventQuery", CUDA_ERROR_CAPTURED_EVENT);
  if (Status status = refuse_in_capture("cuEventQuery")) return status;
  if (event->mark && !event->mark->done) progress(event->mark->stream);
  return !event->mark || event->mark->done ? take_failure(event->device) : CUDA_ERROR_NOT_READY;
}
EMULATOR_API Status cuEventElapsedTime_v2(float* milliseconds, void* start, void* end) {
  EMULATOR_ENTER();
  Event *first = all().events.find(start), *last = all().events.find(end);
  if (!first || !last || !first->timed || !last->timed || !first->mark || !last->mark) return CUDA_ERROR_INVALID_HANDLE;
  if (first->capture || last->capture) return CUDA_ERROR_CAPTURED_EVENT;
  if (!first->mark->done || !last->mark->done) return CUDA_ERROR_NOT_READY;
  *milliseconds = std::chrono::duration<float, std::milli>(last->mark->when - first->mark->when).count();
  return CUDA_SUCCESS;
}
EMULATOR_API Status cuEventElapsedTime(float* milliseconds, void* start, void* end) {
  return cuEventElapsedTime_v2(milliseconds, start, end);
}

EMULATOR_API Status cuStreamWaitEvent(void* stream_handle, void* handle, unsigned) {
  EMULATOR_ENTER_CONTEXT();
  Event* event = all().events.find(handle);
  Stream* stream = find_stream(stream_handle);
  if (!event || !stream) return CUDA_ERROR_INVALID_HANDLE;
  if (!event->mark) return CUDA_SUCCESS;
  if (!event->capture) {
    if (!stream->capture) return wait_for(stream, event->mark), CUDA_SUCCESS;
    return invalidate(stream->capture, "cuStreamWaitEvent (for an event from outside)",
                      CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  }
  Capture* capture = event->capture;
  if (stream->is_legacy)
    return invalidate(capture, "cuStreamWaitEvent (on the legacy stream)", CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  if (stream->capture && stream->capture != capture) {
    invalidate(stream->capture, "cuStreamWaitEvent (for an event of another capture)", CUDA_ERROR_STREAM_CAPTURE_MERGE);
    return invalidate(capture, "cuStreamWaitEvent", CUDA_ERROR_STREAM_CAPTURE_MERGE);
  }
  if (!stream->capture) stream->capture = capture, stream->position = 0, capture->streams.insert(stream);
  if (event->stream != stream && event->position == event->stream->position && event->stream->unjoined) {
    event->stream->unjoined = false;
    note_work(stream);  // who waits carries the other's work on
  }
  return CUDA_SUCCESS;
}

// ---- graphs

EMULATOR_API Status cuStreamBeginCapture_v2(void* handle, int mode) {
  EMULATOR_ENTER_CONTEXT();
  Stream* stream = find_stream(handle);
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  if (mode < 0 || mode > 2) return CUDA_ERROR_INVALID_VALUE;
  if (stream->is_legacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (stream->capture) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  auto capture = std::make_unique<Capture>();
  capture->graph = new Graph, capture->origin = stream, capture->mode = mode,
  capture->thread = std::this_thread::get_id();
  capture->streams.insert(stream);
  stream->position = 0;
  stream->capture = all().captures.add(std::move(capture));
  return CUDA_SUCCESS;
}
EMULATOR_API Status cuStreamEndCapture(void* handle, void** graph) {
  EMULATOR_ENTER_CONTEXT();
  *graph = nullptr;
  Stream* stream = find_stream(handle);
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  Capture* capture = stream->capture;
  if (!capture) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  if (capture->mode != 2 && capture->thread != std::this_thread::get_id())
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  if (capture->origin != stream) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  std::unique_ptr<Graph> made(capture->graph);
  const bool invalid = capture->invalid;
  const bool unjoined =
      std::any_of(capture->streams.begin(), capture->streams.end(), [](Stream* s) { return s->unjoined; });
  end_capture(capture);
  if (invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (unjoined) return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  *graph = all().graphs.add(std::move(made));
  return CUDA_SUCCESS;
}
EMULATOR_API Status cuStreamIsCapturing(void* handle, int* state) {
  EMULATOR_ENTER_CONTEXT();
  Stream* stream = find_stream(handle);
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  if (disturbed_by(stream)) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  *state = !stream->capture ? 0 : stream->capture->invalid ? 2 : 1;
  return CUDA_SUCCESS;
}
EMULATOR_API Status cuThreadExchangeStreamCaptureMode(int* mode) {
  if (!mode || *mode < 0 || *mode > 2) return CUDA_ERROR_INVALID_VALUE;
  std::swap(*mode, interaction);
  return CUDA_SUCCESS;
}
EMULATOR_API Status cuGraphInstantiateWithFlags(void** executable, void* handle, unsigned long long) {
  EMULATOR_ENTER();
  Graph* graph = all().graphs.find(handle);
  if (!graph) return CUDA_ERROR_INVALID_VALUE;
  *executable = all().executables.add(std::make_unique<Graph>(*graph));
  return CUDA_SUCCESS;
}
EMULATOR_API Status cuGraphLaunch(void* executable, void* stream_handle) {
  EMULATOR_ENTER_CONTEXT();
  Graph* graph = all().executables.find(executable);
  Stream* stream = find_stream(stream_handle);
  if (!graph || !stream) return CUDA_ERROR_INVALID_HANDLE;
  for (const Node& node : std::vector(graph->nodes))  // a copy: the user's functions may destroy the graph
    if (Status status = submit(stream, node.name, node.work, node.calls_host)) return status;
  return CUDA_SUCCESS;
}
EMULATOR_API Status cuGraphExecDestroy(void* executable) {
  EMULATOR_ENTER();
  return all().executables.remove(executable) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
EMULATOR_API Status cuGraphDestroy(void* graph) {
  EMULATOR_ENTER();
  return all().graphs.remove(graph) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
EMULATOR_API Status cuGraphDebugDotPrint(void* handle, const char* path, unsigned) {
  EMULATOR_ENTER();
  Graph* graph = all().graphs.find(handle);
  std::FILE* file = graph && path ? std::fopen(path, "w") : nullptr;
  if (!file) return graph && path ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_ERROR_INVALID_VALUE;
  std::fputs("digraph dot {\n", file);
  for (size_t i = 0; i < graph->nodes.size(); ++i) {
    std::fprintf(file, "\"node_%zu\" [shape=\"rectangle\" label=\"%zu %s\"];\n", i, i, graph->nodes[i].name.c_str());
    if (i) std::fprintf(file, "\"node_%zu\" -> \"node_%zu\";\n", i - 1, i);
  }
  std::fputs("}\n", file);
  std::fclose(file);
  return CUDA_SUCCESS;
}
