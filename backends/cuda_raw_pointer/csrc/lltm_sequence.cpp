// LLTM over a sequence over raw pointers: a product and a launch of the cell's kernels (lltm.cu) for each step.
#include "lltm_sequence_operator.h"

#include "lltm.h"
#include "lltm_steps.h"

namespace OPERATOR_NAMESPACE {

void lltm_steps_forward(const Tensor& of_h, const Tensor& h0, const Tensor& c0, const Tensor& all_gates,
                        const Tensor& h, const Tensor& cells, const Tensor& c_T) {
  const auto cell = [](const Tensor& gates, const Tensor& old_cell, const Tensor& new_h, const Tensor& new_cell) {
    launch_lltm_forward(gates.scalar_type(), old_cell.size(0), old_cell.size(1), gates.const_data_ptr(),
                        old_cell.const_data_ptr(), new_h.mutable_data_ptr(), new_cell.mutable_data_ptr(),
                        current_stream(gates));
  };
  forward_step_by_step(of_h, h0, c0, all_gates, h, cells, c_T, cell);
}

void lltm_steps_backward(const Tensor& of_h, const Tensor& all_gates, const Tensor& cells, const Tensor& all_grad_h,
                         const Tensor& last_grad_cell, const Tensor& all_d_gates, const Tensor& d_h0,
                         const Tensor& d_c0) {
  const auto cell_vjp = [](const Tensor& gates, const Tensor& old_cell, const Tensor& grad_h, const Tensor& grad_cell,
                           const Tensor& d_gates, const Tensor& d_old_cell) {
    launch_lltm_backward(gates.scalar_type(), old_cell.size(0), old_cell.size(1), gates.const_data_ptr(),
                         old_cell.const_data_ptr(), grad_h.const_data_ptr(), grad_cell.const_data_ptr(),
                         d_gates.mutable_data_ptr(), d_old_cell.mutable_data_ptr(), current_stream(gates));
  };
  backward_step_by_step(of_h, all_gates, cells, all_grad_h, last_grad_cell, all_d_gates, d_h0, d_c0, cell_vjp);
}

}  // namespace OPERATOR_NAMESPACE
