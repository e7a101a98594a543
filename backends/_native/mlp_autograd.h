// The MLP operator of all compiled backends, except the two functions that compute: argument checks, differentiable
// formulae, Meta kernels, and the traits by which registration.h registers it.
//
//   mlp            what users call. Differentiable, twice too
//   mlp_forward    (output, hidden)
//   mlp_backward   the gradients that are wanted, in the order of the inputs
//
// Between forward and backward only `hidden` is kept besides the inputs. It shows where relu passed its argument on,
// and it is a factor of the gradient of the output weights, so no product is made a second time.
//
// A backend includes this header in one source file, and defines the two functions that are declared first.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/threshold_backward.h>

#include <array>
#include <tuple>
#include <vector>

#include "arguments.h"
#include "registration.h"

namespace OPERATOR_NAMESPACE {

/// The inputs, in their order.
namespace MlpInput {
enum : size_t { input, hidden_weights, hidden_bias, output_weights, output_bias, count };
}

/// For each input: whether its gradient is wanted.
using MlpWanted = WantedOf<MlpInput::count>;

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

/// The input is made dense first: in bfloat16 oneDNN's products read beyond the end of a row (torch 2.13).
inline Tensor mlp_hidden(const Tensor& input, const Tensor& hidden_weights, const Tensor& hidden_bias) {
  return at::addmm(hidden_bias, input.contiguous(), hidden_weights.t()).relu();
}

/// Whether any gradient is wanted that goes through relu: of input, hidden_weights or hidden_bias.
inline bool mlp_wants_hidden(MlpWanted wanted) {
  return wanted[MlpInput::input] || wanted[MlpInput::hidden_weights] || wanted[MlpInput::hidden_bias];
}

/// The matrix products of the gradient, those that are wanted, each with a storage of its own. `d_z` may be undefined
/// where no gradient that needs it is wanted.
inline std::vector<Tensor> mlp_wanted_gradients(const Tensor& grad_output, const Tensor& d_z, const Tensor& hidden,
                                                const Tensor& input, const Tensor& hidden_weights, MlpWanted wanted) {
  std::vector<Tensor> gradients;
  if (wanted[MlpInput::input]) gradients.push_back(d_z.mm(hidden_weights));
  if (wanted[MlpInput::hidden_weights]) gradients.push_back(d_z.t().mm(input));
  if (wanted[MlpInput::hidden_bias]) gradients.push_back(d_z.sum(0));
  if (wanted[MlpInput::output_weights]) gradients.push_back(grad_output.t().mm(hidden));
  if (wanted[MlpInput::output_bias]) gradients.push_back(grad_output.sum(0));
  return gradients;
}

/// The wanted gradients, from the hidden values. Double backward is autograd through this function, with hidden values
/// that autograd tracks in place of the saved ones.
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
  const std::array<c10::SymIntArrayRef, MlpInput::count> shapes = {
      input.sym_sizes(), hidden_weights.sym_sizes(), hidden_weights.sym_sizes().slice(0, 1), output_weights.sym_sizes(),
      output_weights.sym_sizes().slice(0, 1)};
  return empty_gradients(shapes, wanted, input.options());
}

// ---------------------------------------------------------------------------------------------------------------------
// What registration.h needs to know

struct MlpTraits {
  static constexpr const char* name = "mlp";
  static constexpr const char* arguments =
      "Tensor input, Tensor hidden_weights, Tensor hidden_bias, Tensor output_weights, Tensor output_bias";
  static constexpr const char* outputs = "Tensor output";
  static constexpr const char* kept = "Tensor hidden";
  static constexpr const char* backward_arguments =
      "Tensor grad_output, Tensor hidden, Tensor input, Tensor hidden_weights, Tensor output_weights";
  static constexpr std::array inputs = {"input", "hidden_weights", "hidden_bias", "output_weights", "output_bias"};
  using Signature = Tensor(const Tensor& input, const Tensor& hidden_weights, const Tensor& hidden_bias,
                           const Tensor& output_weights, const Tensor& output_bias);
  static constexpr auto* forward = &mlp_forward;
  static constexpr auto* backward = &mlp_backward;
  static constexpr auto* forward_meta = &mlp_forward_meta;
  static constexpr auto* backward_meta = &mlp_backward_meta;
  static constexpr auto* autocast = &cast_to_lower;
  static constexpr bool may_be_replaced = false;

  static void save(AutogradContext* context, const std::tuple<Tensor, Tensor>& made, const Tensor& input,
                   const Tensor& hidden_weights, const Tensor& hidden_bias, const Tensor& output_weights,
                   const Tensor&) {
    context->save_for_backward({input, hidden_weights, hidden_bias, output_weights, std::get<1>(made)});
  }

  static std::vector<Tensor> gradients(AutogradContext*, const variable_list& saved, const variable_list& cotangents,
                                       MlpWanted wanted, bool differentiable) {
    const Tensor &input = saved[0], &hidden_weights = saved[1], &hidden_bias = saved[2], &output_weights = saved[3];
    const Tensor &hidden = saved[4], &grad_output = cotangents[0];
    if (differentiable) {
      const Tensor tracked_hidden = mlp_hidden(input, hidden_weights, hidden_bias);
      return mlp_gradients(grad_output, tracked_hidden, input, hidden_weights, output_weights, wanted);
    }
    return backward_operator<MlpTraits>().call(grad_output, hidden, input, hidden_weights, output_weights, wanted);
  }
};

TORCH_LIBRARY_FRAGMENT(OPERATOR_NAMESPACE, m) { register_operator<MlpTraits>(m); }

}  // namespace OPERATOR_NAMESPACE
