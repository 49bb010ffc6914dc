// Work on its way to the driver.
//
// Note [Launching on another thread]
// Telling the driver to launch a kernel takes several microseconds, in which Python could go on. So a launch is written
// into a queue, and a thread of our own tells the driver. One queue serves all devices and streams: work reaches the
// driver in the order in which it was written, whoever wrote it. Whoever else talks to the driver must not overtake the
// queue: the functions of driver() wait until it is empty, and so does finish_launches() for the libraries that call
// the driver by themselves. A launch that the driver refuses is raised by the next call that can raise. There is no
// such thread with CUDA_LAUNCH_BLOCKING=1 or on a machine with one processor: launches are then made at once.
#pragma once
#include <atomic>
#include <cstring>
#include <new>
#include <type_traits>

#include "cuda/driver.h"

namespace cresset::cuda {

// What is written: a function and its data, which is trivially copied. `extra` bytes may follow it.
struct Work {
  Status (*run)(const Work& work);
  const char* what;  // who is named when it fails
  int16_t device;
  uint16_t can_be_captured;                  // it is work of `stream` and nothing else: Note [Replaying launches]
  uint32_t bytes = 0;                        // with what follows, rounded up
  const char* (*explain)(Status) = nullptr;  // what a library means by what `run` gives; null: it is the driver's
  StreamHandle stream = nullptr;
};

namespace queue {

// Room for the work, until commit: the writer's alone. May wait until earlier work is done.
char* reserve(size_t bytes);
void commit();

}  // namespace queue

// `fill(extra)` writes what follows the work.
template <class W, class Fill>
void enqueue(W work, size_t extra, const Fill& fill) {
  static_assert(std::is_base_of_v<Work, W> && std::is_trivially_copyable_v<W> && sizeof(W) % 16 == 0 &&
                alignof(W) <= 16);
  raise_failed_launch();
  work.bytes = static_cast<uint32_t>((sizeof(W) + extra + 63) / 64 * 64);
  char* const place = queue::reserve(work.bytes);
  std::memset(place + sizeof(W), 0, work.bytes - sizeof(W));  // equal work has equal bytes
  std::memcpy(place, &work, sizeof(W));
  fill(place + sizeof(W));
  queue::commit();
}

// A call of the driver, through its `now`, or of a library. What the function holds is trivially copied; it gives
// kSuccess or what went wrong.
template <class Function>
void enqueue_call(int device, const char* what, const Function& function, const char* (*explain)(Status) = nullptr) {
  struct alignas(16) Called : Work {
    Function function;
  };
  enqueue(Called{{[](const Work& work) { return static_cast<const Called&>(work).function(); }, what,
                  static_cast<int16_t>(device), 0, 0, explain},
                 function},
          0, [](char*) {});
}

// The same for work of one stream, which `function` is given: it may be part of a graph. Nothing but members of a
// struct without gaps should be in it, so that equal calls have equal bytes.
template <class Function>
void enqueue_on(int device, StreamHandle stream, const char* what, const Function& function,
                const char* (*explain)(Status) = nullptr) {
  struct alignas(16) Called : Work {
    Function function;
  };
  alignas(16) char bytes[sizeof(Called)] = {};
  const auto run = [](const Work& work) { return static_cast<const Called&>(work).function(work.stream); };
  enqueue(*new (bytes) Called{{run, what, static_cast<int16_t>(device), 1, 0, explain, stream}, function}, 0,
          [](char*) {});
}

}  // namespace cresset::cuda
