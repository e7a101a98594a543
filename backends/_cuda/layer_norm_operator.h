// LayerNorm over kernels, once for the CUDA backends: what they allocate and launch. The operator around it, which
// aten-cpp shares, is in layer_norm_autograd.h.
//
// The input is seen as a matrix of rows, one for each mean, and columns, the normalised elements.
//
// A backend includes this header in one source file, and defines the three functions that are declared first.
#pragma once

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <limits>
#include <tuple>
#include <vector>

#include "layer_norm_autograd.h"
#include "operator.h"

namespace OPERATOR_NAMESPACE {

// All take matrices of (rows, columns); weight and bias, of (1, columns), may be undefined; mean and rstd are
// contiguous and have an element a row. Outputs are contiguous, inputs need not be; nothing is empty.

/// Writes output, mean and rstd.
void layer_norm_rows_forward(const Tensor& input, const Tensor& weight, const Tensor& bias, double eps,
                             const Tensor& output, const Tensor& mean, const Tensor& rstd);

/// Writes d_input.
void layer_norm_rows_backward(const Tensor& grad_output, const Tensor& input, const Tensor& mean, const Tensor& rstd,
                              const Tensor& weight, const Tensor& d_input);

/// Writes, for each of as many parts as d_weight and d_bias have rows, the sums over the rows of that part: of
/// grad_output * xhat to d_weight, of grad_output to d_bias. Both are (parts, columns), in the dtype of rstd.
void layer_norm_columns_backward(const Tensor& grad_output, const Tensor& input, const Tensor& mean, const Tensor& rstd,
                                 const Tensor& d_weight, const Tensor& d_bias);

/// Into how many parts the rows are divided for the sums over them: enough to fill a GPU, few enough to add up.
constexpr int64_t kMaxParts = 256;

inline Tensor layer_norm_matrix(const Tensor& tensor, int64_t rows, int64_t columns) {
  return tensor.reshape({rows, columns});
}

inline Tensor layer_norm_matrix(const OptionalTensor& tensor, int64_t columns) {
  return tensor.has_value() ? tensor->reshape({1, columns}) : Tensor();
}

inline std::tuple<Tensor, Tensor, Tensor> layer_norm_forward(const Tensor& input, c10::SymIntArrayRef normalized_shape,
                                                             const OptionalTensor& weight, const OptionalTensor& bias,
                                                             double eps) {
  layer_norm_check_forward_arguments(input, normalized_shape, weight, bias);
  check_device("layer_norm", input);
  const c10::DeviceGuard on_device(input.device());
  const Tensor output = at::empty(input.sizes(), input.options());
  const auto statistics = input.options().dtype(layer_norm_statistics_dtype(input));
  const auto shape = layer_norm_statistics_shape(input, normalized_shape.size());
  // A row of no elements has neither: the mean of nothing is NaN, as for torch.
  const Tensor mean = at::full_symint(shape, std::numeric_limits<double>::quiet_NaN(), statistics);
  const Tensor rstd = mean.clone();
  if (input.numel() > 0) {
    const int64_t rows = mean.numel(), columns = input.numel() / rows;
    layer_norm_rows_forward(layer_norm_matrix(input, rows, columns), layer_norm_matrix(weight, columns),
                            layer_norm_matrix(bias, columns), eps, output.view({rows, columns}), mean, rstd);
  }
  return {output, mean, rstd};
}

inline std::vector<Tensor> layer_norm_backward(const Tensor& grad_output, const Tensor& input, const Tensor& mean,
                                               const Tensor& rstd, const OptionalTensor& weight, int64_t normalized,
                                               LayerNormWanted wanted) {
  layer_norm_check_backward_arguments(grad_output, input, mean, rstd, weight, normalized);
  check_device("layer_norm", input);
  const c10::DeviceGuard on_device(input.device());
  const auto shape = input.sizes().slice(input.dim() - normalized);
  std::vector<Tensor> gradients;
  if (input.numel() == 0) {
    for (size_t k = 0; k < wanted.size(); ++k) {
      if (wanted[k]) gradients.push_back(at::zeros(k == 0 ? input.sizes() : shape, input.options()));
    }
    return gradients;
  }
  const int64_t rows = mean.numel(), columns = input.numel() / rows;
  const Tensor g = layer_norm_matrix(grad_output, rows, columns), x = layer_norm_matrix(input, rows, columns);
  const Tensor dense_mean = mean.contiguous(), dense_rstd = rstd.contiguous();
  if (wanted[0]) {
    gradients.push_back(at::empty(input.sizes(), input.options()));
    layer_norm_rows_backward(g, x, dense_mean, dense_rstd, layer_norm_matrix(weight, columns),
                             gradients.back().view({rows, columns}));
  }
  if (wanted[1] || wanted[2]) {
    const Tensor d_weight = at::empty({std::min(rows, kMaxParts), columns}, rstd.options());
    const Tensor d_bias = at::empty_like(d_weight);
    layer_norm_columns_backward(g, x, dense_mean, dense_rstd, d_weight, d_bias);
    const auto total = [&](const Tensor& parts) { return parts.sum(0).to(input.scalar_type()).view(shape); };
    if (wanted[1]) gradients.push_back(total(d_weight));
    if (wanted[2]) gradients.push_back(total(d_bias));
  }
  return gradients;
}

}  // namespace OPERATOR_NAMESPACE
