// The LLTM operator of all compiled backends, except the two functions that compute: argument checks, differentiable
// formulae, Meta kernels, and the traits by which registration.h registers it.
//
//   lltm            what users call. Differentiable, twice too
//   lltm_forward    (new_h, new_cell, gates)
//   lltm_backward   the gradients that are wanted, in the order of the inputs
//
// Below autograd `lltm` is `lltm_forward` without the gates; a backend may register something better for its device.
//
// Between forward and backward only `gates`, the pre-activations, are kept besides the inputs.
//
// A backend includes this header in one source file, and defines the two functions that are declared first.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/elu.h>
#include <ATen/ops/empty.h>

#include <array>
#include <tuple>
#include <vector>

#include "arguments.h"
#include "registration.h"

namespace OPERATOR_NAMESPACE {

/// The inputs, in their order.
namespace LltmInput {
enum : size_t { input, weights, bias, old_h, old_cell, count };
}

/// For each input: whether its gradient is wanted.
using LltmWanted = WantedOf<LltmInput::count>;

std::tuple<Tensor, Tensor, Tensor> lltm_forward(const Tensor& input, const Tensor& weights, const Tensor& bias,
                                                const Tensor& old_h, const Tensor& old_cell);

std::vector<Tensor> lltm_backward(const Tensor& grad_h, const Tensor& grad_cell, const Tensor& gates,
                                  const Tensor& input, const Tensor& weights, const Tensor& old_h,
                                  const Tensor& old_cell, LltmWanted wanted);

// ---------------------------------------------------------------------------------------------------------------------
// Argument checks

// Sizes as in spec/lltm.py: batch B, input_features F, state_size H.

inline void lltm_check_forward_arguments(const Tensor& input, const Tensor& weights, const Tensor& bias,
                                         const Tensor& old_h, const Tensor& old_cell) {
  const c10::SymInt B = size_of(input, 0), F = size_of(input, 1), H = size_of(old_h, 1);
  check_arguments(
      "lltm",
      {{"input", input, "(batch, input_features)", {B, F}},
       {"weights", weights, "(3*state_size, state_size + input_features)", {3 * H, H + F}},
       {"bias", bias, "(3*state_size,)", {3 * H}},
       {"old_h", old_h, "(batch, state_size)", {B, H}},
       {"old_cell", old_cell, "(batch, state_size)", {B, H}}},
      {{"batch", B, "input.shape[0]"}, {"state_size", H, "old_h.shape[1]"}, {"input_features", F, "input.shape[1]"}});
}

inline void lltm_check_backward_arguments(const Tensor& grad_h, const Tensor& grad_cell, const Tensor& gates,
                                          const Tensor& input, const Tensor& weights, const Tensor& old_h,
                                          const Tensor& old_cell) {
  const c10::SymInt B = size_of(input, 0), F = size_of(input, 1), H = size_of(old_h, 1);
  check_arguments(
      "lltm",
      {{"input", input, "(batch, input_features)", {B, F}},
       {"weights", weights, "(3*state_size, state_size + input_features)", {3 * H, H + F}},
       {"old_h", old_h, "(batch, state_size)", {B, H}},
       {"old_cell", old_cell, "(batch, state_size)", {B, H}},
       {"gates", gates, "(batch, 3*state_size)", {B, 3 * H}},
       {"grad_h", grad_h, "(batch, state_size)", {B, H}},
       {"grad_cell", grad_cell, "(batch, state_size)", {B, H}}},
      {{"batch", B, "input.shape[0]"}, {"state_size", H, "old_h.shape[1]"}, {"input_features", F, "input.shape[1]"}});
}

// ---------------------------------------------------------------------------------------------------------------------
// The formulae of spec/lltm.py, in differentiable operations

inline Tensor lltm_pre_activations(const Tensor& input, const Tensor& weights, const Tensor& bias,
                                   const Tensor& old_h) {
  return at::addmm(bias, at::cat({old_h, input}, 1), weights.t());
}

/// The matrix products of the gradient, those that are wanted, each with a storage of its own.
inline std::vector<Tensor> lltm_wanted_gradients(const Tensor& d_gates, const Tensor& d_old_cell, const Tensor& input,
                                                 const Tensor& weights, const Tensor& old_h, LltmWanted wanted) {
  const c10::SymInt state_size = old_h.sym_size(1);
  std::vector<Tensor> gradients;
  if (wanted[LltmInput::input]) gradients.push_back(d_gates.mm(weights.slice_symint(1, state_size)));
  if (wanted[LltmInput::weights]) gradients.push_back(d_gates.t().mm(at::cat({old_h, input}, 1)));
  if (wanted[LltmInput::bias]) gradients.push_back(d_gates.sum(0));
  if (wanted[LltmInput::old_h]) gradients.push_back(d_gates.mm(weights.slice_symint(1, 0, state_size)));
  if (wanted[LltmInput::old_cell]) gradients.push_back(d_old_cell);
  return gradients;
}

/// The wanted gradients, from the pre-activations. Double backward is autograd through this function, with
/// pre-activations that autograd tracks in place of the saved ones.
inline std::vector<Tensor> lltm_gradients(const Tensor& grad_h, const Tensor& grad_cell, const Tensor& gates,
                                          const Tensor& input, const Tensor& weights, const Tensor& old_h,
                                          const Tensor& old_cell, LltmWanted wanted) {
  const auto z = gates.chunk(3, 1);
  const Tensor i = z[0].sigmoid(), o = z[1].sigmoid(), k = at::elu(z[2]);
  const Tensor t = (old_cell + k * i).tanh();
  const Tensor d_new_cell = grad_h * o * (1 - t * t) + grad_cell;
  // elu' is exp at min(z, 0): where z > 0 exp could overflow, and a mask, or its derivative, would make inf * 0 = NaN.
  const Tensor d_gates =
      at::cat({d_new_cell * k * i * (1 - i), grad_h * t * o * (1 - o), d_new_cell * i * z[2].clamp_max(0).exp()}, 1);
  return lltm_wanted_gradients(d_gates, d_new_cell.contiguous(), input, weights, old_h, wanted);
}

// ---------------------------------------------------------------------------------------------------------------------
// Meta kernels: the shapes alone, symbolic ones too

inline std::tuple<Tensor, Tensor, Tensor> lltm_forward_meta(const Tensor& input, const Tensor& weights,
                                                            const Tensor& bias, const Tensor& old_h,
                                                            const Tensor& old_cell) {
  lltm_check_forward_arguments(input, weights, bias, old_h, old_cell);
  const auto options = input.options();
  const c10::SymIntArrayRef state = old_cell.sym_sizes();
  return {at::empty_symint(state, options), at::empty_symint(state, options),
          at::empty_symint({input.sym_size(0), weights.sym_size(0)}, options)};
}

inline std::vector<Tensor> lltm_backward_meta(const Tensor& grad_h, const Tensor& grad_cell, const Tensor& gates,
                                              const Tensor& input, const Tensor& weights, const Tensor& old_h,
                                              const Tensor& old_cell, LltmWanted wanted) {
  lltm_check_backward_arguments(grad_h, grad_cell, gates, input, weights, old_h, old_cell);
  const std::array<c10::SymIntArrayRef, LltmInput::count> shapes = {
      input.sym_sizes(), weights.sym_sizes(), weights.sym_sizes().slice(0, 1), old_h.sym_sizes(), old_cell.sym_sizes()};
  return empty_gradients(shapes, wanted, input.options());
}

// ---------------------------------------------------------------------------------------------------------------------
// What registration.h needs to know

struct LltmTraits {
  static constexpr const char* name = "lltm";
  static constexpr const char* arguments = "Tensor input, Tensor weights, Tensor bias, Tensor old_h, Tensor old_cell";
  static constexpr const char* outputs = "Tensor new_h, Tensor new_cell";
  static constexpr const char* kept = "Tensor gates";
  static constexpr const char* backward_arguments =
      "Tensor grad_h, Tensor grad_cell, Tensor gates, Tensor input, Tensor weights, Tensor old_h, Tensor old_cell";
  static constexpr std::array inputs = {"input", "weights", "bias", "old_h", "old_cell"};
  using Signature = std::tuple<Tensor, Tensor>(const Tensor& input, const Tensor& weights, const Tensor& bias,
                                               const Tensor& old_h, const Tensor& old_cell);
  static constexpr auto* forward = &lltm_forward;
  static constexpr auto* backward = &lltm_backward;
  static constexpr auto* forward_meta = &lltm_forward_meta;
  static constexpr auto* backward_meta = &lltm_backward_meta;
  static constexpr auto* autocast = &cast_to_lower;
  static constexpr bool may_be_replaced = true;

  static void save(AutogradContext* context, const std::tuple<Tensor, Tensor, Tensor>& made, const Tensor& input,
                   const Tensor& weights, const Tensor& bias, const Tensor& old_h, const Tensor& old_cell) {
    context->save_for_backward({input, weights, bias, old_h, old_cell, std::get<2>(made)});
  }

  static std::vector<Tensor> gradients(AutogradContext*, const variable_list& saved, const variable_list& cotangents,
                                       LltmWanted wanted, bool differentiable) {
    const Tensor &input = saved[0], &weights = saved[1], &bias = saved[2], &old_h = saved[3], &old_cell = saved[4];
    const Tensor &gates = saved[5], &grad_h = cotangents[0], &grad_cell = cotangents[1];
    if (differentiable) {
      const Tensor tracked_gates = lltm_pre_activations(input, weights, bias, old_h);
      return lltm_gradients(grad_h, grad_cell, tracked_gates, input, weights, old_h, old_cell, wanted);
    }
    return backward_operator<LltmTraits>().call(grad_h, grad_cell, gates, input, weights, old_h, old_cell, wanted);
  }
};

TORCH_LIBRARY_FRAGMENT(OPERATOR_NAMESPACE, m) { register_operator<LltmTraits>(m); }

}  // namespace OPERATOR_NAMESPACE
