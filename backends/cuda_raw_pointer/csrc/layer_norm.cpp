// LayerNorm over raw pointers: layer_norm_passes.h with the kernels of layer_norm.cu.
#include "layer_norm_rows.h"

namespace OPERATOR_NAMESPACE {

void layer_norm_rows_forward(const Tensor& input, const Tensor& weight, const Tensor& bias, double eps,
                             const Tensor& output, const Tensor& mean, const Tensor& rstd) {
  rows_forward_over_pointers(input, weight, bias, eps, output, mean, rstd);
}

void layer_norm_matrix_backward(const Tensor& grad_output, const Tensor& input, const Tensor& mean, const Tensor& rstd,
                                const Tensor& weight, const Tensor& d_input, const Tensor& d_weight,
                                const Tensor& d_bias) {
  layer_norm_in_two_passes(grad_output, input, mean, rstd, weight, d_input, d_weight, d_bias);
}

}  // namespace OPERATOR_NAMESPACE
