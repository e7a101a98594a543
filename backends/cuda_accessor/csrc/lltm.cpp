// LLTM over packed accessors: lltm_operator.h with the kernels of lltm.cu.
//
// The kernels take any strides, so nothing is copied.
#include "lltm.h"

#include "lltm_operator.h"
#include "matrix.h"

namespace OPERATOR_NAMESPACE {

void lltm_pointwise_forward(const Tensor& gates, const Tensor& old_cell, const Tensor& new_h, const Tensor& new_cell) {
  launch_lltm_forward(gates.scalar_type(), input_matrix(gates), input_matrix(old_cell), output_matrix(new_h),
                      output_matrix(new_cell), current_stream(gates));
}

void lltm_pointwise_backward(const Tensor& gates, const Tensor& old_cell, const Tensor& grad_h, const Tensor& grad_cell,
                             const Tensor& d_gates, const Tensor& d_old_cell) {
  launch_lltm_backward(gates.scalar_type(), input_matrix(gates), input_matrix(old_cell), input_matrix(grad_h),
                       input_matrix(grad_cell), output_matrix(d_gates), output_matrix(d_old_cell),
                       current_stream(gates));
}

std::vector<Tensor> lltm_products(const Tensor& d_gates, const Tensor& d_old_cell, const Tensor& input,
                                  const Tensor& weights, const Tensor& old_h, LltmWanted wanted) {
  return lltm_wanted_gradients(d_gates, d_old_cell, input, weights, old_h, wanted);
}

}  // namespace OPERATOR_NAMESPACE
