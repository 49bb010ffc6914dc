// The sizes of a recurrent layer in one direction, from the arguments of the operators _recurrence and
// _recurrence_backward.
#pragma once
#include <string_view>
#include <vector>

#include "ops/recurrence.h"
#include "tensor/tensor.h"

namespace cresset {

struct RecurrentLayer {
  Cell cell;
  int64_t steps, batch, rows, inputs, hidden, width, gates;
  std::vector<int64_t> counts, offsets;

  RecurrentLayer(const Tensor& input, const Tensor& h, const Tensor& w_hh, DimsView batch_sizes, std::string_view mode);
  int64_t cells() const { return cell == Cell::lstm || cell == Cell::gru ? hidden : 0; }
  // Plain cells find all that backward needs in the output.
  int64_t reserved() const { return cells() ? rows * (gates + cells()) : 0; }

  template <class C>
  RecurrenceProblem<C> problem(bool reverse) const {
    RecurrenceProblem<C> p;
    p.cell = cell, p.steps = steps, p.batch = batch, p.hidden = hidden, p.width = width;
    p.counts = counts.data(), p.offsets = offsets.data(), p.reverse = reverse;
    return p;
  }
};

}  // namespace cresset
