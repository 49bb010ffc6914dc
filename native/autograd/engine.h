// The engine: walks the graph from the roots in the caller's thread, latest node first.
#pragma once
#include <functional>

#include "autograd/node.h"

namespace cresset {

struct BackwardRequest {
  std::vector<Edge> roots;
  std::vector<Tensor> root_grads;
  bool keep_graph = false, create_graph = false;
  // For autograd.grad: the edges whose gradients are wanted. Empty: leaves accumulate.
  std::vector<Edge> wanted;
  bool accumulate = true;  // false: leaves keep their .grad (autograd.grad)
};

// The gradients of `wanted` (undefined where there was none).
std::vector<Tensor> run_backward(const BackwardRequest& request);

// What hooks may ask about the run they are called in, the innermost of this thread.
int64_t backwards_started();                      // in all threads, since the start of the process
int64_t current_backward();                       // its number; -1 outside of any
RefPtr<Node> running_node();                      // whose derivative or hooks are being run; null outside of any
bool backward_is_partial();                       // autograd.grad, or backward with inputs
bool will_run(const Node* node);                  // whether it computes the gradient of the node's results
void after_backward(std::function<void()> step);  // at the end of the run

// Sum (and convert) a gradient so that it has the shape and dtype of what it belongs to.
Tensor fit(const char* who, size_t index, const Tensor& grad, const ResultInfo& to);

}  // namespace cresset
