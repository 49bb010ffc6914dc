// A device for tests: one folder, which the build takes in by -DCRESSET_DEVICES=tests/tensor/fake_device. Its memory is
// ordinary memory under addresses that do not exist, so that nobody reads it who did not ask the device. It goes by the
// name privateuseone.
#include "fake_device.h"

#include <cstdlib>
#include <cstring>

#include "dispatch/pointwise_call.h"
#include "ops/indexed_walk.h"
#include "ops/update.h"
#include "tensor/on_cpu.h"

namespace cresset::fake {

Tensor seen(const Tensor& t) {
  if (!t.defined() || t.device().is_cpu()) return t;
  Tensor out = empty(Dims{0}, t.dtype());
  out->storage = Storage::borrow(here(t.storage()->plain()), t.storage()->bytes, Device{}, [] {});
  out->sizes = t.sizes();
  out->strides = t.strides();
  out->offset = t.offset();
  out->wrapped_number = t->wrapped_number;
  out->update_numel_and_contiguity();
  return out;
}

Tensor sent(const Tensor& t) {
  const Tensor out = empty(t.sizes(), t.dtype(), kDevice);
  copy_into(out, t);
  return out;
}

namespace {

class Fake final : public Backend {
 public:
  Fake() : Backend(kDevice.type) {}

  int resolve(int index) override {
    check(index <= 0, "privateuseone: there is one device, not number ", index);
    return 0;
  }
  int dlpack_type() const override { return 12; }
  std::unique_ptr<Generator> make_generator(int) override { return std::make_unique<Philox>(kDevice); }

  Memory allocate(int64_t bytes, int) override {
    return {away(static_cast<char*>(std::malloc(static_cast<size_t>(bytes)))), nullptr};
  }
  void free(Memory memory, int64_t, int) override { std::free(here(memory.data)); }
  void copy(const Tensor& to, const Tensor& from, bool) override { copy_on_cpu(seen(to), seen(from)); }
  void copy_bytes(char* to, const char* from, int64_t bytes, int) override {
    std::memcpy(here(to), here(const_cast<char*>(from)), static_cast<size_t>(bytes));
  }
  void transpose_matrices(void* to, const void* from, int64_t count, int64_t rows, int64_t columns, int64_t width,
                          int) override {
    transpose_on_cpu(here(static_cast<char*>(to)), here(static_cast<char*>(const_cast<void*>(from))), count, rows,
                     columns, width);
  }
  void fill(const Tensor& t, const Scalar& value) override { fill_on_cpu(seen(t), value); }
  Scalar item(const Tensor& t) override { return item_on_cpu(seen(t)); }

  void run(const PointwiseLaunch& work) override {
    for (int i = 0; i < work.count; ++i)
      if (!(work.on_host >> i & 1)) work.operands[i].data = here(work.operands[i].data);
    run_walk_on_cpu(work);
  }

  // The walk over one dimension.
  void run(const DenseLaunch& work) override {
    const PointwiseDefinition& def = *work.op.pointwise;
    const Dtype computed = dtype_of_compute(work.compute), given = loop_output(def.promotion, work.compute);
    Operand operands[kMaxOperands];
    for (int i = 0; i < work.count; ++i) {
      const bool number = work.on_host >> i & 1;
      Dtype wanted = i == 0 ? given : computed;
      if (work.which >= 0) wanted = i == 1 ? given : i > 1 && work.dtypes[i] == Dtype::b8 ? Dtype::b8 : computed;
      operands[i] = {const_cast<char*>(work.data[i]), work.dtypes[i], wanted, Dims{number ? 0 : 1}};
    }
    run(PointwiseLaunch{work.op, work.which, work.compute, Dims{work.elements}, operands, work.count, work.on_host,
                        work.attributes, work.device});
  }

  void run(const UpdateLaunch& work) override {
    for (UpdateGroup& group : work.groups) {
      for (UpdateTarget& t : group.targets) {
        for (Tensor& packed : t.packed) packed = seen(packed);
        for (Tensor& single : t.singles) single = seen(single);
      }
      run_update(group);
    }
  }

  Tensor places_of_mask(const Tensor& mask, DimsView strides) override {
    return sent(places_of_mask_on_cpu(seen(mask), strides));
  }
  Tensor join_indices(const char* who, std::span<const IndexItem> items, DimsView shape) override {
    SmallVector<IndexItem, 3> here;
    for (const IndexItem& item : items) here.push_back({seen(item.index), item.rule});
    return sent(join_indices_on_cpu(who, {here.data(), items.size()}, shape));
  }
};

[[maybe_unused]] const Backend& backend = *new Fake;

}  // namespace
}  // namespace cresset::fake
