// LLTM over a sequence in all compiled backends, except the two functions that compute: argument checks, differentiable
// formulae, Meta kernels, and the traits by which registration.h registers it.
//
//   lltm_sequence            what users call. Differentiable, twice too
//   lltm_sequence_forward    (h, c_T, gates, cells)
//   lltm_sequence_backward   the gradients that are wanted, in the order of the inputs
//
// Between forward and backward, besides the inputs and h, four numbers are kept for each unit, row and step: `gates`,
// its three pre-activations, and in `cells` the cell before the step. Backward computes the activations again. What
// does not depend on another step is one product over all steps: the input's part of the gates, and in backward the
// gradients of input and weights. Only the product with the state is made step by step, in each direction.
//
// A backend includes this header in one source file, and defines the two functions that are declared first.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/elu.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>

#include <array>
#include <tuple>
#include <vector>

#include "arguments.h"
#include "registration.h"

namespace OPERATOR_NAMESPACE {

/// The inputs, in their order.
namespace LltmSequenceInput {
enum : size_t { input, weights, bias, h0, c0, count };
}

/// For each input: whether its gradient is wanted.
using LltmSequenceWanted = WantedOf<LltmSequenceInput::count>;

/// (h, c_T, gates, cells), none of which shares memory with another or with an input.
std::tuple<Tensor, Tensor, Tensor, Tensor> lltm_sequence_forward(const Tensor& input, const Tensor& weights,
                                                                 const Tensor& bias, const Tensor& h0,
                                                                 const Tensor& c0);

std::vector<Tensor> lltm_sequence_backward(const Tensor& grad_h, const Tensor& grad_cell, const Tensor& gates,
                                           const Tensor& cells, const Tensor& h, const Tensor& input,
                                           const Tensor& weights, const Tensor& h0, LltmSequenceWanted wanted);

// ---------------------------------------------------------------------------------------------------------------------
// Argument checks

// Sizes as in spec/lltm_sequence.py: steps T, batch B, input_features F, state_size H.

inline void lltm_sequence_check_forward_arguments(const Tensor& input, const Tensor& weights, const Tensor& bias,
                                                  const Tensor& h0, const Tensor& c0) {
  const c10::SymInt T = size_of(input, 0), B = size_of(input, 1), F = size_of(input, 2), H = size_of(h0, 1);
  check_arguments(
      "lltm_sequence",
      {{"input", input, "(steps, batch, input_features)", {T, B, F}},
       {"weights", weights, "(3*state_size, state_size + input_features)", {3 * H, H + F}},
       {"bias", bias, "(3*state_size,)", {3 * H}},
       {"h0", h0, "(batch, state_size)", {B, H}},
       {"c0", c0, "(batch, state_size)", {B, H}}},
      {{"batch", B, "input.shape[1]"}, {"state_size", H, "h0.shape[1]"}, {"input_features", F, "input.shape[2]"}});
}

inline void lltm_sequence_check_backward_arguments(const Tensor& grad_h, const Tensor& grad_cell, const Tensor& gates,
                                                   const Tensor& cells, const Tensor& h, const Tensor& input,
                                                   const Tensor& weights, const Tensor& h0) {
  const c10::SymInt T = size_of(input, 0), B = size_of(input, 1), F = size_of(input, 2), H = size_of(h0, 1);
  check_arguments("lltm_sequence",
                  {{"input", input, "(steps, batch, input_features)", {T, B, F}},
                   {"weights", weights, "(3*state_size, state_size + input_features)", {3 * H, H + F}},
                   {"h0", h0, "(batch, state_size)", {B, H}},
                   {"gates", gates, "(steps, batch, 3*state_size)", {T, B, 3 * H}},
                   {"cells", cells, "(steps, batch, state_size)", {T, B, H}},
                   {"h", h, "(steps, batch, state_size)", {T, B, H}},
                   {"grad_h", grad_h, "(steps, batch, state_size)", {T, B, H}},
                   {"grad_cell", grad_cell, "(batch, state_size)", {B, H}}},
                  {{"steps", T, "input.shape[0]"},
                   {"batch", B, "input.shape[1]"},
                   {"state_size", H, "h0.shape[1]"},
                   {"input_features", F, "input.shape[2]"}});
}

// ---------------------------------------------------------------------------------------------------------------------
// The products over all steps, differentiable. Autocast is kept out by the callers: it would change the dtype.

/// `matrix` as a factor of a product: dense on the CPU, where in bfloat16 oneDNN reads beyond the end of a row (torch
/// 2.13), and otherwise as it is. GPUs multiply the columns of a matrix where they lie.
inline Tensor lltm_sequence_operand(const Tensor& matrix) { return matrix.is_cpu() ? matrix.contiguous() : matrix; }

/// All steps and rows as the rows of a matrix, dense.
inline Tensor lltm_sequence_rows(const Tensor& tensor) {
  return tensor.reshape_symint({tensor.sym_size(0) * tensor.sym_size(1), tensor.sym_size(2)}).contiguous();
}

/// The columns of the weights that the state is multiplied with.
inline Tensor lltm_sequence_weights_of_h(const Tensor& weights, const Tensor& h0) {
  return lltm_sequence_operand(weights.slice_symint(1, 0, h0.sym_size(1)));
}

/// The columns of the weights that the input is multiplied with.
inline Tensor lltm_sequence_weights_of_input(const Tensor& weights, const Tensor& h0) {
  return lltm_sequence_operand(weights.slice_symint(1, h0.sym_size(1)));
}

/// What input and bias add to the gates, (steps, batch, 3*state_size); memory of its own.
inline Tensor lltm_sequence_gates_of_input(const Tensor& input, const Tensor& weights, const Tensor& bias,
                                           const Tensor& h0) {
  const Tensor of_input = lltm_sequence_weights_of_input(weights, h0);
  return at::addmm(bias, lltm_sequence_rows(input), of_input.t())
      .view_symint({input.sym_size(0), input.sym_size(1), weights.sym_size(0)});
}

/// The gradients that are wanted, each with a storage of its own. `d_gates` is that of all steps.
inline std::vector<Tensor> lltm_sequence_gradients(const Tensor& d_gates, const Tensor& d_h0, const Tensor& d_c0,
                                                   const Tensor& h, const Tensor& input, const Tensor& weights,
                                                   const Tensor& h0, LltmSequenceWanted wanted) {
  const Tensor d_rows = lltm_sequence_rows(d_gates);
  std::vector<Tensor> gradients;
  if (wanted[LltmSequenceInput::input]) {
    gradients.push_back(d_rows.mm(lltm_sequence_weights_of_input(weights, h0)).view_symint(input.sym_sizes()));
  }
  if (wanted[LltmSequenceInput::weights]) {
    const Tensor h_before = at::cat({h0.unsqueeze(0), h}).slice_symint(0, 0, input.sym_size(0));
    gradients.push_back(d_rows.t().mm(lltm_sequence_rows(at::cat({h_before, input}, 2))));
  }
  if (wanted[LltmSequenceInput::bias]) gradients.push_back(d_rows.sum(0));
  if (wanted[LltmSequenceInput::h0]) gradients.push_back(d_h0);
  if (wanted[LltmSequenceInput::c0]) gradients.push_back(d_c0);
  return gradients;
}

// ---------------------------------------------------------------------------------------------------------------------
// The formulae of spec/lltm_sequence.py in differentiable operations

/// The steps along a new first dimension; of no steps, an empty tensor for steps like `like`.
inline Tensor lltm_sequence_stacked(const std::vector<Tensor>& steps, const Tensor& like) {
  return steps.empty() ? like.unsqueeze(0).slice(0, 0, 0).clone() : at::stack(steps);
}

/// (h, c_T, gates, cells), as `lltm_sequence_forward` returns them.
inline std::tuple<Tensor, Tensor, Tensor, Tensor> lltm_sequence_scan(const Tensor& input, const Tensor& weights,
                                                                     const Tensor& bias, const Tensor& h0,
                                                                     const Tensor& c0) {
  const Tensor from_input = lltm_sequence_gates_of_input(input, weights, bias, h0);
  const Tensor of_h = lltm_sequence_weights_of_h(weights, h0).t();
  std::vector<Tensor> h, gates, cells;
  Tensor state = h0.contiguous(), cell = c0;
  for (int64_t t = 0; t < input.size(0); ++t) {
    cells.push_back(cell);
    gates.push_back(at::addmm(from_input.select(0, t), state, of_h));
    const auto z = gates.back().chunk(3, 1);
    cell = cell + at::elu(z[2]) * z[0].sigmoid();
    state = cell.tanh() * z[1].sigmoid();
    h.push_back(state);
  }
  const Tensor c_T = h.empty() ? c0.clone(at::MemoryFormat::Contiguous) : cell.contiguous();
  return {lltm_sequence_stacked(h, h0), c_T, gates.empty() ? from_input : at::stack(gates),
          lltm_sequence_stacked(cells, c0)};
}

/// Backpropagation through time, from what forward kept.
inline std::vector<Tensor> lltm_sequence_differentiable_backward(const Tensor& grad_h, const Tensor& grad_cell,
                                                                 const Tensor& gates, const Tensor& cells,
                                                                 const Tensor& h, const Tensor& input,
                                                                 const Tensor& weights, const Tensor& h0,
                                                                 LltmSequenceWanted wanted) {
  const Tensor of_h = lltm_sequence_weights_of_h(weights, h0);
  const int64_t steps = input.size(0);
  std::vector<Tensor> d_gates(steps);
  Tensor d_h = at::zeros_like(h0, at::MemoryFormat::Contiguous);
  Tensor d_cell = grad_cell.clone(at::MemoryFormat::Contiguous);
  for (int64_t t = steps - 1; t >= 0; --t) {
    const auto z = gates.select(0, t).chunk(3, 1);
    const Tensor i = z[0].sigmoid(), o = z[1].sigmoid(), k = at::elu(z[2]);
    const Tensor tanh_cell = (cells.select(0, t) + k * i).tanh();
    const Tensor g = grad_h.select(0, t) + d_h;
    d_cell = g * o * (1 - tanh_cell * tanh_cell) + d_cell;
    // elu' is exp at min(z, 0): where z > 0 exp could overflow, and its derivative, inf * 0, would be NaN.
    d_gates[t] =
        at::cat({d_cell * k * i * (1 - i), g * tanh_cell * o * (1 - o), d_cell * i * z[2].clamp_max(0).exp()}, 1);
    d_h = d_gates[t].mm(of_h);
  }
  const Tensor d_all = d_gates.empty() ? at::zeros_like(gates) : at::stack(d_gates);
  return lltm_sequence_gradients(d_all, d_h, d_cell.contiguous(), h, input, weights, h0, wanted);
}

// ---------------------------------------------------------------------------------------------------------------------
// Meta kernels: the shapes alone, symbolic ones too

inline std::tuple<Tensor, Tensor, Tensor, Tensor> lltm_sequence_forward_meta(const Tensor& input, const Tensor& weights,
                                                                             const Tensor& bias, const Tensor& h0,
                                                                             const Tensor& c0) {
  lltm_sequence_check_forward_arguments(input, weights, bias, h0, c0);
  const auto options = input.options();
  const c10::SymInt T = input.sym_size(0), B = input.sym_size(1), H = h0.sym_size(1);
  return {at::empty_symint({T, B, H}, options), at::empty_symint({B, H}, options),
          at::empty_symint({T, B, 3 * H}, options), at::empty_symint({T, B, H}, options)};
}

inline std::vector<Tensor> lltm_sequence_backward_meta(const Tensor& grad_h, const Tensor& grad_cell,
                                                       const Tensor& gates, const Tensor& cells, const Tensor& h,
                                                       const Tensor& input, const Tensor& weights, const Tensor& h0,
                                                       LltmSequenceWanted wanted) {
  lltm_sequence_check_backward_arguments(grad_h, grad_cell, gates, cells, h, input, weights, h0);
  const std::array<c10::SymIntArrayRef, LltmSequenceInput::count> shapes = {
      input.sym_sizes(), weights.sym_sizes(), weights.sym_sizes().slice(0, 1), h0.sym_sizes(), h0.sym_sizes()};
  return empty_gradients(shapes, wanted, input.options());
}

// ---------------------------------------------------------------------------------------------------------------------
// What registration.h needs to know

struct LltmSequenceTraits {
  static constexpr const char* name = "lltm_sequence";
  static constexpr const char* arguments = "Tensor input, Tensor weights, Tensor bias, Tensor h0, Tensor c0";
  static constexpr const char* outputs = "Tensor h, Tensor c_T";
  static constexpr const char* kept = "Tensor gates, Tensor cells";
  static constexpr const char* backward_arguments =
      "Tensor grad_h, Tensor grad_cell, Tensor gates, Tensor cells, Tensor h, Tensor input, Tensor weights, Tensor h0";
  static constexpr std::array inputs = {"input", "weights", "bias", "h0", "c0"};
  using Signature = std::tuple<Tensor, Tensor>(const Tensor& input, const Tensor& weights, const Tensor& bias,
                                               const Tensor& h0, const Tensor& c0);
  static constexpr auto* forward = &lltm_sequence_forward;
  static constexpr auto* backward = &lltm_sequence_backward;
  static constexpr auto* forward_meta = &lltm_sequence_forward_meta;
  static constexpr auto* backward_meta = &lltm_sequence_backward_meta;
  static constexpr auto* autocast = &cast_to_lower;
  static constexpr bool may_be_replaced = false;

  static void save(AutogradContext* context, const std::tuple<Tensor, Tensor, Tensor, Tensor>& made,
                   const Tensor& input, const Tensor& weights, const Tensor& bias, const Tensor& h0, const Tensor& c0) {
    const auto& [h, c_T, gates, cells] = made;
    context->save_for_backward({input, weights, bias, h0, c0, h, gates, cells});
  }

  static std::vector<Tensor> gradients(AutogradContext*, const variable_list& saved, const variable_list& cotangents,
                                       LltmSequenceWanted wanted, bool differentiable) {
    const Tensor &input = saved[0], &weights = saved[1], &bias = saved[2], &h0 = saved[3], &c0 = saved[4];
    const Tensor &grad_h = cotangents[0], &grad_cell = cotangents[1];
    if (differentiable) {  // the scan is made again, and autograd follows it this time
      const auto [h, c_T, gates, cells] = lltm_sequence_scan(input, weights, bias, h0, c0);
      return lltm_sequence_differentiable_backward(grad_h, grad_cell, gates, cells, h, input, weights, h0, wanted);
    }
    const Tensor &h = saved[5], &gates = saved[6], &cells = saved[7];
    return backward_operator<LltmSequenceTraits>().call(grad_h, grad_cell, gates, cells, h, input, weights, h0, wanted);
  }
};

TORCH_LIBRARY_FRAGMENT(OPERATOR_NAMESPACE, m) { register_operator<LltmSequenceTraits>(m); }

}  // namespace OPERATOR_NAMESPACE
