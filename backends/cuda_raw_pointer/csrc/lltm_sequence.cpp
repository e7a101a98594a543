// LLTM over a sequence over raw pointers: lltm_sequence_operator.h with the kernels of lltm.cu, which are those of the
// cell, one launch a step and direction.
#include "lltm_sequence_operator.h"

#include "lltm_steps.h"

namespace OPERATOR_NAMESPACE {

void lltm_steps_forward(const Tensor& of_h, const Tensor& h0, const Tensor& c0, const Tensor& gates, const Tensor& h,
                        const Tensor& cells, const Tensor& c_T) {
  forward_step_by_step(of_h, h0, c0, gates, h, cells, c_T);
}

void lltm_steps_backward(const Tensor& of_h, const Tensor& gates, const Tensor& cells, const Tensor& grad_h,
                         const Tensor& grad_cell, const Tensor& d_gates, const Tensor& d_h0, const Tensor& d_c0) {
  backward_step_by_step(of_h, gates, cells, grad_h, grad_cell, d_gates, d_h0, d_c0);
}

}  // namespace OPERATOR_NAMESPACE
