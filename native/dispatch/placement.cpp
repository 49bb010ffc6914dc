#include "dispatch/placement.h"

namespace cresset {
namespace {

// The name of an argument in the operator's signature.
const std::string& name_of_argument(const Call& c, int i) {
  return c.op.signature.parameters[static_cast<size_t>(i)].name;
}

// Which argument is where it should be, to name both in the error.
int argument_on(const Call& c, Device device) {
  for (int i = 0; i < static_cast<int>(c.op.signature.parameters.size()); ++i) {
    if (c.args[i].kind == Kind::tensor && c.args[i].tensor_->storage->device == device) return i;
    if (c.args[i].kind == Kind::tensors)
      for (const Tensor& t : c.tensors(i))
        if (t.defined() && t.device() == device) return i;
  }
  return -1;
}

[[noreturn]] void refuse(const Call& c, int i, Device found, Device device) {
  const int other = argument_on(c, device);
  std::string where = join("argument '", name_of_argument(c, i), "' is on ", found);
  if (other >= 0) where += join(", '", name_of_argument(c, other), "' on ", device);
  fail(c.op.name(), ": Expected all tensors to be on the same device, but found at least two devices, ", device,
       " and ", found, "! (", where, "; move one with .to())");
}

// PyTorch takes the indices of x[i, :, j] from the CPU: a list in which some may be missing.
bool is_index(const Call& c, int i) {
  return c.op.signature.parameters[static_cast<size_t>(i)].type_text == "Tensor?[]";
}

}  // namespace

bool lies_on(const Call& c, Device device) {
  for (int i = 0; i < static_cast<int>(c.op.signature.parameters.size()); ++i) {
    if (c.args[i].kind == Kind::tensor && !(c.args[i].tensor_->storage->device == device)) return false;
    if (c.args[i].kind == Kind::tensors)
      for (const Tensor& t : c.tensors(i))
        if (t.defined() && !(t.device() == device)) return false;
  }
  return true;
}

Placement::Placement(Call& c, Device device) : call_(c) {
  for (int i = 0; i < static_cast<int>(c.op.signature.parameters.size()); ++i) {
    bool elsewhere = c.args[i].kind == Kind::tensor && !(c.args[i].tensor_->storage->device == device);
    if (c.args[i].kind == Kind::tensors)
      for (const Tensor& t : c.tensors(i)) elsewhere = elsewhere || (t.defined() && !(t.device() == device));
    if (elsewhere) place(i, device);
  }
}

void Placement::place(int i, Device device) {
  const auto moved = [&](const Tensor& t) {
    if (!t.defined() || t.device() == device) return t;
    if (!t.device().is_cpu() || (t.dim() > 0 && !is_index(call_, i))) refuse(call_, i, t.device(), device);
    Tensor copy = empty(t.sizes(), t.dtype(), device);
    copy_into(copy, t);
    copy->wrapped_number = t->wrapped_number;
    return copy;
  };
  originals_[i] = call_.args[i];
  if (call_.args[i].kind == Kind::tensor) {
    copies_[i].push_back(moved(call_.tensor(i)));
    call_.args[i].tensor_ = copies_[i][0].get();
    return;
  }
  for (const Tensor& t : call_.tensors(i)) copies_[i].push_back(moved(t));
  call_.args[i].tensors_ = copies_[i].data();
}

Placement::~Placement() {
  for (int i = 0; i < kMaxArguments; ++i)
    if (originals_[i].kind != Kind::none) call_.args[i] = originals_[i];
}

}  // namespace cresset
