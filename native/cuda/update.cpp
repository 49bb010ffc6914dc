// The steps of optimizers on the device: all parameters of all groups in one launch, or a few when there are many
// hundred of them.
#include <algorithm>
#include <array>

#include "cuda/backend.h"
#include "cuda/many.h"
#include "cuda/printed.h"

namespace cresset::cuda {

namespace {

// Parameters that one kernel can do: of one device and variant, with the same dtypes.
struct Kin {
  const UpdateVariant* variant;
  Device device;
  bool in_double, singles_on_device;
  Dtype single;
  Dtype dtypes[kMaxUpdateTensors];
  bool unscales;

  bool operator==(const Kin& o) const {
    return variant == o.variant && device == o.device && in_double == o.in_double &&
           singles_on_device == o.singles_on_device && single == o.single && unscales == o.unscales &&
           std::equal(dtypes, dtypes + variant->tensor_count, o.dtypes);
  }
};
struct Family {
  Kin kin;
  std::vector<ManyTarget> targets;
};

Kin kin_of(const char* who, const UpdateVariant& v, const UpdateTarget& t, bool unscales) {
  Kin kin{&v,
          t.tensors[0].device(),
          t.in_double,
          t.singles_on_device,
          t.singles_on_device ? t.singles[0].dtype() : Dtype::f32,
          {},
          unscales};
  std::copy(t.dtype, t.dtype + v.tensor_count, kin.dtypes);
  for (int k = 1; k < v.single_count && t.singles_on_device; ++k)
    check(t.singles[k].dtype() == kin.single, who, ": ", v.singles[k], " has dtype ", name_of(t.singles[k].dtype()),
          ", but ", v.singles[0], " has dtype ", name_of(kin.single));
  return kin;
}

std::string text_of(const void* context) {
  const Kin& kin = *static_cast<const Kin*>(context);
  const UpdateVariant& v = *kin.variant;
  std::string each, arguments;
  for (int k = 0; k < v.tensor_count; ++k) {
    each += join(" X(", k, ", dtype_", tag_of(kin.dtypes[k]), ", true, ",
                 v.written[k] || (k == 1 && kin.unscales) ? "true" : "false", ")");
    arguments += join(", x", k);
  }
  return join(update_text(v.name, v.flags, kin.in_double ? "f64" : "f32"), "#define EACH_TENSOR(X)", each,
              "\n#define UPDATE update(constants", arguments, ")\n");
}

void launch_family(const Family& family, const Tensor& scale, const Tensor& found) {
  const Kin& kin = family.kin;
  const UpdateVariant& v = *kin.variant;
  ManyProgram program;
  program.lists = v.tensor_count;
  program.numbers = std::max(v.number_count + v.single_count, 1);
  program.singles = kin.singles_on_device ? v.single_count : 0;
  program.text = text_of;
  program.context = &kin;
  int64_t widest = 1;
  program.key = join(v.name, '.', v.flags, kin.in_double ? "f64" : "f32", '.', program.singles,
                     static_cast<int>(kin.single), kin.unscales, found.defined());
  for (int k = 0; k < v.tensor_count; ++k) {
    widest = std::max(widest, size_of(kin.dtypes[k]));
    program.key += static_cast<char>('A' + static_cast<int>(kin.dtypes[k]));
  }
  program.vector = static_cast<int>(16 / widest);
  program.options = {kin.in_double ? "-DCOMPUTE=double" : "-DCOMPUTE=float"};
  if (program.singles) program.options.push_back(join("-DSINGLE=dtype_", tag_of(kin.single)));
  if (kin.unscales) program.options.push_back("-DUNSCALES"), program.scale = scale.bytes();
  if (found.defined()) program.options.push_back("-DSKIPS"), program.found = found.bytes();
  launch_many(program, Place(kin.device), family.targets, "many", program.singles ? "advance_singles" : nullptr);
}

// A graph would take the step with the same count at every replay.
void check_not_capturing(const char* who, Device device) {
  const Place place(device);
  check(!is_capturing(place.stream), who, ": Attempting CUDA graph capture of step() for an instance of ", who,
        " but param_groups' capturable is False; make it with capturable=True");
}

}  // namespace

void run_updates(const UpdateLaunch& work) {
  const auto& [who, groups, scale, found] = work;
  std::vector<Family> families;
  std::vector<std::array<double, kMostRowNumbers>> rows;
  bool looked = false;
  size_t count = 0;
  for (const UpdateGroup& g : groups) count += g.targets.size();
  rows.reserve(count);
  for (UpdateGroup& g : groups) {
    const UpdateVariant& v = *g.variant;
    for (UpdateTarget& t : g.targets) {
      check(!found.defined() || t.singles_on_device || v.single_count == 0, who,
            ": a step that may be skipped on the device needs its step count there too; use fused=True from the start");
      if (!t.singles_on_device && v.single_count && !looked) {
        looked = true;
        check_not_capturing(who, t.tensors[0].device());
      }
      const Kin kin = kin_of(who, v, t, scale.defined());
      auto family = std::find_if(families.rbegin(), families.rend(), [&](const Family& f) { return f.kin == kin; });
      if (family == families.rend()) {
        families.push_back({kin, {}});
        family = families.rbegin();
      }
      auto& row = rows.emplace_back();
      std::copy(g.numbers, g.numbers + v.number_count, row.begin());
      for (int k = 0; k < v.single_count; ++k)
        row[static_cast<size_t>(v.number_count + k)] = t.singles_on_device ? 0 : read_single(t.singles[k]);
      ManyTarget& made = family->targets.emplace_back();
      for (int k = 0; k < v.tensor_count; ++k) made.tensors[k] = t.packed[k].bytes();
      for (int k = 0; k < v.single_count && t.singles_on_device; ++k) made.singles[k] = t.singles[k].bytes();
      made.count = t.count;
      made.numbers = row.data();
    }
  }
  for (const Family& family : families) launch_family(family, scale, found);
  for (UpdateGroup& g : groups) {
    finish_update(g);
    for (UpdateTarget& t : g.targets) {
      for (int k = 0; k < g.variant->single_count && t.singles_on_device; ++k) ++t.singles[k]->storage->version;
      if (scale.defined() && t.packed[1].get() != t.tensors[1].get()) copy_into(t.tensors[1], t.packed[1]);
    }
  }
}

}  // namespace cresset::cuda
