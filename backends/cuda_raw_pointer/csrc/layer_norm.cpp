// LayerNorm over raw pointers: layer_norm_passes.h with the kernels of layer_norm.cu.
//
// The kernels take no strides, so what is not contiguous is copied first.
#include "layer_norm.h"

#include "layer_norm_passes.h"

namespace OPERATOR_NAMESPACE {

static Tensor dense_or_undefined(const Tensor& tensor) { return tensor.defined() ? tensor.contiguous() : tensor; }

static const void* pointer_or_null(const Tensor& tensor) {
  return tensor.defined() ? tensor.const_data_ptr() : nullptr;
}

void layer_norm_rows_forward(const Tensor& input, const Tensor& weight, const Tensor& bias, double eps,
                             const Tensor& output, const Tensor& mean, const Tensor& rstd) {
  const Tensor dense_input = input.contiguous();
  const Tensor dense_weight = dense_or_undefined(weight), dense_bias = dense_or_undefined(bias);
  launch_layer_norm_forward(input.scalar_type(), input.size(0), input.size(1), dense_input.const_data_ptr(),
                            pointer_or_null(dense_weight), pointer_or_null(dense_bias), eps, output.mutable_data_ptr(),
                            mean.mutable_data_ptr(), rstd.mutable_data_ptr(), current_stream(input));
}

void layer_norm_rows_backward(const Tensor& grad_output, const Tensor& input, const Tensor& mean, const Tensor& rstd,
                              const Tensor& weight, const Tensor& d_input) {
  const Tensor dense_grad = grad_output.contiguous(), dense_input = input.contiguous();
  const Tensor dense_weight = dense_or_undefined(weight);
  launch_layer_norm_backward(input.scalar_type(), input.size(0), input.size(1), dense_grad.const_data_ptr(),
                             dense_input.const_data_ptr(), mean.const_data_ptr(), rstd.const_data_ptr(),
                             pointer_or_null(dense_weight), d_input.mutable_data_ptr(), current_stream(input));
}

void layer_norm_columns_backward(const Tensor& grad_output, const Tensor& input, const Tensor& mean, const Tensor& rstd,
                                 const Tensor& d_weight, const Tensor& d_bias) {
  const Tensor dense_grad = grad_output.contiguous(), dense_input = input.contiguous();
  launch_layer_norm_columns(input.scalar_type(), input.size(0), input.size(1), d_weight.size(0),
                            dense_grad.const_data_ptr(), dense_input.const_data_ptr(), mean.const_data_ptr(),
                            rstd.const_data_ptr(), d_weight.mutable_data_ptr(), d_bias.mutable_data_ptr(),
                            current_stream(input));
}

void layer_norm_matrix_backward(const Tensor& grad_output, const Tensor& input, const Tensor& mean, const Tensor& rstd,
                                const Tensor& weight, const Tensor& d_input, const Tensor& d_weight,
                                const Tensor& d_bias) {
  layer_norm_in_two_passes(grad_output, input, mean, rstd, weight, d_input, d_weight, d_bias);
}

}  // namespace OPERATOR_NAMESPACE
