// LayerNorm in ATen operations: what one would write in Python, but in C++ and with the gradient written by hand.
// The header has the operator around it.
//
// Runs wherever ATen does: there is one kernel for every device, none of it our own.
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
