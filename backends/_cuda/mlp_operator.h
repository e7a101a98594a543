// MLP for the CUDA backends: products by PyTorch, bias and relu in one kernel. The operator itself, which aten-cpp
// shares, is in mlp_autograd.h.
//
// A backend includes this header in one source file, and defines the two functions that are declared first.
#pragma once

#include <ATen/ops/addmm.h>
#include <c10/core/DeviceGuard.h>

#include <tuple>
#include <vector>

#include "mlp_autograd.h"
#include "operator.h"

namespace OPERATOR_NAMESPACE {

/// Turns `product`, input @ hidden_weights.T, into hidden, in place: adds the bias to each row, and applies relu.
/// `product` is contiguous, the bias need not be; neither is empty.
void mlp_pointwise_forward(const Tensor& product, const Tensor& hidden_bias);

/// Turns `d_hidden` into d_z, in place: it becomes 0 where hidden is not above 0. `d_hidden` is contiguous, hidden need
/// not be; neither is empty.
void mlp_pointwise_backward(const Tensor& d_hidden, const Tensor& hidden);

// Autocast is kept out: it would change the dtype between the products and the kernels.

inline std::tuple<Tensor, Tensor> mlp_forward(const Tensor& input, const Tensor& hidden_weights,
                                              const Tensor& hidden_bias, const Tensor& output_weights,
                                              const Tensor& output_bias) {
  mlp_check_forward_arguments(input, hidden_weights, hidden_bias, output_weights, output_bias);
  check_device("mlp", input);
  const c10::DeviceGuard on_device(input.device());
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  // The input is made dense first: in bfloat16 oneDNN's products read beyond the end of a row (torch 2.13).
  const Tensor hidden = input.contiguous().mm(hidden_weights.t());
  if (hidden.numel() > 0) mlp_pointwise_forward(hidden, hidden_bias);
  return {at::addmm(output_bias, hidden, output_weights.t()), hidden};
}

inline std::vector<Tensor> mlp_backward(const Tensor& grad_output, const Tensor& hidden, const Tensor& input,
                                        const Tensor& hidden_weights, const Tensor& output_weights, MlpWanted wanted) {
  mlp_check_backward_arguments(grad_output, hidden, input, hidden_weights, output_weights);
  check_device("mlp", input);
  const c10::DeviceGuard on_device(input.device());
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  Tensor d_z;
  if (mlp_wants_hidden(wanted)) {
    d_z = grad_output.mm(output_weights);
    if (d_z.numel() > 0) mlp_pointwise_backward(d_z, hidden);
  }
  return mlp_wanted_gradients(grad_output, d_z, hidden, input, hidden_weights, wanted);
}

}  // namespace OPERATOR_NAMESPACE
