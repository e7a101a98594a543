// The steps of a sequence one by one: a product and a launch of the cell for each of them. A backend passes the launch.
//
// A step adds its product to its gates in place. Its kernel writes the state and the cell where the next step reads
// them.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mm.h>

#include "lltm_sequence_autograd.h"

namespace OPERATOR_NAMESPACE {

/// As `lltm_steps_forward` in lltm_sequence_operator.h. `cell(gates, old_cell, new_h, new_cell)` writes the last two.
template <typename Cell>
void forward_step_by_step(const Tensor& of_h, const Tensor& h0, const Tensor& c0, const Tensor& gates, const Tensor& h,
                          const Tensor& cells, const Tensor& c_T, Cell cell) {
  const int64_t steps = h.size(0);
  const Tensor weights = lltm_sequence_operand(of_h);
  cells.select(0, 0).copy_(c0);
  for (int64_t t = 0; t < steps; ++t) {
    const Tensor now = gates.select(0, t), new_cell = t + 1 < steps ? cells.select(0, t + 1) : c_T;
    now.addmm_(t > 0 ? h.select(0, t - 1) : h0, weights.t());
    cell(now, cells.select(0, t), h.select(0, t), new_cell);
  }
}

/// As `lltm_steps_backward` in lltm_sequence_operator.h. `cell_vjp(gates, old_cell, grad_h, grad_cell, d_gates,
/// d_old_cell)` writes the last two.
template <typename CellVjp>
void backward_step_by_step(const Tensor& of_h, const Tensor& gates, const Tensor& cells, const Tensor& grad_h,
                           const Tensor& grad_cell, const Tensor& d_gates, const Tensor& d_h0, const Tensor& d_c0,
                           CellVjp cell_vjp) {
  const Tensor weights = lltm_sequence_operand(of_h);
  d_h0.zero_();
  Tensor d_cell = grad_cell;
  for (int64_t t = cells.size(0) - 1; t >= 0; --t) {
    const Tensor d_now = d_gates.select(0, t), d_old_cell = t > 0 ? at::empty_like(d_c0) : d_c0;
    d_h0.add_(grad_h.select(0, t));
    cell_vjp(gates.select(0, t), cells.select(0, t), d_h0, d_cell, d_now, d_old_cell);
    d_cell = d_old_cell;
    Tensor d_h = d_h0;
    at::mm_out(d_h, d_now, weights);
  }
}

}  // namespace OPERATOR_NAMESPACE
