// Memory that may be written over.
//
// Note [Expendable memory]
// Backward without retain_graph reads what a node has saved for the last time. Where nobody but the node refers to such
// a tensor and to its storage, the result of the derivative may take its place: the gradient of a language model's
// scores is as large as they are, and these are the largest tensor of a training step. The engine counts references
// before the derivative makes its own; it does so for nodes that were recorded in a compiled region. Gradients that
// come to a node in one storage of their own are offered, too: attention's, of a query, key and value that were split
// from one tensor, lie as these do, and what joins them finds its result made.
#pragma once
#include <span>

#include "tensor/tensor.h"

namespace cresset {

// For as long as a node runs, what it offers; that of the nodes around it is not offered meanwhile.
class Expendable {
 public:
  Expendable() : around_(current_) { current_ = this; }
  ~Expendable() { current_ = around_; }
  Expendable(const Expendable&) = delete;

  // `t` is the saved tensor itself, no copy: its references are counted.
  void offer(const Tensor& t);
  // What came to the node: its references are counted, too.
  void offer_gradients(std::span<const Tensor> grads);
  // Whether the running node offers this storage; it is taken then, and not offered again.
  static bool take(const Storage& storage);

 private:
  void offer_storage(const Storage& s);
  static constexpr int kMost = 4;
  const Storage* offered_[kMost] = {};
  int count_ = 0;
  Expendable* const around_;
  static constinit thread_local Expendable* current_;
};

}  // namespace cresset
