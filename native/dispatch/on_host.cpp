#include "dispatch/on_host.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <optional>

#include "base/fork_lock.h"
#include "base/generator.h"

namespace cresset {

bool refuses_host = false;

namespace {

struct Known {
  ForkLock lock;
  std::vector<std::string> names;
};
Known& known() {
  static auto* the = new Known;
  return *the;
}

}  // namespace

void note_host(const std::string& name, Device device) {
  check_implemented(!refuses_host, name, ": not implemented on '", device,
                    "', and computing on the CPU instead was refused");
  {
    std::lock_guard guard(known().lock);
    if (std::find(known().names.begin(), known().names.end(), name) != known().names.end()) return;
    known().names.push_back(name);
  }
  if (warn)
    warn(join(name, ": has no kernel for '", device,
              "' yet and is computed on the CPU: its arguments and results are copied there and back. This is right, "
              "but slow"));
}

namespace {

// One tensor on its way: the original, the copy that the CPU works on, and the copy as it was.
struct Traveler {
  Tensor original, copy, before;
};

class Luggage {
 public:
  Tensor to_host(const Tensor& t) {
    if (!t.defined() || !is_accelerator(t.device())) return t;
    for (const Traveler& p : travelers_)
      if (p.original.get() == t.get()) return p.copy;
    Tensor copy = empty(TensorInfo{t.sizes(), dense_strides_like(t.sizes(), t.strides()), t.dtype(), Device{}});
    copy_into(copy, t);
    copy->wrapped_number = t->wrapped_number;
    travelers_.push_back({t, copy, clone(copy)});
    return copy;
  }
  // The device's tensor of a result: the argument itself when the kernel gave that back.
  Tensor to_device(const Tensor& t, Device device) const {
    if (!t.defined()) return t;
    for (const Traveler& p : travelers_)
      if (p.copy.get() == t.get()) return p.original;
    Tensor out = empty(TensorInfo{t.sizes(), dense_strides_like(t.sizes(), t.strides()), t.dtype(), device});
    copy_into(out, t);
    return out;
  }
  void write_back() const {
    for (const Traveler& p : travelers_) {
      const auto bytes = static_cast<size_t>(p.copy.numel() * size_of(p.copy.dtype()));
      if (p.copy.sizes() == p.original.sizes() &&
          (bytes == 0 || std::memcmp(p.copy.bytes(), p.before.bytes(), bytes) == 0))
        continue;
      if (!(p.copy.sizes() == p.original.sizes())) {  // out= was given another shape
        p.original->storage->resize(std::max(p.original.storage()->bytes, p.copy.numel() * size_of(p.copy.dtype())));
        p.original->sizes = p.copy.sizes();
        p.original->strides = contiguous_strides(p.copy.sizes());
        p.original->offset = 0;
        p.original->update_numel_and_contiguity();
      }
      copy_into(p.original, p.copy);
    }
  }

 private:
  std::vector<Traveler> travelers_;
};

// A random operator draws from a generator that starts from the next words of the device's.
uint64_t seed_on_host(const Call& c, int at, Device device) {
  Generator& g = c.has(at) ? *c.args[at].generator_ : default_generator(device);
  check(g.device.type == device.type, c.op.name(), ": Expected a '", name_of(device.type),
        "' device type for generator but found '", name_of(g.device.type), "'");
  const Philox::Start start = static_cast<Philox&>(g).take(4);
  return start.seed ^ (start.offset + 1) * 0x9e3779b97f4a7c15u;
}

}  // namespace

void execute_on_host(Call& c, Device device) {
  const Operator& op = c.op;
  check_implemented(op.run[0], op.name(), ": not implemented on '", device, "'");
  note_host(op.name(), device);
  Luggage luggage;
  Call there(op);
  SmallVector<Tensor, 2> kept[kMaxArguments];
  Tensor alive[kMaxArguments];
  for (size_t i = 0; i < op.signature.parameters.size(); ++i) {
    there.args[i] = c.args[i];
    if (c.args[i].kind == Kind::tensor) {
      alive[i] = luggage.to_host(c.tensor(static_cast<int>(i)));
      there.args[i].tensor_ = alive[i].get();
    } else if (c.args[i].kind == Kind::tensors) {
      for (const Tensor& t : c.tensors(static_cast<int>(i))) kept[i].push_back(luggage.to_host(t));
      there.args[i].tensors_ = kept[i].data();
    } else if (c.args[i].kind == Kind::device) {
      there.args[i].device_ = Device{};
    }
  }
  std::optional<Twister> generator;
  if (const int at = op.signature.index_of("generator"); at >= 0) {
    generator.emplace(seed_on_host(c, at, device));
    there.args[at].kind = Kind::generator;
    there.args[at].generator_ = &*generator;
  }
  there.given_out = c.given_out;
  for (const Tensor& t : c.outputs) there.outputs.push_back(luggage.to_host(t));
  if (!c.given_out) there.outputs.clear();
  execute(there);
  luggage.write_back();
  c.outputs.clear();
  for (const Tensor& t : there.outputs) c.give(luggage.to_device(t, device));
}

std::vector<std::string> operators_on_host() {
  std::lock_guard guard(known().lock);
  return known().names;
}

}  // namespace cresset
