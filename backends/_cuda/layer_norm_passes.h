// Backward of LayerNorm in two passes: one over rows, for the gradient of the input, and one over columns, for those of
// weight and bias, in parts that are added up afterwards.
//
// A backend that includes this header defines the two functions that are declared first.
#pragma once

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/sum.h>

#include <algorithm>

#include "layer_norm_operator.h"

namespace OPERATOR_NAMESPACE {

/// Writes d_input.
void layer_norm_rows_backward(const Tensor& grad_output, const Tensor& input, const Tensor& mean, const Tensor& rstd,
                              const Tensor& weight, const Tensor& d_input);

/// Writes, for each of as many parts as d_weight and d_bias have rows, the sums over the rows of that part: of
/// grad_output * xhat to d_weight, of grad_output to d_bias. Both are (parts, columns), in the dtype of rstd.
void layer_norm_columns_backward(const Tensor& grad_output, const Tensor& input, const Tensor& mean, const Tensor& rstd,
                                 const Tensor& d_weight, const Tensor& d_bias);

/// Into how many parts the rows are divided for the sums over them: enough to fill a GPU, and few enough to be added up
/// quickly.
constexpr int64_t kMaxParts = 256;

/// As `layer_norm_matrix_backward` in layer_norm_operator.h.
inline void layer_norm_in_two_passes(const Tensor& grad_output, const Tensor& input, const Tensor& mean,
                                     const Tensor& rstd, const Tensor& weight, const Tensor& d_input,
                                     const Tensor& d_weight, const Tensor& d_bias) {
  if (d_input.defined()) layer_norm_rows_backward(grad_output, input, mean, rstd, weight, d_input);
  if (!d_weight.defined() && !d_bias.defined()) return;
  const Tensor of_weight = at::empty({std::min(input.size(0), kMaxParts), input.size(1)}, rstd.options());
  const Tensor of_bias = at::empty_like(of_weight);
  layer_norm_columns_backward(grad_output, input, mean, rstd, of_weight, of_bias);
  if (d_weight.defined()) d_weight.copy_(of_weight.sum(0));
  if (d_bias.defined()) d_bias.copy_(of_bias.sum(0));
}

}  // namespace OPERATOR_NAMESPACE
