// LayerNorm in ATen operations.
//
// Reading order:
//   1. spec/layer_norm.py             the mathematics, with the names that are used here
//   2. layer_norm.cpp                 this file: forward and backward
//   3. _native/layer_norm_autograd.h  argument checks, differentiable formulae, and the traits of the operator
//   4. _native/arguments.h            the checks of arguments and their messages
//   5. _native/registration.h         autograd, autocast, Meta kernels and registration, for every operator
//
// The operations are those that one would write in Python. The gradient is written by hand.
//
// Each operation is a kernel of ATen, so this runs on every device that ATen supports.
#include "layer_norm_autograd.h"

namespace OPERATOR_NAMESPACE {

// Autocast is kept out of forward and backward: their results have the dtype of their arguments.

std::tuple<Tensor, Tensor, Tensor> layer_norm_forward(const Tensor& input, c10::SymIntArrayRef normalized_shape,
                                                      const OptionalTensor& weight, const OptionalTensor& bias,
                                                      double eps) {
  layer_norm_check_forward_arguments(input, normalized_shape, weight, bias);
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const Tensor x = input.to(layer_norm_statistics_dtype(input));
  const auto [mean, rstd] = layer_norm_statistics(x, normalized_shape.size(), eps);
  Tensor output = (x - mean) * rstd;
  if (weight.has_value()) output = output * *weight;
  if (bias.has_value()) output = output + *bias;
  return {output.to(input.scalar_type()).contiguous(), mean, rstd};
}

std::vector<Tensor> layer_norm_backward(const Tensor& grad_output, const Tensor& input, const Tensor& mean,
                                        const Tensor& rstd, const OptionalTensor& weight, int64_t normalized,
                                        LayerNormWanted wanted) {
  layer_norm_check_backward_arguments(grad_output, input, mean, rstd, weight, normalized);
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  return layer_norm_gradients(grad_output, input, mean, rstd, weight, normalized, wanted);
}

}  // namespace OPERATOR_NAMESPACE
