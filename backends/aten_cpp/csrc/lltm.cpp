// LLTM in ATen operations: what one would write in Python, but in C++ and with the gradient written by hand. The
// operator around it is in lltm_autograd.h.
//
// Runs wherever ATen does: there is one kernel for every device, none of it our own.
#include "lltm_autograd.h"

namespace OPERATOR_NAMESPACE {

// Autocast is kept out of forward and backward: their results have the dtype of their arguments.

std::tuple<Tensor, Tensor, Tensor> lltm_forward(const Tensor& input, const Tensor& weights, const Tensor& bias,
                                                const Tensor& old_h, const Tensor& old_cell) {
  lltm_check_forward_arguments(input, weights, bias, old_h, old_cell);
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const Tensor gates = lltm_pre_activations(input, weights, bias, old_h);
  const auto z = gates.chunk(3, 1);
  const Tensor input_gate = z[0].sigmoid();
  const Tensor output_gate = z[1].sigmoid();
  const Tensor candidate = at::elu(z[2]);
  const Tensor new_cell = (old_cell + candidate * input_gate).contiguous();
  const Tensor new_h = new_cell.tanh() * output_gate;
  return {new_h, new_cell, gates};
}

std::vector<Tensor> lltm_backward(const Tensor& grad_h, const Tensor& grad_cell, const Tensor& gates,
                                  const Tensor& input, const Tensor& weights, const Tensor& old_h,
                                  const Tensor& old_cell, LltmWanted wanted) {
  lltm_check_backward_arguments(grad_h, grad_cell, gates, input, weights, old_h, old_cell);
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  return lltm_gradients(grad_h, grad_cell, gates, input, weights, old_h, old_cell, wanted);
}

}  // namespace OPERATOR_NAMESPACE
