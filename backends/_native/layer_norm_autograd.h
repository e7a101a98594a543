// The LayerNorm operator of all compiled backends, except the two functions that compute: argument checks,
// differentiable formulae, Meta kernels, and the traits by which registration.h registers it.
//
//   layer_norm            what users call. Differentiable, twice too
//   layer_norm_forward    (output, mean, rstd); mean and rstd are those of each row, in float or wider
//   layer_norm_backward   the gradients that are wanted, in the order of the inputs
//
// Between forward and backward only mean and rstd, two numbers a row, are kept besides the inputs.
//
// A backend includes this header in one source file, and defines the two functions that are declared first.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <array>
#include <optional>
#include <tuple>
#include <vector>

#include "arguments.h"
#include "registration.h"

namespace OPERATOR_NAMESPACE {

using OptionalTensor = std::optional<Tensor>;

/// The inputs that may have a gradient, in their order.
namespace LayerNormInput {
enum : size_t { input, weight, bias, count };
}

/// For each of them: whether its gradient is wanted.
using LayerNormWanted = WantedOf<LayerNormInput::count>;

/// mean and rstd have the shape of input with its last `normalized_shape.size()` dimensions as 1.
std::tuple<Tensor, Tensor, Tensor> layer_norm_forward(const Tensor& input, c10::SymIntArrayRef normalized_shape,
                                                      const OptionalTensor& weight, const OptionalTensor& bias,
                                                      double eps);

/// `normalized` is the number of normalised dimensions.
std::vector<Tensor> layer_norm_backward(const Tensor& grad_output, const Tensor& input, const Tensor& mean,
                                        const Tensor& rstd, const OptionalTensor& weight, int64_t normalized,
                                        LayerNormWanted wanted);

// ---------------------------------------------------------------------------------------------------------------------
// Argument checks. The caller chooses the ranks, so shapes are checked against each other.

inline c10::SymDimVector as_vector(c10::SymIntArrayRef sizes) { return {sizes.begin(), sizes.end()}; }

/// Raises unless `input`, and `tensor` if it is there, are dense tensors of one dtype and device, and `tensor` is of
/// shape `expected`.
inline void layer_norm_check_tensor(const Tensor& input, const char* name, const OptionalTensor& tensor,
                                    const char* rule, c10::SymIntArrayRef expected) {
  if (tensor.has_value()) {
    TORCH_CHECK_VALUE(tensor->dim() != static_cast<int64_t>(expected.size()) || tensor->sym_sizes() == expected,
                      "layer_norm: ", name, " was ", tensor->sym_sizes(), ", but should be ", rule, " = ", expected,
                      ", where input is ", input.sym_sizes());
    check_arguments("layer_norm",
                    {{"input", input, "(*, *normalized_shape)", as_vector(input.sym_sizes())},
                     {name, *tensor, rule, as_vector(expected)}},
                    {});
  }
}

inline void layer_norm_check_forward_arguments(const Tensor& input, c10::SymIntArrayRef normalized_shape,
                                               const OptionalTensor& weight, const OptionalTensor& bias) {
  layer_norm_check_tensor(input, "input", input, "(*, *normalized_shape)", input.sym_sizes());
  const int64_t rank = normalized_shape.size();
  TORCH_CHECK_VALUE(rank > 0, "layer_norm: normalized_shape was [], but should name at least one dimension of input");
  TORCH_CHECK_VALUE(rank <= input.dim() && input.sym_sizes().slice(input.dim() - rank) == normalized_shape,
                    "layer_norm: normalized_shape was ", normalized_shape, ", but should be the last ", rank,
                    " dimensions of input, whose shape is ", input.sym_sizes());
  layer_norm_check_tensor(input, "weight", weight, "normalized_shape", normalized_shape);
  layer_norm_check_tensor(input, "bias", bias, "normalized_shape", normalized_shape);
}

/// The shape of mean and rstd.
inline c10::SymDimVector layer_norm_statistics_shape(const Tensor& input, int64_t normalized) {
  c10::SymDimVector shape = as_vector(input.sym_sizes());
  std::fill(shape.end() - normalized, shape.end(), 1);
  return shape;
}

/// The dtype in which rows are normalised: float for half types, otherwise the dtype itself.
inline at::ScalarType layer_norm_statistics_dtype(const Tensor& input) {
  const at::ScalarType dtype = input.scalar_type();
  return dtype == at::kHalf || dtype == at::kBFloat16 ? at::kFloat : dtype;
}

inline void layer_norm_check_backward_arguments(const Tensor& grad_output, const Tensor& input, const Tensor& mean,
                                                const Tensor& rstd, const OptionalTensor& weight, int64_t normalized) {
  TORCH_CHECK_VALUE(normalized > 0 && normalized <= input.dim(), "layer_norm: normalized was ", normalized,
                    ", but should be from 1 to the rank of input, ", input.dim());
  const c10::SymIntArrayRef shape = input.sym_sizes().slice(input.dim() - normalized);
  layer_norm_check_tensor(input, "grad_output", grad_output, "the shape of input", input.sym_sizes());
  layer_norm_check_tensor(input, "weight", weight, "normalized_shape", shape);
  const c10::SymDimVector rows = layer_norm_statistics_shape(input, normalized);
  const at::ScalarType dtype = layer_norm_statistics_dtype(input);
  for (const auto& [name, tensor] : {std::pair<const char*, const Tensor&>{"mean", mean}, {"rstd", rstd}}) {
    TORCH_CHECK_TYPE(tensor.scalar_type() == dtype && tensor.device() == input.device(), "layer_norm: ", name, " was ",
                     tensor.scalar_type(), " on ", tensor.device(), ", but should be ", dtype, " on ", input.device());
    TORCH_CHECK_VALUE(tensor.sym_sizes() == c10::SymIntArrayRef(rows), "layer_norm: ", name, " was ",
                      tensor.sym_sizes(), ", but should be ", c10::SymIntArrayRef(rows));
  }
}

// ---------------------------------------------------------------------------------------------------------------------
// The formulae of spec/layer_norm.py in differentiable operations

/// The last `normalized` dimensions, counted from the end.
inline std::vector<int64_t> layer_norm_dims(int64_t normalized) {
  std::vector<int64_t> dims;
  for (int64_t k = -normalized; k < 0; ++k) dims.push_back(k);
  return dims;
}

/// (mean, rstd) of each row of `x`, which is in the dtype of the statistics.
inline std::tuple<Tensor, Tensor> layer_norm_statistics(const Tensor& x, int64_t normalized, double eps) {
  const std::vector<int64_t> dims = layer_norm_dims(normalized);
  const Tensor mean = x.mean(dims, /*keepdim=*/true);
  const Tensor centred = x - mean;
  return {mean, ((centred * centred).mean(dims, /*keepdim=*/true) + eps).rsqrt()};
}

/// The sum over all rows; a copy where there is one row alone, so that it shares no storage with `tensor`.
inline Tensor layer_norm_sum_of_rows(const Tensor& tensor, int64_t normalized) {
  if (tensor.dim() == normalized) return tensor.clone();
  std::vector<int64_t> rows;
  for (int64_t k = 0; k < tensor.dim() - normalized; ++k) rows.push_back(k);
  return tensor.sum(rows);
}

/// The gradients that are wanted, each with a storage of its own.
inline std::vector<Tensor> layer_norm_gradients(const Tensor& grad_output, const Tensor& input, const Tensor& mean,
                                                const Tensor& rstd, const OptionalTensor& weight, int64_t normalized,
                                                LayerNormWanted wanted) {
  const std::vector<int64_t> dims = layer_norm_dims(normalized);
  const at::ScalarType dtype = input.scalar_type();
  const Tensor g = grad_output.to(rstd.scalar_type());
  const Tensor xhat = (input - mean) * rstd;
  std::vector<Tensor> gradients;
  if (wanted[LayerNormInput::input]) {
    const Tensor h = weight.has_value() ? g * *weight : g;
    const Tensor d_x = rstd * (h - h.mean(dims, true) - xhat * (h * xhat).mean(dims, true));
    gradients.push_back(d_x.to(dtype).contiguous());
  }
  if (wanted[LayerNormInput::weight]) gradients.push_back(layer_norm_sum_of_rows(g * xhat, normalized).to(dtype));
  if (wanted[LayerNormInput::bias]) gradients.push_back(layer_norm_sum_of_rows(g, normalized).to(dtype));
  return gradients;
}

// ---------------------------------------------------------------------------------------------------------------------
// Meta kernels: the shapes alone, symbolic ones too

inline std::tuple<Tensor, Tensor, Tensor> layer_norm_forward_meta(const Tensor& input,
                                                                  c10::SymIntArrayRef normalized_shape,
                                                                  const OptionalTensor& weight,
                                                                  const OptionalTensor& bias, double) {
  layer_norm_check_forward_arguments(input, normalized_shape, weight, bias);
  const c10::SymDimVector rows = layer_norm_statistics_shape(input, normalized_shape.size());
  const auto options = input.options().dtype(layer_norm_statistics_dtype(input));
  return {at::empty_symint(input.sym_sizes(), input.options()), at::empty_symint(rows, options),
          at::empty_symint(rows, options)};
}

inline std::vector<Tensor> layer_norm_backward_meta(const Tensor& grad_output, const Tensor& input, const Tensor& mean,
                                                    const Tensor& rstd, const OptionalTensor& weight,
                                                    int64_t normalized, LayerNormWanted wanted) {
  layer_norm_check_backward_arguments(grad_output, input, mean, rstd, weight, normalized);
  const c10::SymIntArrayRef shape = input.sym_sizes().slice(input.dim() - normalized);
  return empty_gradients<LayerNormInput::count>({input.sym_sizes(), shape, shape}, wanted, input.options());
}

// ---------------------------------------------------------------------------------------------------------------------
// What registration.h needs to know

struct LayerNormTraits {
  static constexpr const char* name = "layer_norm";
  static constexpr const char* arguments =
      "Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05";
  static constexpr const char* outputs = "Tensor output";
  static constexpr const char* kept = "Tensor mean, Tensor rstd";
  static constexpr const char* backward_arguments =
      "Tensor grad_output, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, int normalized";
  static constexpr std::array inputs = {"input", "weight", "bias"};
  using Signature = Tensor(const Tensor& input, c10::SymIntArrayRef normalized_shape, const OptionalTensor& weight,
                           const OptionalTensor& bias, double eps);
  static constexpr auto* forward = &layer_norm_forward;
  static constexpr auto* backward = &layer_norm_backward;
  static constexpr auto* forward_meta = &layer_norm_forward_meta;
  static constexpr auto* backward_meta = &layer_norm_backward_meta;
  static constexpr auto* autocast = &cast_to_float32;
  static constexpr bool may_be_replaced = true;  // cuda-fused: without mean and rstd

  static void save(AutogradContext* context, const std::tuple<Tensor, Tensor, Tensor>& made, const Tensor& input,
                   c10::SymIntArrayRef normalized_shape, const OptionalTensor& weight, const OptionalTensor&,
                   double eps) {
    context->save_for_backward({input, weight.value_or(Tensor()), std::get<1>(made), std::get<2>(made)});
    context->saved_data["normalized"] = static_cast<int64_t>(normalized_shape.size());
    context->saved_data["eps"] = eps;
  }

  static std::vector<Tensor> gradients(AutogradContext* context, const variable_list& saved,
                                       const variable_list& cotangents, LayerNormWanted wanted, bool differentiable) {
    const Tensor &input = saved[0], &mean = saved[2], &rstd = saved[3], &grad_output = cotangents[0];
    const OptionalTensor weight = saved[1].defined() ? OptionalTensor(saved[1]) : std::nullopt;
    const int64_t normalized = context->saved_data["normalized"].toInt();
    if (differentiable) {
      const auto [tracked_mean, tracked_rstd] =
          layer_norm_statistics(input.to(rstd.scalar_type()), normalized, context->saved_data["eps"].toDouble());
      return layer_norm_gradients(grad_output, input, tracked_mean, tracked_rstd, weight, normalized, wanted);
    }
    return backward_operator<LayerNormTraits>().call(grad_output, input, mean, rstd, weight, normalized, wanted);
  }
};

TORCH_LIBRARY_FRAGMENT(OPERATOR_NAMESPACE, m) { register_operator<LayerNormTraits>(m); }

}  // namespace OPERATOR_NAMESPACE
