// cresset._native.cuda: devices, streams, events, graphs and memory, as plain functions on numbers; cresset/cuda makes
// PyTorch's classes of them.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings/dictionary.h"
#include "bindings/python.h"
#include "cuda/activity.h"
#include "cuda/attention.h"
#include "cuda/backend.h"
#include "cuda/compile.h"
#include "cuda/cublas.h"
#include "cuda/cudnn.h"
#include "cuda/device.h"
#include "cuda/fault.h"
#include "cuda/fused.h"
#include "cuda/library.h"
#include "cuda/memory.h"
#include "cuda/printed.h"
#include "cuda/random.h"
#include "cuda/replay.h"
#include "cuda/wait.h"
#include "dispatch/late.h"
#include "dispatch/on_host.h"

namespace cresset {
namespace {

namespace nb = nanobind;
using namespace cuda;

using Number = unsigned long long;  // a handle or an address
StreamHandle handle(Number n) { return reinterpret_cast<StreamHandle>(n); }
Number number(void* p) { return reinterpret_cast<Number>(p); }

// Runs f without the interpreter's lock: other threads go on while it waits for a device.
template <class F>
void waiting(F&& f) {
  PyThreadState* const state = PyEval_SaveThread();
  try {
    f();
  } catch (...) {
    PyEval_RestoreThread(state);
    throw;
  }
  PyEval_RestoreThread(state);
}

// What waits to be computed belongs to the stream and the moment at which it was asked for.
void settle(const char* reason) {
  if (pending_count.load(std::memory_order_relaxed)) settle_all(reason);
}

nb::dict describe(int device) {
  const Properties& p = properties(device);
  nb::dict d;
  d["name"] = p.name;
  d["major"] = p.major;
  d["minor"] = p.minor;
  d["total_memory"] = p.memory;
  d["multi_processor_count"] = p.multiprocessors;
  d["is_integrated"] = p.integrated;
  d["is_multi_gpu_board"] = p.multi_gpu_board;
  d["max_threads_per_multi_processor"] = p.threads_per_multiprocessor;
  d["regs_per_multiprocessor"] = p.registers_per_multiprocessor;
  d["warp_size"] = p.warp_size;
  d["clock_rate"] = p.clock_rate;
  d["memory_clock_rate"] = p.memory_clock_rate;
  d["memory_bus_width"] = p.bus_width;
  d["L2_cache_size"] = p.l2;
  d["shared_memory_per_block"] = p.shared_per_block;
  d["shared_memory_per_block_optin"] = p.shared_per_block_optin;
  d["shared_memory_per_multiprocessor"] = p.shared_per_multiprocessor;
  d["uuid"] = p.uuid;
  d["pci_bus_id"] = p.pci_bus;
  d["pci_device_id"] = p.pci_device;
  d["pci_domain_id"] = p.pci_domain;
  return d;
}

nb::dict figure(const Figure& f) {
  nb::dict one;
  one["current"] = f.current;
  one["peak"] = f.peak;
  one["allocated"] = f.allocated;
  one["freed"] = f.freed;
  return one;
}

nb::dict figures(const Figures& f) {
  static constexpr const char* names[] = {"all", "small_pool", "large_pool"};
  nb::dict all;
  for (int i = 0; i < 3; ++i) all[names[i]] = figure(f[i]);
  return all;
}

nb::dict statistics(int device) {
  check_device(device);
  const MemoryStatistics s = memory_statistics(device);
  return dictionary("allocation", figures(s.allocation), "segment", figures(s.segment), "active", figures(s.active),
                    "inactive_split", figures(s.inactive_split), "allocated_bytes", figures(s.allocated_bytes),
                    "reserved_bytes", figures(s.reserved_bytes), "active_bytes", figures(s.active_bytes),
                    "inactive_split_bytes", figures(s.inactive_split_bytes), "requested_bytes",
                    figures(s.requested_bytes), "num_alloc_retries", s.retries, "num_ooms", s.failures,
                    "num_device_alloc", s.device_allocations, "num_device_free", s.device_frees);
}

// [(address, bytes, stream, is large, pool, [(address, bytes, requested, state, site)])]
nb::list snapshot(int device) {
  static constexpr const char* states[] = {"active_allocated", "active_pending_free", "inactive"};
  nb::list all;
  for (const SegmentFacts& s : memory_snapshot(device)) {
    nb::list blocks;
    for (const BlockFacts& b : s.blocks)
      blocks.append(nb::make_tuple(b.address, b.bytes, b.requested, states[b.state], b.site));
    all.append(nb::make_tuple(s.address, s.bytes, number(s.stream), s.large, s.pool, blocks));
  }
  return all;
}

// [(action, address, bytes, nanoseconds since 1970, stream, site)]
nb::list history(int device) {
  static constexpr const char* actions[] = {"alloc", "free_completed", "segment_alloc", "segment_free", "oom"};
  nb::list all;
  for (const MemoryEvent& e : memory_history(device))
    all.append(nb::make_tuple(actions[e.kind], e.address, e.bytes, e.time, number(e.stream), e.site));
  return all;
}

// "file.py(12): function" of the innermost frame outside of this package, and the module whose forward runs; where
// `whole`, the frames around it on lines of their own.
std::string site_of_user(bool whole) {
  if (!PyGILState_GetThisThreadState()) return "";  // a thread that is not Python's
  const PyGILState_STATE gil = PyGILState_Ensure();
  PyFrameObject* frame = PyEval_GetFrame();
  Py_XINCREF(frame);
  const std::string module = running_module_path();
  std::string site, around;
  bool found = false;
  while (frame) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    const std::string file = PyUnicode_AsUTF8(code->co_filename);
    const bool ours = file.find("/cresset/") != file.npos && file.find("/tests/") == file.npos;
    std::string line =
        file + "(" + std::to_string(PyFrame_GetLineNumber(frame)) + "): " + PyUnicode_AsUTF8(code->co_name);
    Py_DECREF(code);
    if (found)
      around += "\n" + line;
    else if (site.empty() || !ours)
      site = std::move(line);
    found = found || !ours;
    PyFrameObject* const next = found && !whole ? nullptr : PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = next;
  }
  PyGILState_Release(gil);
  if (!module.empty()) site += ", in module " + module;
  return site + around;
}
std::string line_of_user() { return site_of_user(false); }
std::string stack_of_user() { return site_of_user(true); }

Generator& generator_of(int device) {
  check_index(device >= 0 && device < kMaxDevices, "there is no generator for cuda:", device);
  return default_generator(cuda::device_at(device));
}

// The text of a formula that the program has defined itself, from cresset.cuda.printing.
std::string printed_formula(const std::string& name, int which, const char* compute) {
  const PyGILState_STATE gil = PyGILState_Ensure();
  std::string text;
  try {
    text = nb::cast<std::string>(
        nb::module_::import_("cresset.cuda.printing").attr("formula_source")(name, which, compute));
  } catch (nb::python_error& e) {
    e.restore();
    PyGILState_Release(gil);
    throw PythonError{};
  }
  PyGILState_Release(gil);
  return text;
}

Tensor unwrap_if(nb::handle tensor) { return tensor.is_none() ? Tensor() : unwrap(tensor.ptr()); }

// (text, whether scores are changed, queries and keys of a block, scale, four sizes of the kernels and whether they
// multiply by warpgroups, states of blocks or
// None, tensors)
FlexAttention flex_of(const nb::tuple& program) {
  FlexAttention f{nb::cast<std::string>(program[0]),
                  nb::cast<bool>(program[1]),
                  nb::cast<int32_t>(program[2]),
                  nb::cast<int32_t>(program[3]),
                  nb::cast<double>(program[4]),
                  unwrap_if(program[6]),
                  {}};
  const auto sizes = nb::cast<nb::tuple>(program[5]);
  f.own_rows = nb::cast<int32_t>(sizes[0]), f.tile = nb::cast<int32_t>(sizes[1]);
  f.backward_queries = nb::cast<int32_t>(sizes[2]), f.backward_keys = nb::cast<int32_t>(sizes[3]);
  f.by_warpgroups = nb::cast<bool>(sizes[4]);
  for (const nb::handle tensor : nb::cast<nb::list>(program[7])) f.tensors.push_back(unwrap(tensor.ptr()));
  return f;
}

int64_t stack_of(uint64_t source) { return source >= kOfStack ? static_cast<int64_t>(source - kOfStack) : -1; }

nb::tuple wrap_activity(const Activity& a) {
  static constexpr const char* kinds[] = {"kernel", "copy", "fill", "call"};
  const int64_t event = a.source > 0 && a.source < kOfStack ? static_cast<int64_t>(a.source) - 1 : -1;
  return nb::make_tuple(kinds[a.kind], a.name, a.start, a.end, a.device, a.stream, a.thread, a.correlation, event,
                        stack_of(a.source), a.bytes, nb::make_tuple(a.grid[0], a.grid[1], a.grid[2]),
                        nb::make_tuple(a.block[0], a.block[1], a.block[2]), a.shared, a.registers);
}

std::vector<std::string> nvidia_packages() {
  const PyGILState_STATE gil = PyGILState_Ensure();
  std::vector<std::string> folders;
  try {
    folders =
        nb::cast<std::vector<std::string>>(nb::module_::import_("cresset.cuda.libraries").attr("package_folders")());
  } catch (nb::python_error& e) {
    e.discard_as_unraisable("looking for NVIDIA's packages");
  }
  PyGILState_Release(gil);
  return folders;
}

}  // namespace

void add_cuda(PyObject* module) {
  nb::module_ m = nb::borrow<nb::module_>(module).def_submodule(
      "cuda", "Devices, streams, events, graphs and memory of CUDA; cresset.cuda makes PyTorch's classes of them.");
  print_formula = printed_formula;
  package_folders = nvidia_packages;
  allocation_site = line_of_user;

  m.def("set_kernel_folder", [](std::string folder) { set_kernel_folder(std::move(folder)); });
  m.def("problem", [] { return driver_problem(); }, "Why there is no driver; empty when there is one.");
  m.def("device_count", device_count);
  m.def("is_started", is_started);
  m.def("driver_version", [] {
    int v = 0;
    CRESSET_DRIVER(cuDriverGetVersion(&v));
    return v;
  });
  m.def("properties", describe);
  m.def("current_device", [] { return current_device(); });
  m.def("set_device", [](int device) { settle("another device is chosen"), set_device(device); });
  m.def("start", [](int device) { enter(device); });
  m.def("synchronize", [](int device) {
    settle("synchronize");
    waiting([&] { synchronize(device); });
  });
  m.def("can_access_peer", [](int device, int peer) {
    check_device(device), check_device(peer);
    int can = 0;
    CRESSET_DRIVER(cuDeviceCanAccessPeer(&can, device, peer));
    return can != 0;
  });

  // ---- streams
  m.def("current_stream", [](int device) { return check_device(device), number(current_stream(device)); });
  m.def("set_stream", [](int device, Number stream) {
    settle("another stream is chosen");
    set_stream(device, handle(stream));
  });
  m.def("stream_create", [](int device, int priority) {
    enter(device);
    StreamHandle s = nullptr;
    CRESSET_DRIVER(cuStreamCreateWithPriority(&s, kStreamNonBlocking, priority));
    return number(s);
  });
  m.def("stream_destroy", [](int device, Number stream) {
    enter(device);
    driver().cuStreamDestroy_v2(handle(stream));
  });
  m.def("stream_synchronize", [](int device, Number stream) {
    note_wait();
    waiting([&] {
      enter(device);
      CRESSET_DRIVER(cuStreamSynchronize(handle(stream)));
      raise_faults(device);
    });
  });
  m.def("set_wait_mode", [](int mode) { wait_mode = static_cast<WaitMode>(mode); });
  m.def("wait_mode", [] { return static_cast<int>(wait_mode); });
  m.def("stream_query", [](int device, Number stream) {
    enter(device);
    const Status status = driver().cuStreamQuery(handle(stream));
    if (status != kNotReady) check_status(status, "cuStreamQuery");
    return status == kSuccess;
  });
  m.def("stream_wait_event", [](int device, Number stream, Number event) {
    settle("a stream waits");
    enter(device);
    enqueue_call(device, "cuStreamWaitEvent", [stream = handle(stream), event = handle(event)] {
      return started_driver->cuStreamWaitEvent.now(stream, event, 0);
    });
  });
  m.def("stream_priority", [](int device, Number stream) {
    enter(device);
    int priority = 0;
    CRESSET_DRIVER(cuStreamGetPriority(handle(stream), &priority));
    return priority;
  });
  m.def("stream_priority_range", [](int device) {
    enter(device);
    int least = 0, greatest = 0;
    CRESSET_DRIVER(cuCtxGetStreamPriorityRange(&least, &greatest));
    return nb::make_tuple(least, greatest);
  });
  m.def("stream_is_capturing", [](int device, Number stream) {
    enter(device);
    return is_capturing(handle(stream));
  });

  // ---- events
  m.def("event_create", [](int device, bool timing, bool blocking) {
    enter(device);
    EventHandle e = nullptr;
    CRESSET_DRIVER(cuEventCreate(&e, (timing ? kEventDefault : kEventNoTiming) | (blocking ? kEventBlockingSync : 0)));
    return number(e);
  });
  m.def("event_destroy", [](int device, Number event) {
    enter(device);
    driver().cuEventDestroy_v2(handle(event));
  });
  m.def("event_record", [](int device, Number event, Number stream) {
    settle("an event is recorded");
    enter(device);
    enqueue_call(device, "cuEventRecord", [event = handle(event), stream = handle(stream)] {
      return started_driver->cuEventRecord.now(event, stream);
    });
  });
  m.def("event_query", [](int device, Number event) {
    enter(device);
    const Status status = driver().cuEventQuery(handle(event));
    if (status != kNotReady) check_status(status, "cuEventQuery");
    return status == kSuccess;
  });
  m.def("event_synchronize", [](int device, Number event) {
    enter(device);
    waiting([&] { CRESSET_DRIVER(cuEventSynchronize(handle(event))); });
  });
  m.def("event_elapsed", [](int device, Number start, Number end) {
    enter(device);
    float milliseconds = 0;
    CRESSET_DRIVER(cuEventElapsedTime(&milliseconds, handle(start), handle(end)));
    return static_cast<double>(milliseconds);
  });

  // ---- graphs
  m.def("new_pool", new_pool);
  m.def("begin_pool", [](int device, Number pool) { check_device(device), begin_pool(device, pool); });
  m.def("end_pool", [](int device, Number pool) { check_device(device), end_pool(device, pool); });
  m.def("release_pool", [](int device, Number pool) { check_device(device), release_pool(device, pool); });
  m.def("capture_begin", [](int device, Number stream, Number pool, int mode) {
    settle("a graph begins");
    enter(device);
    begin_pool(device, pool);
    finish_launches();
    begin_capture(handle(stream), mode);
    hold_replay(true);
  });
  m.def("capture_end", [](int device, Number stream, Number pool) {
    settle("a graph ends");
    enter(device);
    end_pool(device, pool);
    hold_replay(false);
    const GraphHandle graph = end_capture(handle(stream));
    check(graph,
          "CUDA graph capture failed: the capture was not valid (an operation that waits for the device was called "
          "while capturing?)");
    return number(graph);
  });
  m.def("graph_instantiate", [](int device, Number graph) {
    enter(device);
    GraphExecHandle exec = nullptr;
    CRESSET_DRIVER(cuGraphInstantiateWithFlags(&exec, handle(graph), 0));
    return number(exec);
  });
  m.def("graph_launch", [](int device, Number exec, Number stream) {
    settle("a graph is replayed");
    enter(device);
    enqueue_call(device, "cuGraphLaunch", [exec = handle(exec), stream = handle(stream)] {
      return started_driver->cuGraphLaunch.now(exec, stream);
    });
  });
  m.def("graph_destroy", [](int device, Number graph, Number exec, Number pool) {
    enter(device);
    if (exec) driver().cuGraphExecDestroy(handle(exec));
    if (graph) driver().cuGraphDestroy(handle(graph));
    if (pool) release_pool(device, pool);
  });
  m.def("graph_draw", [](int device, Number graph, std::string path) {
    enter(device);
    CRESSET_DRIVER(cuGraphDebugDotPrint(handle(graph), path.c_str(), 1));
  });

  // ---- random numbers
  m.def("default_generator", [](int device) { return nb::steal(wrap(generator_of(device))); });
  m.def("manual_seed_all", [](nb::int_ seed) {
    // Of devices that are not there too: the driver is not asked.
    for (int device = 0; device < kMaxDevices; ++device)
      nb::steal(wrap(generator_of(device))).attr("manual_seed")(seed);
  });
  m.def("begin_random_capture", begin_random_capture);
  m.def("end_random_capture", end_random_capture);
  m.def("start_random_replay", start_random_replay);

  // ---- memory
  m.def("memory_statistics", statistics);
  m.def("reset_peak_statistics", [](int device) { check_device(device), reset_peak_statistics(device); });
  m.def("reset_accumulated_statistics", [](int device) { check_device(device), reset_accumulated_statistics(device); });
  m.def("memory_info", [](int device) {
    enter(device);
    size_t free = 0, total = 0;
    CRESSET_DRIVER(cuMemGetInfo_v2(&free, &total));
    return nb::make_tuple(static_cast<int64_t>(free), static_cast<int64_t>(total));
  });
  m.def("empty_cache", [](int device) { check_device(device), empty_cache(device); });
  m.def("set_memory_fraction",
        [](int device, double fraction) { check_device(device), set_memory_fraction(device, fraction); });
  m.def("memory_fraction", [](int device) { return check_device(device), memory_fraction(device); });
  m.def("memory_snapshot", snapshot);
  m.def("memory_history", history);
  m.def("activities_start", start_activities, "Record what the devices do; see activities_stop.");
  m.def(
      "activities_stop",
      [](bool keep, int64_t since) {
        settle("a profiler stops");
        Activities found;
        waiting([&] { found = stop_activities(keep, since); });
        nb::list all;
        for (const Activity& a : found.kept) all.append(wrap_activity(a));
        for (const auto& [source, time] : found.sums) all.append(nb::make_tuple(stack_of(source), time));
        return all;
      },
      "With `keep` (kind, name, start, end, device, stream, thread, correlation, event or -1, stack or -1, bytes, "
      "grid, "
      "block, shared memory, registers) of what the devices did since that nanosecond, else (stack or -1, "
      "nanoseconds).");
  m.def("activity_source", [] {
    const ActivitySource source = activity_source();
    return nb::make_tuple(source.name, source.problem);
  });
  m.def("record_memory_history", [](int device, int64_t most_events, bool stacks) {
    check_device(device);
    allocation_site = stacks ? stack_of_user : line_of_user;
    record_memory_history(device, most_events);
  });
  m.def("allocate", [](int device, int64_t bytes, Number stream) {
    check_device(device);
    const StreamHandle before = current_stream(device);
    set_stream(device, handle(stream));
    char* data = nullptr;
    try {
      data = cuda::allocate(device, bytes).data;
    } catch (...) {
      set_stream(device, before);
      throw;
    }
    set_stream(device, before);
    return number(data);
  });
  m.def("free", [](int device, Number address) {
    check_device(device);
    if (void* block = find_block(device, reinterpret_cast<const char*>(address))) cuda::free(device, block);
  });
  m.def("record_stream", [](nb::handle tensor, Number stream) {
    const Tensor t = unwrap(tensor.ptr());
    if (cuda::is_cuda(t.device()) && t.storage()->data)
      if (void* block = find_block(t.device().index, t.storage()->data))
        record_stream(t.device().index, block, handle(stream));
  });
  m.def("is_pinned", [](nb::handle tensor) { return unwrap(tensor.ptr()).storage()->pinned; });
  // A tensor's elements in pinned memory: a copy.
  m.def("pin", [](nb::handle tensor) {
    const Tensor t = unwrap_elements("pin_memory", tensor.ptr());
    check(t.device().is_cpu(), "pin_memory: cannot pin '", t.device(), "': only dense CPU tensors can be pinned");
    current_device();  // raises when there is no device
    Tensor out = empty(
        TensorInfo{t.sizes(), dense_strides_like(t.sizes(), t.strides()), t.dtype(), Device{DeviceType::cpu, kPinned}});
    copy_into(out, t);
    return nb::steal(wrap(out));
  });
  m.def("empty_pinned_cache", empty_pinned_cache);
  m.def("note_registered",
        [](Number address, int64_t bytes) { note_registered(reinterpret_cast<void*>(address), bytes); });
  m.def("forget_registered", [](Number address) { forget_registered(reinterpret_cast<void*>(address)); });
  m.def("pinned_statistics", [] {
    const PinnedStatistics s = pinned_statistics();
    return dictionary("allocation", figure(s.allocation), "allocated_bytes", figure(s.allocated_bytes), "segment",
                      figure(s.segment), "reserved_bytes", figure(s.reserved_bytes));
  });
  m.def("reset_pinned_peaks", reset_pinned_peaks);
  m.def("reset_pinned_sums", reset_pinned_sums);

  // ---- products
  m.def("set_products", [](bool tf32, bool reduced_f16, bool reduced_bf16) {
    product_settings.tf32 = tf32;
    product_settings.reduced_f16 = reduced_f16;
    product_settings.reduced_bf16 = reduced_bf16;
  });
  m.def(
      "measure_products", [](int level) { return product_measuring.level.exchange(level); },
      "0 never, 1 where bits stay as they are, 2 always: Note [Measured plans] in native/cuda/cublas.h.");
  m.def(
      "measure_products_from", [](double operations) { return product_measuring.from.exchange(operations); },
      "The least product that is measured.");
  m.def(
      "products_measured",
      [] { return nb::make_tuple(product_measuring.measured.load(), product_measuring.changed.load()); },
      "How many plans were measured, and how many changed.");
  m.def("set_convolutions", [](bool enabled, bool benchmark, bool deterministic, bool tf32, int64_t candidates) {
    cudnn_settings.enabled = enabled;
    cudnn_settings.benchmark = benchmark;
    cudnn_settings.deterministic = deterministic;
    cudnn_settings.tf32 = tf32;
    cudnn_settings.candidates = candidates;
  });
  m.def("set_cudnn_attention", [](bool enabled) { cudnn_settings.attention = enabled; });
  m.def(
      "set_cudnn_attention_from", [](int64_t work) { return cudnn_settings.attention_from.exchange(work); },
      "The least problem for it: batches heads queries keys width.");
  m.def("flex_attention", [](const nb::tuple& program, nb::handle q, nb::handle k, nb::handle v, nb::handle out,
                             nb::handle rows, nb::handle logarithms) {
    flex_of(program).forward(unwrap(q.ptr()), unwrap(k.ptr()), unwrap(v.ptr()), unwrap(out.ptr()), unwrap(rows.ptr()),
                             unwrap(logarithms.ptr()));
  });
  m.def(
      "flex_attention_backward",
      [](const nb::tuple& program, nb::handle grad, nb::handle q, nb::handle k, nb::handle v, nb::handle out,
         nb::handle rows, nb::handle logarithm_grad, nb::handle query_grad, nb::handle key_grad,
         nb::handle value_grad) {
        flex_of(program).backward(unwrap(grad.ptr()), unwrap(q.ptr()), unwrap(k.ptr()), unwrap(v.ptr()),
                                  unwrap(out.ptr()), unwrap(rows.ptr()), unwrap_if(logarithm_grad),
                                  unwrap(query_grad.ptr()), unwrap(key_grad.ptr()), unwrap(value_grad.ptr()));
      },
      nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg(),
      nb::arg(), nb::arg());
  m.def("set_deterministic", [](bool enabled) { cudnn_settings.all_deterministic = enabled; });
  m.def("cudnn_version", cudnn_version, "Of the library, which is looked for; 0 when it is not there.");

  m.def("operators_on_host", operators_on_host, "The operators that were computed on the CPU for want of a kernel.");
  m.def(
      "note_host", [](const std::string& name, int device) { note_host(name, cuda::device_at(device)); },
      "Warn once that what is named here is computed on the CPU.");
  m.def("refuse_host", [](bool on) { refuses_host = on; });
  m.def(
      "replay", [](int device, bool on) { check_device(device), replay(on, device); },
      "Whether launches that repeat themselves go to the driver as graphs, from here on; it counts.");
  m.def("replay_statistics", [] {
    const ReplayStatistics s = replay_statistics();
    return dictionary("graphs", s.graphs, "replays", s.replays, "replayed", s.replayed, "plain", s.plain, "problem",
                      s.problem);
  });
  m.def("fused_statistics", [] {
    const FusedStatistics s = fused_statistics();
    return dictionary("asked", s.asked, "launched", s.launched, "unfused", s.unfused, "failed", s.failed);
  });
  m.def(
      "finish_fused_kernels", [] { waiting([] { finish_fused_kernels(); }); },
      "Wait until the kernels of groups that were asked for are compiled.");
  m.def("compile_statistics", [] {
    const CompileStatistics s = compile_statistics();
    return nb::make_tuple(s.compiled, s.from_disk, s.compile_seconds, s.load_seconds);
  });
}

}  // namespace cresset
