// Signature: what an operator takes and gives, read from one line of text in PyTorch's manner:
//   max.dim(Tensor input, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)
#pragma once
#include <string>
#include <vector>

#include "dispatch/value.h"

namespace cresset {

enum class ArgType : uint8_t {
  tensor,
  tensors,
  tensor_or_scalar,
  scalar,
  integer,
  integers,
  real,
  reals,
  boolean,
  dtype,
  device,
  layout,
  memory_format,
  text,
  generator,
  object,
};

struct Parameter {
  std::string name;
  ArgType type;
  std::string type_text;  // as written, for documentation
  bool optional = false;  // None is allowed (written with ?)
  bool has_default = false;
  bool keyword_only = false;
  bool varargs = false;      // int[...]: view(2, 3) as well as view((2, 3))
  bool single = false;       // int[1]: one integer will do
  bool one_element = false;  // SymInt: a tensor of one integer will do, whatever its shape
  std::string default_text;
  Value default_value;
  Dims default_integers;  // keeps the list of default_value alive
};

struct Signature {
  std::string name, overload;
  std::vector<Parameter> parameters;
  std::vector<std::string> results;  // names; "" where none
  bool results_are_tuple = false, results_are_list = false;
  std::string text;

  static Signature parse(const std::string& text);
  int index_of(std::string_view name) const;
};

}  // namespace cresset
