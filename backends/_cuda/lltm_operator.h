// LLTM for backends with one kernel each way beside the products: cuda-raw-pointer, cuda-accessor and cpu-fused. The
// operator itself, which all compiled backends share, is in lltm_autograd.h.
//
// The backward kernel computes the activations again, in float for half types, from what it has to read anyway.
//
// A backend includes this header in one source file, and defines the three functions that are declared first.
#pragma once

#include <ATen/ops/empty.h>
#include <c10/core/DeviceGuard.h>

#include <tuple>
#include <vector>

#include "lltm_autograd.h"
#include "operator.h"

namespace OPERATOR_NAMESPACE {

/// Writes new_h and new_cell. Outputs are contiguous, inputs need not be; nothing is empty.
void lltm_pointwise_forward(const Tensor& gates, const Tensor& old_cell, const Tensor& new_h, const Tensor& new_cell);

/// Writes d_gates and d_old_cell, under the same conditions.
void lltm_pointwise_backward(const Tensor& gates, const Tensor& old_cell, const Tensor& grad_h, const Tensor& grad_cell,
                             const Tensor& d_gates, const Tensor& d_old_cell);

/// The wanted gradients from d_gates, which is contiguous. `lltm_wanted_gradients` makes them by PyTorch's products.
std::vector<Tensor> lltm_products(const Tensor& d_gates, const Tensor& d_old_cell, const Tensor& input,
                                  const Tensor& weights, const Tensor& old_h, LltmWanted wanted);

// Autocast is kept out: it would change the dtype between the products and the kernels.

inline std::tuple<Tensor, Tensor, Tensor> lltm_forward(const Tensor& input, const Tensor& weights, const Tensor& bias,
                                                       const Tensor& old_h, const Tensor& old_cell) {
  lltm_check_forward_arguments(input, weights, bias, old_h, old_cell);
  check_device("lltm", input);
  const c10::DeviceGuard on_device(input.device());
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const Tensor gates = lltm_pre_activations(input, weights, bias, old_h);
  const Tensor new_h = at::empty(old_cell.sizes(), input.options());
  const Tensor new_cell = at::empty(old_cell.sizes(), input.options());
  if (new_cell.numel() > 0) lltm_pointwise_forward(gates, old_cell, new_h, new_cell);
  return {new_h, new_cell, gates};
}

inline std::vector<Tensor> lltm_backward(const Tensor& grad_h, const Tensor& grad_cell, const Tensor& gates,
                                         const Tensor& input, const Tensor& weights, const Tensor& old_h,
                                         const Tensor& old_cell, LltmWanted wanted) {
  lltm_check_backward_arguments(grad_h, grad_cell, gates, input, weights, old_h, old_cell);
  check_device("lltm", input);
  const c10::DeviceGuard on_device(input.device());
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const Tensor d_gates = at::empty(gates.sizes(), input.options());
  const Tensor d_old_cell = at::empty(old_cell.sizes(), input.options());
  if (d_old_cell.numel() > 0) lltm_pointwise_backward(gates, old_cell, grad_h, grad_cell, d_gates, d_old_cell);
  return lltm_products(d_gates, d_old_cell, input, weights, old_h, wanted);
}

}  // namespace OPERATOR_NAMESPACE
