// All of the MLP operator but the two functions that compute, once for the compiled backends: argument checks,
// autograd, double backward, Meta kernels and registration.
//
//   mlp            what users call. Differentiable, twice too
//   mlp_forward    (output, hidden)
//   mlp_backward   the gradients that are wanted, in the order of the inputs
//
// Between forward and backward only `hidden` is kept besides the inputs: it says where relu let its argument through,
// and is a factor of the gradient of the output weights, so that no product is made a second time.
//
// A backend includes this header in one source file, and defines the two functions that are declared first.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/threshold_backward.h>
#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <array>
#include <tuple>
#include <vector>

#include "arguments.h"
#include "autocast.h"
#include "autograd.h"

namespace OPERATOR_NAMESPACE {

/// For input, hidden_weights, hidden_bias, output_weights and output_bias: whether its gradient is wanted.
using MlpWanted = WantedOf<5>;

std::tuple<Tensor, Tensor> mlp_forward(const Tensor& input, const Tensor& hidden_weights, const Tensor& hidden_bias,
                                       const Tensor& output_weights, const Tensor& output_bias);

std::vector<Tensor> mlp_backward(const Tensor& grad_output, const Tensor& hidden, const Tensor& input,
                                 const Tensor& hidden_weights, const Tensor& output_weights, MlpWanted wanted);

// ---------------------------------------------------------------------------------------------------------------------
// Argument checks

// Sizes as in spec/mlp.py: batch B, input_features F, hidden_size H, output_size O.

inline void mlp_check_forward_arguments(const Tensor& input, const Tensor& hidden_weights, const Tensor& hidden_bias,
                                        const Tensor& output_weights, const Tensor& output_bias) {
  const c10::SymInt B = size_of(input, 0), F = size_of(input, 1);
  const c10::SymInt H = size_of(hidden_weights, 0), O = size_of(output_weights, 0);
  check_arguments("mlp",
                  {{"input", input, "(batch, input_features)", {B, F}},
                   {"hidden_weights", hidden_weights, "(hidden_size, input_features)", {H, F}},
                   {"hidden_bias", hidden_bias, "(hidden_size,)", {H}},
                   {"output_weights", output_weights, "(output_size, hidden_size)", {O, H}},
                   {"output_bias", output_bias, "(output_size,)", {O}}},
                  {{"batch", B, "input.shape[0]"},
                   {"input_features", F, "input.shape[1]"},
                   {"hidden_size", H, "hidden_weights.shape[0]"},
                   {"output_size", O, "output_weights.shape[0]"}});
}

inline void mlp_check_backward_arguments(const Tensor& grad_output, const Tensor& hidden, const Tensor& input,
                                         const Tensor& hidden_weights, const Tensor& output_weights) {
  const c10::SymInt B = size_of(input, 0), F = size_of(input, 1);
  const c10::SymInt H = size_of(hidden_weights, 0), O = size_of(output_weights, 0);
  check_arguments("mlp",
                  {{"input", input, "(batch, input_features)", {B, F}},
                   {"hidden_weights", hidden_weights, "(hidden_size, input_features)", {H, F}},
                   {"output_weights", output_weights, "(output_size, hidden_size)", {O, H}},
                   {"hidden", hidden, "(batch, hidden_size)", {B, H}},
                   {"grad_output", grad_output, "(batch, output_size)", {B, O}}},
                  {{"batch", B, "input.shape[0]"},
                   {"input_features", F, "input.shape[1]"},
                   {"hidden_size", H, "hidden_weights.shape[0]"},
                   {"output_size", O, "output_weights.shape[0]"}});
}

// ---------------------------------------------------------------------------------------------------------------------
// The formulae of spec/mlp.py, in differentiable operations

/// Of a dense input: in bfloat16 oneDNN's products read beyond the end of a row (torch 2.13).
inline Tensor mlp_hidden(const Tensor& input, const Tensor& hidden_weights, const Tensor& hidden_bias) {
  return at::addmm(hidden_bias, input.contiguous(), hidden_weights.t()).relu();
}

/// Whether any gradient is wanted that goes through relu: of input, hidden_weights or hidden_bias.
inline bool mlp_wants_hidden(MlpWanted wanted) { return wanted[0] || wanted[1] || wanted[2]; }

/// The matrix products of the gradient, those that are wanted, each with a storage of its own. `d_z` may be undefined
/// where nothing behind it is wanted.
inline std::vector<Tensor> mlp_wanted_gradients(const Tensor& grad_output, const Tensor& d_z, const Tensor& hidden,
                                                const Tensor& input, const Tensor& hidden_weights, MlpWanted wanted) {
  std::vector<Tensor> gradients;
  if (wanted[0]) gradients.push_back(d_z.mm(hidden_weights));
  if (wanted[1]) gradients.push_back(d_z.t().mm(input));
  if (wanted[2]) gradients.push_back(d_z.sum(0));
  if (wanted[3]) gradients.push_back(grad_output.t().mm(hidden));
  if (wanted[4]) gradients.push_back(grad_output.sum(0));
  return gradients;
}

/// All that is wanted, from the hidden values. Double backward is autograd through this, given hidden values that
/// autograd has followed instead of the saved ones.
inline std::vector<Tensor> mlp_gradients(const Tensor& grad_output, const Tensor& hidden, const Tensor& input,
                                         const Tensor& hidden_weights, const Tensor& output_weights, MlpWanted wanted) {
  Tensor d_z;
  if (mlp_wants_hidden(wanted)) d_z = at::threshold_backward(grad_output.mm(output_weights), hidden, 0);
  return mlp_wanted_gradients(grad_output, d_z, hidden, input, hidden_weights, wanted);
}

// ---------------------------------------------------------------------------------------------------------------------
// Meta kernels: the shapes alone, symbolic ones too

inline std::tuple<Tensor, Tensor> mlp_forward_meta(const Tensor& input, const Tensor& hidden_weights,
                                                   const Tensor& hidden_bias, const Tensor& output_weights,
                                                   const Tensor& output_bias) {
  mlp_check_forward_arguments(input, hidden_weights, hidden_bias, output_weights, output_bias);
  const c10::SymInt batch = input.sym_size(0);
  return {at::empty_symint({batch, output_weights.sym_size(0)}, input.options()),
          at::empty_symint({batch, hidden_weights.sym_size(0)}, input.options())};
}

inline std::vector<Tensor> mlp_backward_meta(const Tensor& grad_output, const Tensor& hidden, const Tensor& input,
                                             const Tensor& hidden_weights, const Tensor& output_weights,
                                             MlpWanted wanted) {
  mlp_check_backward_arguments(grad_output, hidden, input, hidden_weights, output_weights);
  const std::array<c10::SymIntArrayRef, 5> shapes = {input.sym_sizes(), hidden_weights.sym_sizes(),
                                                     hidden_weights.sym_sizes().slice(0, 1), output_weights.sym_sizes(),
                                                     output_weights.sym_sizes().slice(0, 1)};
  return empty_gradients(shapes, wanted, input.options());
}

// ---------------------------------------------------------------------------------------------------------------------
// Autograd

inline const auto& mlp_forward_operator() {
  static const auto op = find_operator<decltype(mlp_forward)>(C10_STRINGIZE(OPERATOR_NAMESPACE) "::mlp_forward");
  return op;
}

inline const auto& mlp_backward_operator() {
  static const auto op = find_operator<decltype(mlp_backward)>(C10_STRINGIZE(OPERATOR_NAMESPACE) "::mlp_backward");
  return op;
}

struct MlpFunction : torch::autograd::Function<MlpFunction> {
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& input, const Tensor& hidden_weights,
                        const Tensor& hidden_bias, const Tensor& output_weights, const Tensor& output_bias) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    const auto [output, hidden] =
        mlp_forward_operator().call(input, hidden_weights, hidden_bias, output_weights, output_bias);
    context->save_for_backward({input, hidden_weights, hidden_bias, output_weights, hidden});
    return output;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& cotangents) {
    const torch::autograd::variable_list saved = context->get_saved_variables();
    const Tensor &input = saved[0], &hidden_weights = saved[1], &hidden_bias = saved[2], &output_weights = saved[3];
    const Tensor &hidden = saved[4], &grad_output = cotangents[0];
    const MlpWanted wanted = wanted_by<5>(context);

    std::vector<Tensor> computed;
    if (at::GradMode::is_enabled()) {  // create_graph=True
      const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
      const Tensor tracked_hidden = mlp_hidden(input, hidden_weights, hidden_bias);
      computed = mlp_gradients(grad_output, tracked_hidden, input, hidden_weights, output_weights, wanted);
    } else {
      const at::AutoDispatchBelowADInplaceOrView below_autograd;
      computed = mlp_backward_operator().call(grad_output, hidden, input, hidden_weights, output_weights, wanted);
    }
    return in_places(computed, wanted);
  }
};

/// mlp below autograd.
inline Tensor mlp(const Tensor& input, const Tensor& hidden_weights, const Tensor& hidden_bias,
                  const Tensor& output_weights, const Tensor& output_bias) {
  return std::get<0>(mlp_forward_operator().call(input, hidden_weights, hidden_bias, output_weights, output_bias));
}

inline Tensor mlp_autograd(const Tensor& input, const Tensor& hidden_weights, const Tensor& hidden_bias,
                           const Tensor& output_weights, const Tensor& output_bias) {
  check_plain("mlp", {{"input", input},
                      {"hidden_weights", hidden_weights},
                      {"hidden_bias", hidden_bias},
                      {"output_weights", output_weights},
                      {"output_bias", output_bias}});
  if (is_tracked(input) || is_tracked(hidden_weights) || is_tracked(hidden_bias) || is_tracked(output_weights) ||
      is_tracked(output_bias)) {
    return MlpFunction::apply(input, hidden_weights, hidden_bias, output_weights, output_bias);
  }
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  return mlp(input, hidden_weights, hidden_bias, output_weights, output_bias);
}

/// mlp under autocast: in the dtype of autocast, as spec/mlp.py has it.
template <c10::DeviceType device>
Tensor mlp_autocast(const Tensor& input, const Tensor& hidden_weights, const Tensor& hidden_bias,
                    const Tensor& output_weights, const Tensor& output_bias) {
  static const auto op = find_operator<decltype(mlp)>(C10_STRINGIZE(OPERATOR_NAMESPACE) "::mlp");
  const AutocastOff off = cast_to_lower(device);
  return op.call(off.cast(input), off.cast(hidden_weights), off.cast(hidden_bias), off.cast(output_weights),
                 off.cast(output_bias));
}

TORCH_LIBRARY_FRAGMENT(OPERATOR_NAMESPACE, m) {
  m.def(
      "mlp(Tensor input, Tensor hidden_weights, Tensor hidden_bias, Tensor output_weights, Tensor output_bias) -> "
      "Tensor output",
      {at::Tag::pt2_compliant_tag});
  m.def(
      "mlp_forward(Tensor input, Tensor hidden_weights, Tensor hidden_bias, Tensor output_weights, "
      "Tensor output_bias) -> (Tensor output, Tensor hidden)",
      {at::Tag::pt2_compliant_tag});
  m.def(
      "mlp_backward(Tensor grad_output, Tensor hidden, Tensor input, Tensor hidden_weights, Tensor output_weights, "
      "bool[5] wanted) -> Tensor[]",
      {at::Tag::pt2_compliant_tag});
}

// For every device and layout, so that a wrong one meets our checks, which name the argument.
TORCH_LIBRARY_IMPL(OPERATOR_NAMESPACE, CompositeExplicitAutograd, m) {
  m.impl("mlp", &mlp);
  m.impl("mlp_forward", &mlp_forward);
  m.impl("mlp_backward", &mlp_backward);
}

TORCH_LIBRARY_IMPL(OPERATOR_NAMESPACE, AutocastCPU, m) { m.impl("mlp", &mlp_autocast<c10::DeviceType::CPU>); }

TORCH_LIBRARY_IMPL(OPERATOR_NAMESPACE, AutocastCUDA, m) { m.impl("mlp", &mlp_autocast<c10::DeviceType::CUDA>); }

TORCH_LIBRARY_IMPL(OPERATOR_NAMESPACE, Meta, m) {
  m.impl("mlp_forward", &mlp_forward_meta);
  m.impl("mlp_backward", &mlp_backward_meta);
}

// The parts are not differentiable by themselves: to backpropagate through them raises.
TORCH_LIBRARY_IMPL(OPERATOR_NAMESPACE, Autograd, m) {
  m.impl("mlp", &mlp_autograd);
  m.impl("mlp_forward", torch::autograd::autogradNotImplementedFallback());
  m.impl("mlp_backward", torch::autograd::autogradNotImplementedFallback());
}

}  // namespace OPERATOR_NAMESPACE
