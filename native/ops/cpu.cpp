// The CPU as a Backend.
#include <cstring>

#include "dispatch/pointwise_call.h"
#include "ops/indexed_walk.h"
#include "ops/update.h"
#include "tensor/allocator.h"
#include "tensor/backend.h"
#include "tensor/on_cpu.h"

namespace cresset {
namespace {

class Cpu final : public Backend {
 public:
  Cpu() : Backend(DeviceType::cpu) {}

  int resolve(int index) override { return index; }
  int dlpack_type() const override { return 1; }
  std::unique_ptr<Generator> make_generator(int) override { return std::make_unique<Twister>(); }

  Memory allocate(int64_t bytes, int) override {
    return {static_cast<char*>(allocate_host(static_cast<size_t>(bytes))), nullptr};
  }
  void free(Memory memory, int64_t bytes, int) override { free_host(memory.data, static_cast<size_t>(bytes)); }
  void copy(const Tensor& to, const Tensor& from, bool) override { copy_on_cpu(to, from); }
  void copy_bytes(char* to, const char* from, int64_t bytes, int) override {
    std::memcpy(to, from, static_cast<size_t>(bytes));
  }
  void transpose_matrices(void* to, const void* from, int64_t count, int64_t rows, int64_t columns, int64_t width,
                          int) override {
    transpose_on_cpu(to, from, count, rows, columns, width);
  }
  void fill(const Tensor& t, const Scalar& value) override { fill_on_cpu(t, value); }
  Scalar item(const Tensor& t) override { return item_on_cpu(t); }

  bool finds_zero_divisors() const override { return true; }
  void run(const PointwiseLaunch& work) override { run_walk_on_cpu(work); }
  void run(const DenseLaunch& work) override { run_dense_on_cpu(work); }
  void run(const UpdateLaunch& work) override {
    for (UpdateGroup& group : work.groups) run_update(group);
  }
  Tensor places_of_mask(const Tensor& mask, DimsView strides) override { return places_of_mask_on_cpu(mask, strides); }
  Tensor join_indices(const char* who, std::span<const IndexItem> items, DimsView shape) override {
    return join_indices_on_cpu(who, items, shape);
  }
};

[[maybe_unused]] const Backend& cpu = *new Cpu;

}  // namespace
}  // namespace cresset
