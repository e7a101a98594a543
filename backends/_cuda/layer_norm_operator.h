// LayerNorm for the CUDA backends: what they allocate and launch. The operator itself, which aten-cpp shares, is in
// layer_norm_autograd.h.
//
// The input is seen as a matrix of rows, one for each mean, and columns, the normalised elements.
//
// A backend includes this header in one source file, and defines the two functions that are declared first; the second
// of them may be layer_norm_passes.h.
#pragma once

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/DeviceGuard.h>

#include <limits>
#include <tuple>
#include <vector>

#include "layer_norm_autograd.h"
#include "operator.h"

namespace OPERATOR_NAMESPACE {

// All take matrices of (rows, columns); weight and bias, of (1, columns), may be undefined; mean and rstd are
// contiguous and have an element a row. Outputs are contiguous, inputs need not be; nothing is empty.

/// Writes output, mean and rstd; a backend that registers `layer_norm_alone` gets undefined mean and rstd from it.
void layer_norm_rows_forward(const Tensor& input, const Tensor& weight, const Tensor& bias, double eps,
                             const Tensor& output, const Tensor& mean, const Tensor& rstd);

/// Writes those of d_input, d_weight and d_bias that are defined; the last two are of (columns,). All are in the dtype
/// of the input.
void layer_norm_matrix_backward(const Tensor& grad_output, const Tensor& input, const Tensor& mean, const Tensor& rstd,
                                const Tensor& weight, const Tensor& d_input, const Tensor& d_weight,
                                const Tensor& d_bias);

inline Tensor layer_norm_matrix(const Tensor& tensor, int64_t rows, int64_t columns) {
  return tensor.reshape({rows, columns});
}

inline Tensor layer_norm_matrix(const OptionalTensor& tensor, int64_t columns) {
  return tensor.has_value() ? tensor->reshape({1, columns}) : Tensor();
}

/// The output, mean and rstd; the last two are undefined if they are not wanted.
inline std::tuple<Tensor, Tensor, Tensor> layer_norm_with_or_without_statistics(const Tensor& input,
                                                                                c10::SymIntArrayRef normalized_shape,
                                                                                const OptionalTensor& weight,
                                                                                const OptionalTensor& bias, double eps,
                                                                                bool wants_statistics) {
  layer_norm_check_forward_arguments(input, normalized_shape, weight, bias);
  check_device("layer_norm", input);
  const c10::DeviceGuard on_device(input.device());
  const Tensor output = at::empty(input.sizes(), input.options());
  Tensor mean, rstd;
  if (wants_statistics) {
    const auto statistics = input.options().dtype(layer_norm_statistics_dtype(input));
    const auto shape = layer_norm_statistics_shape(input, normalized_shape.size());
    mean = at::empty_symint(shape, statistics);
    rstd = at::empty_symint(shape, statistics);
  }
  if (input.numel() > 0) {
    const int64_t columns = c10::multiply_integers(input.sizes().slice(input.dim() - normalized_shape.size()));
    const int64_t rows = input.numel() / columns;
    layer_norm_rows_forward(layer_norm_matrix(input, rows, columns), layer_norm_matrix(weight, columns),
                            layer_norm_matrix(bias, columns), eps, output.view({rows, columns}), mean, rstd);
  } else if (wants_statistics) {
    // The mean and rstd of a row without elements are NaN, as in torch.
    mean.fill_(std::numeric_limits<double>::quiet_NaN());
    rstd.fill_(std::numeric_limits<double>::quiet_NaN());
  }
  return {output, mean, rstd};
}

inline std::tuple<Tensor, Tensor, Tensor> layer_norm_forward(const Tensor& input, c10::SymIntArrayRef normalized_shape,
                                                             const OptionalTensor& weight, const OptionalTensor& bias,
                                                             double eps) {
  return layer_norm_with_or_without_statistics(input, normalized_shape, weight, bias, eps, /*wants_statistics=*/true);
}

/// Where no gradient is wanted, mean and rstd are not written. A backend may register it for `layer_norm`.
inline Tensor layer_norm_alone(const Tensor& input, c10::SymIntArrayRef normalized_shape, const OptionalTensor& weight,
                               const OptionalTensor& bias, double eps) {
  return std::get<0>(
      layer_norm_with_or_without_statistics(input, normalized_shape, weight, bias, eps, /*wants_statistics=*/false));
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
  for (size_t k = 0; k < wanted.size(); ++k) {
    if (wanted[k]) gradients.push_back(at::empty(k == 0 ? input.sizes() : shape, input.options()));
  }
  const auto places = in_places(gradients, wanted);
  const auto seen_as = [](const Tensor& gradient, at::IntArrayRef sizes) {
    return gradient.defined() ? gradient.view(sizes) : gradient;
  };
  layer_norm_matrix_backward(g, x, dense_mean, dense_rstd, layer_norm_matrix(weight, columns),
                             seen_as(places[0], {rows, columns}), seen_as(places[1], {columns}),
                             seen_as(places[2], {columns}));
  return gradients;
}

}  // namespace OPERATOR_NAMESPACE
