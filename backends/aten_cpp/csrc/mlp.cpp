// MLP in ATen operations.
//
// Reading order:
//   1. spec/mlp.py             the mathematics, with the names that are used here
//   2. mlp.cpp                 this file: forward and backward
//   3. _native/mlp_autograd.h  argument checks, differentiable formulae, and the traits of the operator
//   4. _native/arguments.h     the checks of arguments and their messages
//   5. _native/registration.h  autograd, autocast, Meta kernels and registration, for every operator
//
// The operations are those that one would write in Python. The gradient is written by hand.
//
// Each operation is a kernel of ATen, so this runs on every device that ATen supports.
#include "mlp_autograd.h"

namespace OPERATOR_NAMESPACE {

// Autocast is kept out of forward and backward: their results have the dtype of their arguments.

std::tuple<Tensor, Tensor> mlp_forward(const Tensor& input, const Tensor& hidden_weights, const Tensor& hidden_bias,
                                       const Tensor& output_weights, const Tensor& output_bias) {
  mlp_check_forward_arguments(input, hidden_weights, hidden_bias, output_weights, output_bias);
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const Tensor hidden = mlp_hidden(input, hidden_weights, hidden_bias);
  return {at::addmm(output_bias, hidden, output_weights.t()), hidden};
}

std::vector<Tensor> mlp_backward(const Tensor& grad_output, const Tensor& hidden, const Tensor& input,
                                 const Tensor& hidden_weights, const Tensor& output_weights, MlpWanted wanted) {
  mlp_check_backward_arguments(grad_output, hidden, input, hidden_weights, output_weights);
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  return mlp_gradients(grad_output, hidden, input, hidden_weights, output_weights, wanted);
}

}  // namespace OPERATOR_NAMESPACE
