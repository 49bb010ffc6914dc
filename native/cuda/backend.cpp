#include "cuda/backend.h"

#include <cstring>

#include "cuda/device.h"
#include "cuda/fault.h"
#include "cuda/indexed_walk.h"
#include "cuda/launch.h"
#include "cuda/memory.h"
#include "cuda/pointwise.h"
#include "cuda/transpose.h"
#include "cuda/wait.h"
#include "tensor/backend.h"
#include "tensor/convert.h"

namespace cresset::cuda {
namespace {

int64_t bytes_of(const Tensor& t) { return t.numel() * size_of(t.dtype()); }
Address address(const void* p) { return reinterpret_cast<Address>(p); }

// Both lie densely in the same order: the bytes can be copied as they are.
bool lie_alike(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.sizes() == b.sizes() && a.strides() == b.strides() &&
         (a.is_contiguous() || is_dense(a.sizes(), a.strides()));
}

bool is_alike(const Tensor& t, DimsView sizes) { return t.sizes() == Dims(sizes) && t.is_contiguous(); }

void copy_memory(char* to, const char* from, int64_t bytes, int device) {
  const StreamHandle stream = enter(device);
  enqueue_on(device, stream, "cuMemcpyDtoDAsync", [=](StreamHandle stream) {
    return started_driver->cuMemcpyDtoDAsync_v2.now(address(to), address(from), static_cast<size_t>(bytes), stream);
  });
}

// Every element, of one, two or four bytes, becomes the same.
void set_memory(const Tensor& t, size_t width, uint64_t element) {
  const Place place(t.device());
  const Address to = address(t.bytes());
  const auto count = static_cast<size_t>(bytes_of(t)) / width;
  enqueue_on(place.device, place.stream, "cuMemsetAsync", [=](StreamHandle stream) {
    if (width == 1) return started_driver->cuMemsetD8Async.now(to, static_cast<unsigned char>(element), count, stream);
    if (width == 2)
      return started_driver->cuMemsetD16Async.now(to, static_cast<unsigned short>(element), count, stream);
    return started_driver->cuMemsetD32Async.now(to, static_cast<unsigned>(element), count, stream);
  });
}

void copy_within(const Tensor& to, const Tensor& from) {
  if (lie_alike(to, from)) return copy_memory(to.bytes(), from.bytes(), bytes_of(to), to.device().index);
  copy_strided({to.bytes(), to.dtype(), to.dtype(), to.strides()},
               {from.bytes(), from.dtype(), from.dtype(), expanded_strides("copy_", from, to.sizes())}, to.sizes(),
               to.device());
}

// From another device, through memory that lies densely.
void copy_between(const Tensor& to, const Tensor& from) {
  Tensor source = from;
  if (!is_alike(from, from.sizes())) source = contiguous_on_device(from);
  const Place there(source.device());
  EventHandle ready = nullptr;
  CRESSET_DRIVER(cuEventCreate(&ready, kEventNoTiming));
  CRESSET_DRIVER(cuEventRecord(ready, there.stream));
  Tensor target = to.dtype() == source.dtype() && is_alike(to, source.sizes())
                      ? to
                      : empty(source.sizes(), source.dtype(), to.device());
  const Place here(to.device());
  CRESSET_DRIVER(cuStreamWaitEvent(here.stream, ready, 0));
  CRESSET_DRIVER(cuMemcpyPeerAsync(address(target.bytes()), context(here.device), address(source.bytes()),
                                   context(there.device), static_cast<size_t>(bytes_of(source)), here.stream));
  driver().cuEventDestroy_v2(ready);
  synchronize_stream(here.device, here.stream);  // the source may be given to others of its own device afterwards
  if (target.get() != to.get()) copy_within(to, target);
}

void copy_from_host(const Tensor& to, const Tensor& from, bool non_blocking) {
  // The smaller dtype travels, and in the order of the target where that lies densely.
  Tensor source = from;
  if (from.dtype() != to.dtype() && size_of(to.dtype()) < size_of(from.dtype())) source = convert(from, to.dtype());
  const bool as_target =
      source.dtype() == to.dtype() && source.sizes() == to.sizes() && is_dense(to.sizes(), to.strides());
  if (as_target && !(source.strides() == to.strides())) {
    Tensor ordered = empty(TensorInfo{to.sizes(), to.strides(), to.dtype(), Device{}});
    copy_into(ordered, source);
    source = ordered;
  } else if (!as_target && !source.is_contiguous()) {
    source = cresset::contiguous(source);
  }
  Tensor target = as_target ? to : empty(source.sizes(), source.dtype(), to.device());
  const Place place(to.device());
  const bool pinned = source.storage()->pinned || is_registered(source.storage()->data);
  if (!pinned && !non_blocking)
    note_wait();  // the driver waits for the stream, then copies the bytes away before it returns
  CRESSET_DRIVER(cuMemcpyHtoDAsync_v2(address(target.bytes()), source.bytes(), static_cast<size_t>(bytes_of(source)),
                                      place.stream));
  if (pinned) {
    if (non_blocking)
      note_pinned_use(source.storage()->data, place.device, place.stream);
    else
      synchronize_stream(place.device, place.stream);
  }
  if (target.get() != to.get()) copy_within(to, target);
}

void copy_to_host(const Tensor& to, const Tensor& from, bool non_blocking) {
  Tensor source = from;
  if (from.dtype() != to.dtype() && size_of(to.dtype()) < size_of(from.dtype())) source = convert(from, to.dtype());
  const bool as_source = source.dtype() == to.dtype() && lie_alike(to, source);
  if (!as_source && !source.is_contiguous()) source = contiguous_on_device(source);
  const bool direct = as_source || (source.dtype() == to.dtype() && is_alike(to, source.sizes()));
  Tensor target = direct ? to : empty(source.sizes(), source.dtype(), Device{});
  const Place place(source.device());
  CRESSET_DRIVER(cuMemcpyDtoHAsync_v2(target.bytes(), address(source.bytes()), static_cast<size_t>(bytes_of(source)),
                                      place.stream));
  if (direct && non_blocking && (to.storage()->pinned || is_registered(to.storage()->data))) {
    note_pinned_use(to.storage()->data, place.device, place.stream);
    return;
  }
  synchronize_stream(place.device, place.stream);
  if (!direct) copy_into(to, target);
}

class CudaBackend final : public Backend {
 public:
  CudaBackend() : Backend(DeviceType::cuda) {}

  int dlpack_type() const override { return 2; }
  std::unique_ptr<Generator> make_generator(int index) override { return std::make_unique<Philox>(device_at(index)); }
  int resolve(int index) override {
    if (index < 0) return cuda::current_device();
    check_device(index);
    return index;
  }
  Memory allocate(int64_t bytes, int device) override { return cuda::allocate(device, bytes); }
  void free(Memory memory, int64_t, int device) override { cuda::free(device, memory.block); }

  void copy(const Tensor& to, const Tensor& from, bool non_blocking) override {
    expanded_strides("copy_", from, to.sizes());  // raises when the shapes do not fit
    if (from.numel() == 0) return;
    if (to.device() == from.device()) return copy_within(to, from);
    if (to.device().is_cpu()) return copy_to_host(to, from, non_blocking);
    if (from.device().is_cpu()) return copy_from_host(to, from, non_blocking);
    copy_between(to, from);
  }
  void copy_bytes(char* to, const char* from, int64_t bytes, int device) override {
    copy_memory(to, from, bytes, device);
  }
  void transpose_matrices(void* to, const void* from, int64_t count, int64_t rows, int64_t columns, int64_t width,
                          int device) override {
    static constexpr Dtype by_width[] = {Dtype::u8, Dtype::u8, Dtype::i16, Dtype::u8, Dtype::i32,
                                         Dtype::u8, Dtype::u8, Dtype::u8,  Dtype::i64};
    const Dtype d = width == 16 ? Dtype::c128 : by_width[width];
    const Dims sizes{count, columns, rows}, to_strides{rows * columns, rows, 1},
        from_strides{rows * columns, 1, columns};
    copy_strided({static_cast<char*>(to), d, d, to_strides},
                 {static_cast<char*>(const_cast<void*>(from)), d, d, from_strides}, sizes, device_at(device));
  }

  void fill(const Tensor& t, const Scalar& value) override {
    alignas(16) char element[16] = {};
    Tensor one = full({}, value, t.dtype());
    const auto width = static_cast<size_t>(size_of(t.dtype()));
    std::memcpy(element, one.bytes(), width);
    if (t.is_contiguous() || is_dense(t.sizes(), t.strides())) {
      uint32_t number = 0;
      std::memcpy(&number, element, sizeof number);
      const bool zero = std::all_of(element, element + width, [](char c) { return c == 0; });
      // Of what no cache holds, a kernel of ours writes more in a second.
      constexpr int64_t kMuch = int64_t{16} << 20;
      const bool much = t.numel() * size_of(t.dtype()) >= kMuch;
      if (!much && (zero || width <= 4)) return set_memory(t, zero ? 1 : width, number);
    }
    launch_fill({t.bytes(), t.dtype(), t.dtype(), t.strides()}, element, t.sizes(), t.device());
  }

  void settle() override { finish_launches(); }

  bool can_pin() override { return device_count() > 0; }
  RefPtr<Storage> allocate_pinned(int64_t bytes) override { return pinned_storage(bytes); }
  bool is_pinned(const void* p) override { return is_registered(p); }

  void run(const PointwiseLaunch& work) override { launch_formula(work); }
  void run(const DenseLaunch& work) override { launch_dense_formula(work); }
  void run(const UpdateLaunch& work) override { run_updates(work); }
  Tensor places_of_mask(const Tensor& mask, DimsView strides) override { return places_of_device_mask(mask, strides); }
  Tensor join_indices(const char* who, std::span<const IndexItem> items, DimsView shape) override {
    return offsets_of_lists(who, items, shape);
  }

  Scalar item(const Tensor& t) override {
    static thread_local void* buffer = cuda::allocate_pinned(16);
    const Place place(t.device());
    CRESSET_DRIVER(
        cuMemcpyDtoHAsync_v2(buffer, address(t.bytes()), static_cast<size_t>(size_of(t.dtype())), place.stream));
    synchronize_stream(place.device, place.stream);
    Tensor one = empty({}, t.dtype());
    std::memcpy(one.bytes(), buffer, static_cast<size_t>(size_of(t.dtype())));
    return cresset::item(one);
  }
};

[[maybe_unused]] const Backend& backend = *new CudaBackend;

}  // namespace

Tensor contiguous_on_device(const Tensor& t) {
  if (t.is_contiguous()) return t;
  Tensor out = empty(t.sizes(), t.dtype(), t.device());
  copy_within(out, t);
  return out;
}

}  // namespace cresset::cuda
