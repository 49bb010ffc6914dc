// Late work (CRESSET_EMULATOR_LATE=1): what is asked of a stream waits in its queue until somebody waits for it, the
// latest moment that a GPU may take. A host that reads too early, or a stream that does not wait for another, then
// finds old values; errors come where a GPU gives them, at the next wait.
#include <cstdlib>
#include <utility>

#include "emulator.h"

namespace emulator {

EMULATOR_SHARED const Listener* listener = nullptr;

namespace {

Status run_silently(const Node& node) {
  if (node.calls_host) {
    lock().unlock();  // the user's function may wait for a thread that wants the lock
    const Status status = node.work();
    lock().lock();
    return status;
  }
  Access access;
  return node.work();
}

Status run(const Stream* stream, const Node& node) {
  if (!listener) return run_silently(node);
  const auto start = std::chrono::steady_clock::now();
  const Status status = run_silently(node);
  listener->done(node, stream->device->ordinal, stream->number, start, std::chrono::steady_clock::now());
  return status;
}

bool is_late() {
  static const bool wanted = [] {
    const char* text = std::getenv("CRESSET_EMULATOR_LATE");
    return text && *text && *text != '0';
  }();
  return wanted;
}

void take_one(Stream* stream) {
  Task task = std::move(stream->queue.front());
  stream->queue.pop_front();
  if (task.awaited) {
    finish_until(*task.awaited);
  } else if (task.mark) {
    task.mark->when = std::chrono::steady_clock::now();
    task.mark->done = true;
  } else if (Status status = run(stream, task.node);
             status != CUDA_SUCCESS && stream->device->failure == CUDA_SUCCESS) {
    stream->device->failure = status;
  }
}

// The legacy stream and blocking streams wait for each other's earlier work.
void wait_as_legacy_does(Stream* stream) {
  for (Stream* other : all_streams(stream->device)) {
    const bool together =
        other != stream && other->blocking && stream->blocking && (stream->is_legacy || other->is_legacy);
    if (!together || other->queue.empty()) continue;
    stream->queue.push_back({{}, put_mark(other), nullptr});
  }
}

}  // namespace

Status do_or_queue(Stream* stream, Node node) {
  if (!is_late()) return run(stream, node);
  wait_as_legacy_does(stream);
  stream->queue.push_back({std::move(node), nullptr, nullptr});
  return CUDA_SUCCESS;
}

std::shared_ptr<Mark> put_mark(Stream* stream) {
  auto mark = std::make_shared<Mark>();
  mark->stream = stream, mark->when = std::chrono::steady_clock::now();
  mark->done = stream->queue.empty();
  if (!mark->done) stream->queue.push_back({{}, nullptr, mark});
  return mark;
}

void wait_for(Stream* stream, const std::shared_ptr<Mark>& mark) {
  if (!mark->done && mark->stream != stream) stream->queue.push_back({{}, mark, nullptr});
}

void finish_until(const Mark& mark) {
  while (!mark.done) take_one(mark.stream);
}
Status finish(Stream* stream) {
  while (!stream->queue.empty()) take_one(stream);
  return take_failure(stream->device);
}
Status finish(Device* device) {
  for (Stream* stream : all_streams(device))
    while (!stream->queue.empty()) take_one(stream);
  return take_failure(device);
}
bool progress(Stream* stream) {
  if (!stream->queue.empty()) take_one(stream);
  return stream->queue.empty();
}
Status take_failure(Device* device) { return std::exchange(device->failure, CUDA_SUCCESS); }

}  // namespace emulator
