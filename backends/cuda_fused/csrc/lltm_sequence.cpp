// LLTM over a sequence in fused kernels: all steps in one (lltm_sequence.cu) where the weights of the state fit a
// block, otherwise a product and a kernel of the cell (lltm.cu) for each step.
#include "lltm_sequence.h"

#include "lltm.h"
#include "lltm_sequence_operator.h"
#include "lltm_steps.h"

namespace OPERATOR_NAMESPACE {

static SequenceSizes sizes_of(const Tensor& cells) { return {cells.size(0), cells.size(1), cells.size(2)}; }

// One step by the kernels of the cell. The gates have the bias already, and the sums of d_gates are not needed.

static void cell_of_step(const Tensor& gates, const Tensor& old_cell, const Tensor& new_h, const Tensor& new_cell) {
  const LltmSizes sizes{old_cell.size(0), /*input_features=*/0, old_cell.size(1)};
  launch_lltm_forward(gates.scalar_type(), sizes, gates.mutable_data_ptr(), /*bias=*/nullptr, /*wants_gates=*/true,
                      old_cell.const_data_ptr(), new_h.mutable_data_ptr(), new_cell.mutable_data_ptr(),
                      current_stream(gates));
}

static void cell_vjp_of_step(const Tensor& gates, const Tensor& old_cell, const Tensor& grad_h, const Tensor& grad_cell,
                             const Tensor& d_gates, const Tensor& d_old_cell) {
  const LltmSizes sizes{old_cell.size(0), /*input_features=*/0, old_cell.size(1)};
  launch_lltm_backward(gates.scalar_type(), sizes, gates.const_data_ptr(), old_cell.const_data_ptr(),
                       grad_h.const_data_ptr(), grad_cell.const_data_ptr(), d_gates.mutable_data_ptr(),
                       d_old_cell.mutable_data_ptr(), /*sums=*/nullptr, current_stream(gates));
}

void lltm_steps_forward(const Tensor& of_h, const Tensor& h0, const Tensor& c0, const Tensor& gates, const Tensor& h,
                        const Tensor& cells, const Tensor& c_T) {
  if (!fits_a_block(h.scalar_type(), h.size(2))) {
    forward_step_by_step(of_h, h0, c0, gates, h, cells, c_T, cell_of_step);
    return;
  }
  launch_sequence_forward(h.scalar_type(), sizes_of(cells), of_h.const_data_ptr(), h0.const_data_ptr(),
                          c0.const_data_ptr(), gates.mutable_data_ptr(), h.mutable_data_ptr(), cells.mutable_data_ptr(),
                          c_T.mutable_data_ptr(), current_stream(h));
}

void lltm_steps_backward(const Tensor& of_h, const Tensor& gates, const Tensor& cells, const Tensor& grad_h,
                         const Tensor& grad_cell, const Tensor& d_gates, const Tensor& d_h0, const Tensor& d_c0) {
  if (!fits_a_block(cells.scalar_type(), cells.size(2))) {
    backward_step_by_step(of_h, gates, cells, grad_h, grad_cell, d_gates, d_h0, d_c0, cell_vjp_of_step);
    return;
  }
  launch_sequence_backward(cells.scalar_type(), sizes_of(cells), of_h.const_data_ptr(), gates.const_data_ptr(),
                           cells.const_data_ptr(), grad_h.const_data_ptr(), grad_cell.const_data_ptr(),
                           d_gates.mutable_data_ptr(), d_h0.mutable_data_ptr(), d_c0.mutable_data_ptr(),
                           current_stream(cells));
}

}  // namespace OPERATOR_NAMESPACE
