// LLTM in ATen operations.
//
// Reading order:
//   1. spec/lltm.py             the mathematics, with the names that are used here
//   2. lltm.cpp                 this file: forward and backward
//   3. _native/lltm_autograd.h  argument checks, differentiable formulae, and the traits of the operator
//   4. _native/arguments.h      the checks of arguments and their messages
//   5. _native/registration.h   autograd, autocast, Meta kernels and registration, for every operator
//
// The operations are those that one would write in Python. The gradient is written by hand.
//
// Each operation is a kernel of ATen, so this runs on every device that ATen supports.
#include <ATen/ops/elu_backward.h>
#include <ATen/ops/sigmoid_backward.h>
#include <ATen/ops/tanh_backward.h>

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
  const auto z = gates.chunk(3, 1);
  const Tensor input_gate = z[0].sigmoid();
  const Tensor output_gate = z[1].sigmoid();
  const Tensor candidate = at::elu(z[2]);
  const Tensor tanh_cell = (old_cell + candidate * input_gate).tanh();
  const Tensor d_new_cell = at::tanh_backward(grad_h * output_gate, tanh_cell) + grad_cell;
  // Each derivative is one operation: of a result, or of z for elu, whose result has few digits far below 0.
  const Tensor d_gates = at::cat(
      {at::sigmoid_backward(d_new_cell * candidate, input_gate), at::sigmoid_backward(grad_h * tanh_cell, output_gate),
       at::elu_backward(d_new_cell * input_gate, 1, 1, 1, /*is_result=*/false, z[2])},
      1);
  return lltm_wanted_gradients(d_gates, d_new_cell.contiguous(), input, weights, old_h, wanted);
}

}  // namespace OPERATOR_NAMESPACE
