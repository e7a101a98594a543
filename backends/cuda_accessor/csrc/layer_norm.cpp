// LayerNorm over packed accessors: layer_norm_passes.h with the kernels of layer_norm.cu.
//
// The kernels take any strides, so a tensor that can be viewed as a matrix is not copied.
#include "layer_norm.h"

#include "layer_norm_passes.h"
#include "matrix.h"

namespace OPERATOR_NAMESPACE {

static Matrix<const void> matrix_or_none(const Tensor& tensor) {
  return tensor.defined() ? input_matrix(tensor) : Matrix<const void>{nullptr, {1, 1}, {0, 0}};
}

void layer_norm_rows_forward(const Tensor& input, const Tensor& weight, const Tensor& bias, double eps,
                             const Tensor& output, const Tensor& mean, const Tensor& rstd) {
  launch_layer_norm_forward(input.scalar_type(), input_matrix(input), matrix_or_none(weight), matrix_or_none(bias), eps,
                            output_matrix(output), output_matrix(mean.view({1, -1})), output_matrix(rstd.view({1, -1})),
                            current_stream(input));
}

void layer_norm_rows_backward(const Tensor& grad_output, const Tensor& input, const Tensor& mean, const Tensor& rstd,
                              const Tensor& weight, const Tensor& d_input) {
  launch_layer_norm_backward(input.scalar_type(), input_matrix(grad_output), input_matrix(input),
                             input_matrix(mean.view({1, -1})), input_matrix(rstd.view({1, -1})), matrix_or_none(weight),
                             output_matrix(d_input), current_stream(input));
}

void layer_norm_columns_backward(const Tensor& grad_output, const Tensor& input, const Tensor& mean, const Tensor& rstd,
                                 const Tensor& d_weight, const Tensor& d_bias) {
  launch_layer_norm_columns(input.scalar_type(), input_matrix(grad_output), input_matrix(input),
                            input_matrix(mean.view({1, -1})), input_matrix(rstd.view({1, -1})), output_matrix(d_weight),
                            output_matrix(d_bias), current_stream(input));
}

void layer_norm_matrix_backward(const Tensor& grad_output, const Tensor& input, const Tensor& mean, const Tensor& rstd,
                                const Tensor& weight, const Tensor& d_input, const Tensor& d_weight,
                                const Tensor& d_bias) {
  layer_norm_in_two_passes(grad_output, input, mean, rstd, weight, d_input, d_weight, d_bias);
}

}  // namespace OPERATOR_NAMESPACE
