// A group of late values is one kernel: see Note [Groups as kernels]. It is compiled in the background; until it is
// there, the group runs as eager's kernels, one after the other. So nobody waits, and the bits are the same.
#include "cuda/fused.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "cuda/background.h"
#include "cuda/group_text.h"
#include "cuda/launch.h"
#include "cuda/pointwise.h"
#include "cuda/transpose.h"

namespace cresset::cuda {
namespace {

constexpr int kBlockSize = 256;

// A kernel on its way.
struct Fused {
  enum State : int { asked, compiled, loaded, failed };
  std::atomic<State> state = asked;
  std::string text, binary, problem;
  const char* entry = nullptr;
  FunctionHandle function = nullptr;
};
struct Kernels {
  std::mutex lock;
  std::unordered_map<std::string, std::unique_ptr<Fused>> all;  // by device and signature
  FusedStatistics statistics;
};
Kernels& kernels() {
  static auto* the = new Kernels;
  return *the;
}

void compile_for(Fused& f, int device) noexcept {
  try {
    f.binary = kernel_binary(device, f.text, f.entry);
    f.state.store(Fused::compiled, std::memory_order_release);
  } catch (const std::exception& e) {
    f.problem = e.what();
    f.state.store(Fused::failed, std::memory_order_release);
  }
}

void give_up(Fused& f) {
  ++kernels().statistics.failed;
  f.text.clear();
  if (warn && !f.problem.empty())
    warn(join("compile: a kernel for a group of operators could not be made; they run one by one, as in eager. ",
              std::exchange(f.problem, {})));
}

// The kernel; null: it is not there yet.
FunctionHandle find(const std::string& key, const Place& place, const char* entry, const auto& print) {
  Kernels& all = kernels();
  const std::lock_guard guard(all.lock);
  std::unique_ptr<Fused>& f = all.all[key];
  if (!f) {
    f = std::make_unique<Fused>();
    f->text = print();
    f->entry = entry;
    ++all.statistics.asked;
    properties(place.device);  // known before another thread asks
    if (!in_background([&fused = *f, device = place.device] { compile_for(fused, device); })) f->state = Fused::failed;
    return nullptr;
  }
  const Fused::State state = f->state.load(std::memory_order_acquire);
  if (state == Fused::loaded) [[likely]]
    return f->function;
  if (state == Fused::failed && !f->text.empty()) give_up(*f);
  if (state != Fused::compiled || is_capturing(place.stream)) return nullptr;
  try {
    try {
      f->function = load_binary(place.device, f->binary, f->entry).function;
    } catch (const Error&) {  // what lay on disk is no kernel
      f->function = load_kernel(place.device, f->text, f->entry).function;
    }
    f->state = Fused::loaded;
  } catch (const std::exception& e) {
    f->problem = e.what();
    f->state = Fused::failed;
    give_up(*f);
    return nullptr;
  }
  f->binary.clear();
  f->text.clear();
  return f->function;
}

// ---------------------------------------------------------------- one by one

// Memory of a value that nobody but the group sees.
class Scratch {
 public:
  Scratch(int64_t bytes, Device device) : memory_(allocate_memory(bytes, device)), bytes_(bytes), device_(device) {}
  ~Scratch() { free_memory(memory_, bytes_, device_); }
  Scratch(const Scratch&) = delete;
  char* data() const { return memory_.data; }

 private:
  Memory memory_;
  int64_t bytes_;
  Device device_;
};

void run_one(LateValue& v, char* memory, std::span<char* const> inputs, Device device) {
  const Dims linear = contiguous_strides(v.sizes);
  Operand operands[kMaxOperands];
  operands[0] = {memory, v.dtype, v.made, linear};
  uint32_t on_host = 0;
  for (int i = 0; i < v.count; ++i) {
    LateValue::Input& in = v.inputs[i];
    if (in.kind == LateValue::Input::number) {
      operands[1 + i] = {in.bytes, in.wanted, in.wanted, Dims(v.sizes.size(), 0)};
      on_host |= 2u << i;
    } else {
      operands[1 + i] = {inputs[static_cast<size_t>(i)], in.dtype, in.wanted, in.linear ? linear : in.strides};
    }
  }
  if (!v.loop) return copy_strided(operands[0], operands[1], v.sizes, device);
  launch_formula(
      PointwiseLaunch{*v.op, v.which, v.compute, v.sizes, operands, 1 + v.count, on_host, v.attributes, device});
}

void run_one_by_one(std::span<const TileResult> results, Device device) {
  std::vector<std::unique_ptr<Scratch>> scratch(results.size());
  std::vector<size_t> last(results.size(), 0);
  const auto place_of = [&](const LateValue* v) {
    size_t k = 0;
    while (results[k].value != v) ++k;
    return k;
  };
  const auto in_group = [](const LateValue::Input& in) {
    return in.kind == LateValue::Input::value && in.from->state != LateValue::done;
  };
  for (size_t k = 0; k < results.size(); ++k)
    for (int i = 0; i < results[k].value->count; ++i)
      if (const auto& in = results[k].value->inputs[i]; in_group(in)) last[place_of(in.from.get())] = k;
  for (size_t k = 0; k < results.size(); ++k) {
    LateValue& v = *results[k].value;
    char* inputs[kMaxOperands] = {};
    for (int i = 0; i < v.count; ++i) {
      const LateValue::Input& in = v.inputs[i];
      if (!in_group(in)) {
        inputs[i] = memory_of(in);
        continue;
      }
      const size_t from = place_of(in.from.get());
      inputs[i] = results[from].memory ? results[from].memory : scratch[from]->data();
    }
    if (!results[k].memory) scratch[k] = std::make_unique<Scratch>(v.numel * size_of(v.dtype), device);
    run_one(v, results[k].memory ? results[k].memory : scratch[k]->data(), inputs, device);
    for (size_t from = 0; from <= k; ++from)
      if (last[from] <= k) scratch[from].reset();
  }
}

// ---------------------------------------------------------------- together

std::string print_kernel(const GroupText& text, std::span<const TileResult> results) {
  std::vector<int> kept;
  for (size_t k = 0; k < results.size(); ++k)
    if (results[k].memory) kept.push_back(static_cast<int>(k));
  return join(text.beginning(), "extern \"C\" __global__ void __launch_bounds__(", kBlockSize,
              ") fused(const Plan plan) {\n  const int64_t i = (static_cast<int64_t>(blockIdx.x) * ", kBlockSize,
              " + threadIdx.x) * kVector;\n  if (i >= plan.count) return;\n", text.statements(kept, {}), "}\n");
}

void run_group(std::span<const TileResult> results, Device device) {
  if (results.size() > 1) {
    const Place place(device);
    const GroupText text(results);
    if (text.fits()) {
      const std::string key = join(device.index, ":") + text.signature();
      if (const FunctionHandle kernel = find(key, place, "fused", [&] { return print_kernel(text, results); })) {
        ++kernels().statistics.launched;
        return launch_bytes(kernel, place, divide_up(results[0].value->numel, int64_t{kBlockSize} * text.vector()),
                            kBlockSize, text.parameters());
      }
    }
    ++kernels().statistics.unfused;
  }
  run_one_by_one(results, device);
}

[[maybe_unused]] const bool installed = (group_runners[static_cast<int>(DeviceType::cuda)] = run_group, true);

}  // namespace

FusedStatistics fused_statistics() {
  const std::lock_guard guard(kernels().lock);
  return kernels().statistics;
}
void finish_fused_kernels() { finish_background(); }

}  // namespace cresset::cuda
