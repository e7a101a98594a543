// LLTM over raw pointers: lltm_operator.h with the kernels of lltm.cu.
//
// The kernels take no strides, so what is not contiguous is copied first.
#include "lltm.h"

#include "lltm_operator.h"

namespace OPERATOR_NAMESPACE {

void lltm_pointwise_forward(const Tensor& gates, const Tensor& old_cell, const Tensor& new_h, const Tensor& new_cell) {
  const Tensor dense_gates = gates.contiguous(), dense_old_cell = old_cell.contiguous();
  launch_lltm_forward(gates.scalar_type(), old_cell.size(0), old_cell.size(1), dense_gates.const_data_ptr(),
                      dense_old_cell.const_data_ptr(), new_h.mutable_data_ptr(), new_cell.mutable_data_ptr(),
                      current_stream(gates));
}

void lltm_pointwise_backward(const Tensor& gates, const Tensor& old_cell, const Tensor& grad_h, const Tensor& grad_cell,
                             const Tensor& d_gates, const Tensor& d_old_cell) {
  const Tensor dense_gates = gates.contiguous(), dense_old_cell = old_cell.contiguous();
  const Tensor dense_grad_h = grad_h.contiguous(), dense_grad_cell = grad_cell.contiguous();
  launch_lltm_backward(gates.scalar_type(), old_cell.size(0), old_cell.size(1), dense_gates.const_data_ptr(),
                       dense_old_cell.const_data_ptr(), dense_grad_h.const_data_ptr(), dense_grad_cell.const_data_ptr(),
                       d_gates.mutable_data_ptr(), d_old_cell.mutable_data_ptr(), current_stream(gates));
}

std::vector<Tensor> lltm_products(const Tensor& d_gates, const Tensor& d_old_cell, const Tensor& input,
                                  const Tensor& weights, const Tensor& old_h, LltmWanted wanted) {
  return lltm_wanted_gradients(d_gates, d_old_cell, input, weights, old_h, wanted);
}

}  // namespace OPERATOR_NAMESPACE
