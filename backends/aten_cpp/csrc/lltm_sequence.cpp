// LLTM over a sequence in ATen operations: lltm_sequence_autograd.h, whose differentiable formulae are all there is.
//
// Runs wherever ATen does: there is one kernel for every device, none of it our own.
#include "lltm_sequence_autograd.h"

namespace OPERATOR_NAMESPACE {

// Autocast is kept out of forward and backward: their results have the dtype of their arguments.

std::tuple<Tensor, Tensor, Tensor, Tensor> lltm_sequence_forward(const Tensor& input, const Tensor& weights,
                                                                 const Tensor& bias, const Tensor& h0,
                                                                 const Tensor& c0) {
  lltm_sequence_check_forward_arguments(input, weights, bias, h0, c0);
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  return lltm_sequence_scan(input, weights, bias, h0, c0);
}

std::vector<Tensor> lltm_sequence_backward(const Tensor& grad_h, const Tensor& grad_cell, const Tensor& gates,
                                           const Tensor& cells, const Tensor& h, const Tensor& input,
                                           const Tensor& weights, const Tensor& h0, LltmSequenceWanted wanted) {
  lltm_sequence_check_backward_arguments(grad_h, grad_cell, gates, cells, h, input, weights, h0);
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  return lltm_sequence_differentiable_backward(grad_h, grad_cell, gates, cells, h, input, weights, h0, wanted);
}

}  // namespace OPERATOR_NAMESPACE
