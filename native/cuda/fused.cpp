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
  Kernel* kernel = nullptr;
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
Kernel* find(const std::string& key, const Place& place, const char* entry, const auto& print) {
  Kernels& all = kernels();
  const std::lock_guard guard(all.lock);
  std::unique_ptr<Fused>& f = all.all[key];
  if (!f) {
    f = std::make_unique<Fused>();
    f->text = print();
    f->entry = entry;
    ++all.statistics.asked;
    properties(place.device);  // known before another thread asks
    if (!in_background([&fused = *f, device = place.device] { compile_for(fused, device); }, Urgency::whenever))
      f->state = Fused::failed;
    return nullptr;
  }
  const Fused::State state = f->state.load(std::memory_order_acquire);
  if (state == Fused::loaded) [[likely]]
    return f->kernel;
  if (state == Fused::failed && !f->text.empty()) give_up(*f);
  if (state != Fused::compiled || is_capturing(place.stream)) return nullptr;
  try {
    try {
      f->kernel = &load_binary(place.device, f->binary, f->entry);
    } catch (const Error&) {  // what lay on disk is no kernel
      f->kernel = &load_kernel(place.device, f->text, f->entry);
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
  return f->kernel;
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
  if (!v.loop && !v.rows) return copy_strided(operands[0], operands[1], v.sizes, device);
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
    char* const memory = results[k].memory ? results[k].memory : scratch[k]->data();
    if (v.rows)
      v.rows->run(memory, inputs, results[k].sides);
    else
      run_one(v, memory, inputs, device);
    for (size_t from = 0; from <= k; ++from)
      if (last[from] <= k) scratch[from].reset();
  }
}

// ---------------------------------------------------------------- together

std::string print_kernel(const GroupText& text, std::span<const TileResult> results) {
  std::vector<int> kept;
  for (size_t k = 0; k < results.size(); ++k)
    if (results[k].memory) kept.push_back(static_cast<int>(k));
  return join(
      text.beginning(), "extern \"C\" __global__ void __launch_bounds__(", kBlockSize,
      ") fused(const Plan plan) {\n  after_earlier_work();\n  const int64_t i = (static_cast<int64_t>(blockIdx.x) * ",
      kBlockSize, " + threadIdx.x) * kVector;\n  if (i >= plan.count) return;\n", text.statements(kept, {}), "}\n");
}

// The file of an operator on rows, with what it reads and writes as functions before it. What is kept is stored where
// it is computed first.
std::string print_rows(const GroupText& text, std::span<const TileResult> results, int row, const FusedRows::Form& form,
                       bool writes) {
  std::string functions;
  std::vector<bool> stored(results.size(), false);
  const LateValue& v = *results[static_cast<size_t>(row)].value;
  for (int i = 0; i < v.count; ++i) {
    const std::vector<int> behind = text.behind_argument(row, i);
    std::vector<int> kept;
    for (const int k : behind)
      if (results[static_cast<size_t>(k)].memory && !stored[static_cast<size_t>(k)]) {
        kept.push_back(k);
        stored[static_cast<size_t>(k)] = true;
      }
    const std::string type = join("Vector<dtype_", tag_of(v.inputs[i].dtype), ", kVector>");
    functions += join("CRESSET_INLINE ", type, " row_input_", i, "(const Plan& plan, int64_t i) {\n", type, " out;\n",
                      text.argument_statements(row, i, kept), "  return out;\n}\n");
  }
  if (writes) {
    std::vector<int> kept;
    for (size_t k = 0; k < results.size(); ++k)
      if (results[k].memory && !stored[k]) kept.push_back(static_cast<int>(k));
    functions +=
        join("CRESSET_INLINE void row_output(const Plan& plan, int64_t i, const Vector<dtype_", tag_of(v.dtype),
             ", kVector>& made) {\n", text.statements(kept, {{row, "made.values[k]"}}), "}\n");
  }
  return join(text.beginning(), functions, "#define FUSED\n", form.macros, "#include \"", form.file, "\"\n");
}

std::string key_of(const GroupText& text, const FusedRows::Form& form, const Place& place) {
  return join(place.device, ":", form.entry, ":", form.macros, ":") + text.signature();
}

// A group with one operator on rows. False: its kernel is not there yet, or cannot be.
bool run_rows(std::span<const TileResult> results, int row, const Place& place) {
  const auto& work = static_cast<const FusedRows&>(*results[static_cast<size_t>(row)].value->rows);
  const FusedRows::Form form = work.form();
  const std::vector<uint64_t> words = work.words(results[static_cast<size_t>(row)].sides);
  const GroupText text(results, form.n, form.vector, words);
  if (!text.fits()) return false;
  Kernel* const kernel =
      find(key_of(text, form, place), place, form.entry, [&] { return print_rows(text, results, row, form, true); });
  if (kernel) launch_bytes(*kernel, place, form.blocks, form.block, text.parameters());
  return kernel != nullptr;
}

bool run_elements(std::span<const TileResult> results, const Place& place) {
  const GroupText text(results);
  if (!text.fits()) return false;
  Kernel* const kernel =
      find(join(place.device, ":") + text.signature(), place, "fused", [&] { return print_kernel(text, results); });
  if (kernel)
    launch_bytes(*kernel, place, divide_up(results[0].value->numel, int64_t{kBlockSize} * text.vector()), kBlockSize,
                 text.parameters());
  return kernel != nullptr;
}

void run_group(std::span<const TileResult> results, Device device) {
  if (results.size() > 1) {
    const Place place(device);
    int rows = 0, row = -1;
    for (size_t k = 0; k < results.size(); ++k)
      if (results[k].value->rows) ++rows, row = static_cast<int>(k);
    const bool done = rows == 0 ? run_elements(results, place) : rows == 1 && run_rows(results, row, place);
    ++(done ? kernels().statistics.launched : kernels().statistics.unfused);
    if (done) return;
  }
  run_one_by_one(results, device);
}

// What waits behind a value, and the value itself.
void collect(LateValue& v, std::vector<TileResult>& group) {
  if (v.state == LateValue::done) return;
  for (const TileResult& r : group)
    if (r.value == &v) return;
  for (int i = 0; i < v.count; ++i)
    if (v.inputs[i].from) collect(*v.inputs[i].from, group);
  group.push_back({&v, nullptr});
}

[[maybe_unused]] const bool installed = (group_runners[static_cast<int>(DeviceType::cuda)] = run_group, true);

}  // namespace

bool launch_inputs(LateValue& value, const FusedRows::Form& form, std::span<const uint64_t> words, const Place& place,
                   Grid grid, Grid block) {
  std::vector<TileResult> group;
  collect(value, group);
  if (group.size() > 4) return false;  // what it reads is cheaper to keep than to compute again
  const auto row = static_cast<int>(group.size()) - 1;
  const GroupText text(group, form.n, form.vector, words);
  if (!text.fits()) return false;
  Kernel* const kernel =
      find(key_of(text, form, place), place, form.entry, [&] { return print_rows(text, group, row, form, false); });
  if (kernel) launch_bytes(*kernel, place, grid, block, text.parameters());
  return kernel != nullptr;
}

FusedStatistics fused_statistics() {
  const std::lock_guard guard(kernels().lock);
  return kernels().statistics;
}
void finish_fused_kernels() { finish_background(); }

}  // namespace cresset::cuda
