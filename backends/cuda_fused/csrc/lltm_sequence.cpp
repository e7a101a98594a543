// LLTM over a sequence in fused kernels: all steps in one (lltm_sequence.cu) where the weights of the state fit a
// block, otherwise a product and a kernel for each, as cuda-raw-pointer has them.
#include "lltm_sequence.h"

#include "lltm_sequence_operator.h"
#include "lltm_steps.h"

namespace OPERATOR_NAMESPACE {

static SequenceSizes sizes_of(const Tensor& cells) { return {cells.size(0), cells.size(1), cells.size(2)}; }

void lltm_steps_forward(const Tensor& of_h, const Tensor& h0, const Tensor& c0, const Tensor& gates, const Tensor& h,
                        const Tensor& cells, const Tensor& c_T) {
  if (!fits_a_block(h.scalar_type(), h.size(2))) {
    forward_step_by_step(of_h, h0, c0, gates, h, cells, c_T);
    return;
  }
  launch_sequence_forward(h.scalar_type(), sizes_of(cells), of_h.const_data_ptr(), h0.const_data_ptr(),
                          c0.const_data_ptr(), gates.mutable_data_ptr(), h.mutable_data_ptr(), cells.mutable_data_ptr(),
                          c_T.mutable_data_ptr(), current_stream(h));
}

void lltm_steps_backward(const Tensor& of_h, const Tensor& gates, const Tensor& cells, const Tensor& grad_h,
                         const Tensor& grad_cell, const Tensor& d_gates, const Tensor& d_h0, const Tensor& d_c0) {
  if (!fits_a_block(cells.scalar_type(), cells.size(2))) {
    backward_step_by_step(of_h, gates, cells, grad_h, grad_cell, d_gates, d_h0, d_c0);
    return;
  }
  launch_sequence_backward(cells.scalar_type(), sizes_of(cells), of_h.const_data_ptr(), gates.const_data_ptr(),
                           cells.const_data_ptr(), grad_h.const_data_ptr(), grad_cell.const_data_ptr(),
                           d_gates.mutable_data_ptr(), d_h0.mutable_data_ptr(), d_c0.mutable_data_ptr(),
                           current_stream(cells));
}

}  // namespace OPERATOR_NAMESPACE
