// Taking up a call that is computed late; how groups are run is in late_run.cpp.
#include "dispatch/late.h"

#include <algorithm>

#include "dispatch/pointwise_call.h"
#include "tensor/convert.h"
#include "tensor/private_layout.h"

namespace cresset {
namespace {

using Input = LateValue::Input;

LateValue* late_value_of(const TensorImpl& t, RefPtr<Pending>& holder) {
  holder = pending_of(*t.storage);
  if (dynamic_cast<SideValue*>(holder.get())) {
    holder->settle();
    holder.reset();
  }
  return static_cast<LateValue*>(holder.get());
}

// The order of a dense result's dimensions in memory.
Dims order_in_memory(DimsView sizes, DimsView strides) {
  Dims order;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] != 1) order.push_back(static_cast<int64_t>(d));
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return strides[static_cast<size_t>(a)] > strides[static_cast<size_t>(b)];
  });
  return order;
}

Dims permuted(DimsView all, const Dims& order) {
  Dims out;
  for (const int64_t d : order) out.push_back(all[static_cast<size_t>(d)]);
  return out;
}

// Every element is the same one, which can be read now.
bool is_repeated(const Tensor& t, DimsView strides) {
  if (!t.device().is_cpu()) return false;
  return t.numel() == 1 || std::all_of(strides.begin(), strides.end(), [](int64_t s) { return s == 0; });
}

// Memory that only calls of operators write to: what others may write at any time has to be read now.
bool is_ours(const Storage& s) { return s.is_resizable() && !s.shared && !s.layout.load(std::memory_order_acquire); }

// Builds the value of one call, input by input; false where the call has to run now.
class Builder {
 public:
  Builder(const Operator& op, int which, const TensorInfo& result) : value_(new LateValue), result_(result) {
    value_->op = &op;
    value_->which = which;
    value_->device = result.device;
    order_ = order_in_memory(result.sizes, result.strides.empty() ? contiguous_strides(result.sizes) : result.strides);
    value_->sizes = permuted(result.sizes, order_);
    value_->numel = 1;
    for (const int64_t s : value_->sizes) value_->numel *= s;
  }
  LateValue& value() { return *value_; }

  void add_number(const Scalar& number, Dtype wanted, Compute compute) {
    Input& in = next(wanted);
    in.dtype = wanted;
    store_number(number, compute, in.bytes);
  }

  bool add_tensor(const Tensor& t, Dtype wanted, DimsView strides) {
    if (t->level || is_complex(t.dtype())) return false;
    if (is_repeated(t, strides) && !pending_of(*t.storage())) {
      Input& in = next(wanted);
      in.dtype = wanted;
      converter(t.dtype(), wanted)(t.bytes(), in.bytes, 1);
      return true;
    }
    if (!(t.device() == value_->device)) return false;
    RefPtr<Pending> holder;
    LateValue* from = late_value_of(*t, holder);
    if (is_image(t, from)) return add_image(t, from, wanted);
    if (value_->images) return false;
    const Dims own = permuted(strides, order_);
    const bool linear = is_contiguous(value_->sizes, own);
    if (from && (!linear || t.offset() != 0 || t.dtype() != from->dtype || from->numel != value_->numel ||
                 from->images || from->state != LateValue::waiting)) {
      from->settle();
      from = nullptr;
    }
    if (!from && !is_ours(*t.storage())) return false;
    plain_ = true;
    Input& in = next(wanted);
    in.dtype = t.dtype();
    in.linear = linear;
    if (from) {
      in.kind = Input::value;
      in.from = RefPtr<LateValue>(from);
    } else {
      in.kind = Input::memory;
      in.storage = t.storage();
      in.offset = t.offset();
      if (!linear) in.strides = own;
    }
    return true;
  }

  // The result lies as images in private layout do.
  void lie_as_images() {
    LateValue& v = *value_;
    v.images = result_.sizes[0];
    v.channels = result_.sizes[1];
    v.points = v.numel / std::max<int64_t>(v.images * v.channels, 1);
    v.sizes = {v.numel};
  }

  // The tensor of the result.
  Tensor finish() {
    LateValue& v = *value_;
    v.dtype = result_.dtype;
    const int waiting = enlist(v);
    RefPtr<Storage> storage(new Storage);
    storage->bytes = v.numel * size_of(v.dtype);
    storage->device = v.device;
    make_pending(*storage, value_);
    Tensor out(RefPtr<TensorImpl>(new TensorImpl));
    out->storage = std::move(storage);
    out->sizes = result_.sizes;
    out->strides = result_.strides.empty() || v.images ? contiguous_strides(result_.sizes) : result_.strides;
    out->dtype = result_.dtype;
    out->update_numel_and_contiguity();
    value_.reset();
    if (waiting >= kMostWaiting) settle_all("many values wait");
    return out;
  }

 private:
  RefPtr<LateValue> value_;
  const TensorInfo& result_;
  Dims order_;
  bool plain_ = false;  // an input lies in the plain order

  Input& next(Dtype wanted) {
    Input& in = value_->inputs[value_->count++];
    in.wanted = wanted;
    return in;
  }

  // Whether the tensor is all of a storage in private layout, or will be.
  static bool is_image(const Tensor& t, const LateValue* from) {
    if (!from) return is_private(*t);
    return from->images && t.is_contiguous() && t.offset() == 0 && t.dim() >= 3 && t.size(0) == from->images &&
           t.size(1) == from->channels && t.numel() == from->numel && t.dtype() == from->dtype;
  }

  // Images in private layout go together in the order in which they lie.
  bool add_image(const Tensor& t, LateValue* from, Dtype wanted) {
    if (plain_ || !(t.sizes() == result_.sizes)) return false;
    if (from && from->state != LateValue::waiting) {
      from->settle();
      from = nullptr;
    }
    Tensor lying;
    if (!from) {
      lying = physical(t);
      if (!lying.defined()) return false;
    }
    lie_as_images();
    Input& in = next(wanted);
    in.dtype = t.dtype();
    if (from) {
      in.kind = Input::value;
      in.from = RefPtr<LateValue>(from);
    } else {
      in.kind = Input::memory;
      in.storage = lying.storage();
    }
    return true;
  }
};

// Where eager would take the plain loop (pointwise_plain.cpp): the first tensor, which the result is like. Null: it
// would not.
const TensorImpl* plain_call(const Call& c, const PointwiseDefinition& def) {
  const TensorImpl* first = nullptr;
  int missing = 0;
  bool has_number = false;
  for (int i = 0; i < def.input_count + def.scalar_count; ++i) {
    const Value& v = c.args[i];
    has_number |= i < def.input_count && v.kind == Kind::scalar;
    if (i < def.input_count && def.inputs[i] == 'b') return nullptr;
    if (v.kind != Kind::tensor) {
      if (i < def.input_count && v.is_none() && ++missing == 2) return nullptr;
      if (v.kind == Kind::scalar &&
          (v.scalar_.kind == Scalar::Kind::complex || v.scalar_.kind == Scalar::Kind::boolean))
        return nullptr;
      continue;
    }
    const TensorImpl& t = *v.tensor_;
    if (!first) first = &t;
    if ((t.dtype != Dtype::f32 && t.dtype != Dtype::f64) || t.dtype != first->dtype || !t.contiguous ||
        t.wrapped_number || !(t.sizes == first->sizes))
      return nullptr;
  }
  if (!first || (has_number && counts_beside_numbers(*first, def))) return nullptr;
  return c.op.loops->forward[static_cast<int>(compute_of(first->dtype))] ? first : nullptr;
}

// Where late values are computed, and from how many elements on.
bool is_late_place(Device d, int64_t elements) {
  return d.is_cpu() ? elements >= late_elements
                    : group_runners[static_cast<int>(d.type)] && elements >= late_elements_on_device;
}
bool is_late_compute(Compute c) { return c == Compute::f32 || c == Compute::f64 || c == Compute::b8; }

// Integers are rounded to half precision before they are computed with; that is left to the general walk.
bool is_late_input(Dtype input, Dtype common) {
  return !is_complex(input) && !(is_integral(input) && (common == Dtype::f16 || common == Dtype::bf16));
}

}  // namespace

bool compute_late(Call& c) {
  const PointwiseDefinition& def = *c.op.pointwise;
  if (c.given_out || c.op.inplace) return false;
  int64_t most = 0;
  for (int i = 0; i < def.input_count; ++i)
    if (c.args[i].kind == Kind::tensor) most = std::max(most, c.args[i].tensor_->numel);
  if (most < std::min(late_elements, late_elements_on_device)) return false;
  Device device;
  for (int i = 0; i < def.input_count; ++i) {
    if (c.args[i].kind != Kind::tensor) continue;
    const TensorImpl& t = *c.args[i].tensor_;
    if (t.level || is_complex(t.dtype) || t.storage->was_cut()) return false;
    if (device.is_cpu()) device = t.storage->device;
  }
  if (!is_late_place(device, most)) return false;
  PointwisePlan plan;
  if (const TensorImpl* first = plain_call(c, def)) {
    plan.result = {first->sizes, contiguous_strides(first->sizes),
                   def.promotion == Promotion::to_bool ? Dtype::b8 : first->dtype, first->storage->device};
    plan.common = first->dtype;
    plan.compute = compute_of(first->dtype);
    for (int i = 0; i < def.input_count; ++i)
      if (c.args[i].kind == Kind::tensor) plan.strides[i] = plan.result.strides;
  } else {
    plan_pointwise(c, plan);
  }
  if (!is_late_compute(plan.compute) || !(plan.result.device == device)) return false;
  const Dtype loop_dtype = dtype_of_compute(plan.compute);
  Builder builder(c.op, -1, plan.result);
  LateValue& v = builder.value();
  if (v.numel == 0) return false;
  v.compute = plan.compute;
  v.loop = c.op.loops->forward[static_cast<int>(plan.compute)];
  v.made = loop_output(def.promotion, plan.compute);
  for (int i = 0; i < def.input_count; ++i) {
    const Value& given = c.args[i];
    const Dtype wanted = def.inputs[i] == 'b' ? Dtype::b8 : loop_dtype;
    const bool rounds = wanted == loop_dtype && is_rounded(def, i, plan.common);
    if (given.kind == Kind::tensor) {
      const Tensor t(given.tensor_);
      if (!is_late_input(t.dtype(), plan.common)) return false;
      if (rounds && t.dim() == 0 && t.dtype() != plan.common && !t.device().is_cpu()) return false;
      if (rounds && t.dim() == 0 && t.dtype() != plan.common)
        builder.add_number(rounded(item(t), plan.common), wanted, compute_of(wanted));
      else if (!builder.add_tensor(t, wanted, plan.strides[i]))
        return false;
    } else {
      Scalar number = given.is_none() ? missing_bound(def.inputs[i]) : given.scalar_;
      if (rounds) number = rounded(number, plan.common);
      builder.add_number(number, wanted, compute_of(wanted));
    }
  }
  if (def.scalar_count > kMaxPointwiseInputs) return false;
  read_attributes(c, plan.common, v.attributes);
  if (modes.grad_enabled && def.input_count == 1) consider_slope(v, *c.args[0].tensor_);
  c.give(builder.finish());
  return true;
}

Tensor backward_late(const Operator& op, int which, const Tensor& grad, std::span<const Tensor> saved,
                     const ScalarAttribute* attributes) {
  const PointwiseDefinition& def = *op.pointwise;
  const char* who = op.node_name.c_str();
  int64_t most = grad.numel();
  for (const Tensor& t : saved) most = std::max(most, t.numel());
  if (!is_late_place(grad.device(), most) || def.scalar_count > kMaxPointwiseInputs) return {};
  ResultType type;
  type.add(*grad);
  TensorInfo info{grad.sizes(), {}, Dtype::f32, grad.device()};
  for (const Tensor& t : saved) {
    info.sizes = broadcast(who, info.sizes, t.sizes());
    if (t.dtype() != Dtype::b8) type.add(*t);
    if (!(t.device() == grad.device())) return {};
  }
  info.dtype = type.result();
  Compute compute;
  const Loop loop = pick_loop(op, op.loops->backward[which], info.dtype, compute);
  if (!is_late_compute(compute)) return {};
  const Dtype loop_dtype = dtype_of_compute(compute), output_dtype = loop_output(def.promotion, compute);
  Dims strides[kMaxOperands];
  strides[0] = expanded_strides(who, grad, info.sizes);
  for (size_t i = 0; i < saved.size(); ++i) strides[1 + i] = expanded_strides(who, saved[i], info.sizes);
  info.strides = result_strides(info.sizes, {strides, 1 + saved.size()});
  if (const Tensor slope = made_slope(op, which, saved); slope.defined() && compute == Compute::f32) {
    static const Operator& mul = *Registry::instance().find("mul");
    Builder product(mul, -1, info);
    product.value().compute = compute;
    product.value().loop = mul.loops->forward[static_cast<int>(compute)];
    product.value().made = loop_dtype;
    if (grad.dtype() == loop_dtype && product.value().numel && product.add_tensor(grad, loop_dtype, strides[0]) &&
        product.add_tensor(slope, loop_dtype, strides[1]))
      return product.finish();
  }
  Builder builder(op, which, info);
  LateValue& v = builder.value();
  if (v.numel == 0) return {};
  v.compute = compute;
  v.loop = loop;
  v.made = loop_dtype;
  if (!builder.add_tensor(grad, output_dtype, strides[0])) return {};
  int input = 0;
  for (size_t i = 0; i < saved.size(); ++i, ++input) {
    while (input < def.input_count && !(def.uses[which] & (1 << input))) ++input;
    const Dtype wanted = input == def.input_count ? output_dtype : def.inputs[input] == 'b' ? Dtype::b8 : loop_dtype;
    if (!builder.add_tensor(saved[i], wanted, strides[1 + i])) return {};
  }
  std::copy(attributes, attributes + def.scalar_count, v.attributes);
  return builder.finish();
}

Tensor cast_late(const Tensor& t, Dtype dtype) {
  if (!computes_late || !is_late_place(t.device(), t.numel()) || t.dtype() == dtype || is_complex(dtype) ||
      is_complex(t.dtype()))
    return {};
  static const Operator& op = *Registry::instance().find("to_dtype");
  const TensorInfo info{t.sizes(), dense_strides_like(t.sizes(), t.strides()), dtype, t.device()};
  Builder builder(op, -1, info);
  builder.value().made = dtype;
  if (!builder.add_tensor(t, t.dtype(), t.strides())) return {};
  if (builder.value().inputs[0].kind == Input::number) return {};
  return builder.finish();
}

Tensor rows_late(const Operator& op, std::span<const Tensor> inputs, const TensorInfo& result, RefPtr<RowWork> work,
                 std::span<const TensorInfo> side_infos, std::span<Tensor> sides) {
  Builder builder(op, -1, result);
  builder.value().made = result.dtype;
  for (const Tensor& t : inputs) {
    // One operator on rows in a group.
    if (RefPtr<Pending> p = pending_of(*t.storage()); p && !dynamic_cast<SideValue*>(p.get()))
      if (has_rows(static_cast<const LateValue&>(*p))) p->settle();
    if (!t.is_contiguous() || !builder.add_tensor(t, t.dtype(), t.strides()) || builder.value().images) return {};
  }
  builder.value().rows = std::move(work);
  const RefPtr<LateValue> value(&builder.value());
  for (size_t i = 0; i < side_infos.size(); ++i) {
    Tensor t(RefPtr<TensorImpl>(new TensorImpl));
    t->sizes = side_infos[i].sizes;
    t->strides = contiguous_strides(t->sizes);
    t->dtype = side_infos[i].dtype;
    t->storage = RefPtr<Storage>(new Storage);
    t->storage->device = result.device;
    t->update_numel_and_contiguity();
    t->storage->bytes = t->numel * size_of(t->dtype);
    make_pending(*t->storage, RefPtr<Pending>(new SideValue(value, static_cast<int>(i))));
    sides[i] = std::move(t);
  }
  return builder.finish();
}

Tensor placed_late(const Operator& op, std::span<const Tensor> inputs, const TensorInfo& result,
                   RefPtr<PlacedWork> work) {
  Builder builder(op, -1, result);
  builder.value().made = result.dtype;
  builder.lie_as_images();
  for (const Tensor& t : inputs) builder.add_tensor(t, t.dtype(), t.strides());
  builder.value().placed = std::move(work);
  return builder.finish();
}

bool has_plain_tensors(const Call& c) {
  for (size_t i = 0; i < c.op.signature.parameters.size(); ++i) {
    if (c.args[i].kind != Kind::tensor) continue;
    const TensorImpl& t = *c.args[i].tensor_;
    if (t.level || !t.storage->device.is_cpu() || t.storage->was_cut()) return false;
  }
  return true;
}

namespace {
struct LateForm {
  const Operator* op;
  bool (*take)(Call& c);
};
std::vector<LateForm>& late_forms(DeviceType device) {
  static auto* the = new std::vector<LateForm>[kDeviceTypes];
  return the[static_cast<int>(device)];
}
}  // namespace

void let_compute_late(const char* name, DeviceType device, bool (*take)(Call& c)) {
  late_forms(device).push_back({Registry::instance().find(name), take});
}

bool compute_rows_late(Call& c) {
  if (c.given_out) return false;
  const TensorImpl* first = nullptr;
  for (int i = 0; i < static_cast<int>(c.op.signature.parameters.size()); ++i) {
    const TensorImpl* const t = c.args[i].kind == Kind::tensor                           ? c.args[i].tensor_
                                : c.args[i].kind == Kind::tensors && c.args[i].count > 0 ? c.tensors(i)[0].get()
                                                                                         : nullptr;
    if (!t) continue;
    const Device device = t->storage->device;
    if (t->level || (first && device.type != first->storage->device.type)) return false;
    if (!first) first = t;
    if (!is_late_place(device, t->numel)) continue;
    const std::vector<LateForm>& forms = late_forms(device.type);
    const auto form = std::find_if(forms.begin(), forms.end(), [&](const LateForm& f) { return f.op == &c.op; });
    if (form == forms.end()) return false;
    const char* const before = std::exchange(settle_reason, c.op.name().c_str());
    const bool taken = form->take(c);
    settle_reason = before;
    return taken;
  }
  return false;
}

}  // namespace cresset
