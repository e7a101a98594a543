// LLTM over a sequence in ATen operations.
//
// Reading order:
//   1. spec/lltm_sequence.py             the mathematics, with the names that are used here
//   2. lltm_sequence.cpp                 this file: forward and backward
//   3. _native/lltm_sequence_autograd.h  argument checks, differentiable formulae, and the traits of the operator
//   4. _native/arguments.h               the checks of arguments and their messages
//   5. _native/registration.h            autograd, autocast, Meta kernels and registration, for every operator
//
// Forward and backward are the differentiable formulae of lltm_sequence_autograd.h: nothing is left to add.
//
// Each operation is a kernel of ATen, so this runs on every device that ATen supports.
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
