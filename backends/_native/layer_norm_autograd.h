// All of the LayerNorm operator but the two functions that compute, once for the compiled backends: argument checks,
// autograd, double backward, Meta kernels and registration.
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
#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <array>
#include <optional>
#include <tuple>
#include <vector>

#include "arguments.h"
#include "autocast.h"
#include "autograd.h"

namespace OPERATOR_NAMESPACE {

using OptionalTensor = std::optional<Tensor>;

/// For input, weight and bias: whether its gradient is wanted.
using LayerNormWanted = WantedOf<3>;

/// mean and rstd have the shape of input with its last `normalized_shape.size()` dimensions as 1.
std::tuple<Tensor, Tensor, Tensor> layer_norm_forward(const Tensor& input, c10::SymIntArrayRef normalized_shape,
                                                      const OptionalTensor& weight, const OptionalTensor& bias,
                                                      double eps);

/// `normalized` is the number of normalised dimensions.
std::vector<Tensor> layer_norm_backward(const Tensor& grad_output, const Tensor& input, const Tensor& mean,
                                        const Tensor& rstd, const OptionalTensor& weight, int64_t normalized,
                                        LayerNormWanted wanted);

// ---------------------------------------------------------------------------------------------------------------------
// Argument checks. The ranks are the caller's, so shapes are checked against each other.

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
  if (wanted[0]) {
    const Tensor h = weight.has_value() ? g * *weight : g;
    const Tensor d_x = rstd * (h - h.mean(dims, true) - xhat * (h * xhat).mean(dims, true));
    gradients.push_back(d_x.to(dtype).contiguous());
  }
  if (wanted[1]) gradients.push_back(layer_norm_sum_of_rows(g * xhat, normalized).to(dtype));
  if (wanted[2]) gradients.push_back(layer_norm_sum_of_rows(g, normalized).to(dtype));
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
  return empty_gradients<3>({input.sym_sizes(), shape, shape}, wanted, input.options());
}

// ---------------------------------------------------------------------------------------------------------------------
// Autograd

inline const auto& layer_norm_forward_operator() {
  static const auto op =
      find_operator<decltype(layer_norm_forward)>(C10_STRINGIZE(OPERATOR_NAMESPACE) "::layer_norm_forward");
  return op;
}

inline const auto& layer_norm_backward_operator() {
  static const auto op =
      find_operator<decltype(layer_norm_backward)>(C10_STRINGIZE(OPERATOR_NAMESPACE) "::layer_norm_backward");
  return op;
}

struct LayerNormFunction : torch::autograd::Function<LayerNormFunction> {
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& input, const OptionalTensor& weight,
                        const OptionalTensor& bias, c10::SymIntArrayRef normalized_shape, double eps) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    const auto [output, mean, rstd] = layer_norm_forward_operator().call(input, normalized_shape, weight, bias, eps);
    context->save_for_backward({input, weight.value_or(Tensor()), mean, rstd});
    context->saved_data["normalized"] = static_cast<int64_t>(normalized_shape.size());
    context->saved_data["has_bias"] = bias.has_value();
    context->saved_data["eps"] = eps;
    return output;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& cotangents) {
    const torch::autograd::variable_list saved = context->get_saved_variables();
    const Tensor &input = saved[0], &mean = saved[2], &rstd = saved[3], &grad_output = cotangents[0];
    const OptionalTensor weight = saved[1].defined() ? OptionalTensor(saved[1]) : std::nullopt;
    const int64_t normalized = context->saved_data["normalized"].toInt();
    // Autograd numbers only the tensors that are there.
    size_t edge = 1;
    LayerNormWanted wanted = {context->needs_input_grad(0), false, false};
    if (weight.has_value()) wanted[1] = context->needs_input_grad(edge++);
    if (context->saved_data["has_bias"].toBool()) wanted[2] = context->needs_input_grad(edge);

    std::vector<Tensor> computed;
    if (at::GradMode::is_enabled()) {  // create_graph=True: with statistics that autograd has followed
      const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
      const auto [tracked_mean, tracked_rstd] =
          layer_norm_statistics(input.to(rstd.scalar_type()), normalized, context->saved_data["eps"].toDouble());
      computed = layer_norm_gradients(grad_output, input, tracked_mean, tracked_rstd, weight, normalized, wanted);
    } else {
      const at::AutoDispatchBelowADInplaceOrView below_autograd;
      computed = layer_norm_backward_operator().call(grad_output, input, mean, rstd, weight, normalized, wanted);
    }
    torch::autograd::variable_list gradients = in_places(computed, wanted);
    gradients.resize(5);  // normalized_shape and eps have none
    return gradients;
  }
};

/// layer_norm below autograd.
inline Tensor layer_norm(const Tensor& input, c10::SymIntArrayRef normalized_shape, const OptionalTensor& weight,
                         const OptionalTensor& bias, double eps) {
  return std::get<0>(layer_norm_forward_operator().call(input, normalized_shape, weight, bias, eps));
}

inline Tensor layer_norm_autograd(const Tensor& input, c10::SymIntArrayRef normalized_shape,
                                  const OptionalTensor& weight, const OptionalTensor& bias, double eps) {
  check_plain("layer_norm", {{"input", input}});
  if (weight.has_value()) check_plain("layer_norm", {{"weight", *weight}});
  if (bias.has_value()) check_plain("layer_norm", {{"bias", *bias}});
  if (is_tracked(input) || (weight.has_value() && is_tracked(*weight)) || (bias.has_value() && is_tracked(*bias))) {
    return LayerNormFunction::apply(input, weight, bias, normalized_shape, eps);
  }
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  return layer_norm(input, normalized_shape, weight, bias, eps);
}

/// layer_norm under autocast: in float32, as spec/layer_norm.py has it.
template <c10::DeviceType device>
Tensor layer_norm_autocast(const Tensor& input, c10::SymIntArrayRef normalized_shape, const OptionalTensor& weight,
                           const OptionalTensor& bias, double eps) {
  static const auto op = find_operator<decltype(layer_norm)>(C10_STRINGIZE(OPERATOR_NAMESPACE) "::layer_norm");
  const AutocastOff off = cast_to_float32(device);
  return op.call(off.cast(input), normalized_shape, off.cast(weight), off.cast(bias), eps);
}

TORCH_LIBRARY_FRAGMENT(OPERATOR_NAMESPACE, m) {
  m.def(
      "layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05) -> "
      "Tensor output",
      {at::Tag::pt2_compliant_tag});
  m.def(
      "layer_norm_forward(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> "
      "(Tensor output, Tensor mean, Tensor rstd)",
      {at::Tag::pt2_compliant_tag});
  m.def(
      "layer_norm_backward(Tensor grad_output, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, int normalized, "
      "bool[3] wanted) -> Tensor[]",
      {at::Tag::pt2_compliant_tag});
}

// For every device and layout, so that a wrong one meets our checks, which name the argument.
TORCH_LIBRARY_IMPL(OPERATOR_NAMESPACE, CompositeExplicitAutograd, m) {
  m.impl("layer_norm", &layer_norm);
  m.impl("layer_norm_forward", &layer_norm_forward);
  m.impl("layer_norm_backward", &layer_norm_backward);
}

TORCH_LIBRARY_IMPL(OPERATOR_NAMESPACE, AutocastCPU, m) {
  m.impl("layer_norm", &layer_norm_autocast<c10::DeviceType::CPU>);
}

TORCH_LIBRARY_IMPL(OPERATOR_NAMESPACE, AutocastCUDA, m) {
  m.impl("layer_norm", &layer_norm_autocast<c10::DeviceType::CUDA>);
}

TORCH_LIBRARY_IMPL(OPERATOR_NAMESPACE, Meta, m) {
  m.impl("layer_norm_forward", &layer_norm_forward_meta);
  m.impl("layer_norm_backward", &layer_norm_backward_meta);
}

// The parts are not differentiable by themselves: to backpropagate through them raises.
TORCH_LIBRARY_IMPL(OPERATOR_NAMESPACE, Autograd, m) {
  m.impl("layer_norm", &layer_norm_autograd);
  m.impl("layer_norm_forward", torch::autograd::autogradNotImplementedFallback());
  m.impl("layer_norm_backward", torch::autograd::autogradNotImplementedFallback());
}

}  // namespace OPERATOR_NAMESPACE
