// The steps of a sequence by the kernels of the cell in lltm.cu: a product and a launch for each of them.
//
// A step's product is added to its gates where they lie, and its kernel writes the state and the cell where the next
// step reads them.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>

#include "lltm.h"
#include "operator.h"

namespace OPERATOR_NAMESPACE {

/// As `lltm_steps_forward` in lltm_sequence_operator.h.
inline void forward_step_by_step(const Tensor& of_h, const Tensor& h0, const Tensor& c0, const Tensor& gates,
                                 const Tensor& h, const Tensor& cells, const Tensor& c_T) {
  const int64_t steps = h.size(0);
  cells.select(0, 0).copy_(c0);
  for (int64_t t = 0; t < steps; ++t) {
    const Tensor now = gates.select(0, t), new_cell = t + 1 < steps ? cells.select(0, t + 1) : c_T;
    now.addmm_(t > 0 ? h.select(0, t - 1) : h0, of_h.t());
    launch_lltm_forward(now.scalar_type(), h.size(1), h.size(2), now.const_data_ptr(),
                        cells.select(0, t).const_data_ptr(), h.select(0, t).mutable_data_ptr(),
                        new_cell.mutable_data_ptr(), current_stream(now));
  }
}

/// As `lltm_steps_backward` in lltm_sequence_operator.h.
inline void backward_step_by_step(const Tensor& of_h, const Tensor& gates, const Tensor& cells, const Tensor& grad_h,
                                  const Tensor& grad_cell, const Tensor& d_gates, const Tensor& d_h0,
                                  const Tensor& d_c0) {
  d_h0.zero_();
  Tensor d_cell = grad_cell;
  for (int64_t t = cells.size(0) - 1; t >= 0; --t) {
    const Tensor d_now = d_gates.select(0, t), d_old_cell = t > 0 ? at::empty_like(d_c0) : d_c0;
    d_h0.add_(grad_h.select(0, t));
    launch_lltm_backward(d_now.scalar_type(), d_h0.size(0), d_h0.size(1), gates.select(0, t).const_data_ptr(),
                         cells.select(0, t).const_data_ptr(), d_h0.const_data_ptr(), d_cell.const_data_ptr(),
                         d_now.mutable_data_ptr(), d_old_cell.mutable_data_ptr(), current_stream(d_now));
    d_cell = d_old_cell;
    Tensor d_h = d_h0;
    at::mm_out(d_h, d_now, of_h);
  }
}

}  // namespace OPERATOR_NAMESPACE
