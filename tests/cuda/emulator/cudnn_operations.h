// Graphs of products, pointwise operations, reductions and reshapes, computed one after another in float64 and rounded
// to each tensor's type.
#pragma once
#include <functional>

#include "cudnn_descriptor.h"

namespace emulator {

enum OperationKind {
  POINTWISE = 0,
  POINTWISE_OPERATION = 13,
  PRODUCT = 18,
  PRODUCT_OPERATION = 19,
  REDUCTION = 21,
  REDUCTION_OPERATION = 22,
  RESHAPE_OPERATION = 31
};

bool is_graph_operation(int kind);
bool has_graph_attribute(int kind, int name, int type);
const char* problem_of(const Descriptor& d);  // null: the library would take it

// Where the tensors with memory lie, by id.
using Memory = std::map<int64_t, char*>;
struct Operations {
  // What is read and written, with the number of bytes from its address on; false: `touch` refused one.
  static bool touches(const std::vector<Descriptor*>& operations, const Memory& memory,
                      const std::function<bool(char*, size_t)>& touch);
  // By-value tensors are read now, the others when the returned function runs.
  static std::function<void()> prepare(const std::vector<Descriptor*>& operations, const Memory& memory);
};

}  // namespace emulator
