// What every operator with C++ autograd needs: dispatcher look-ups, which gradients are wanted, and their places.
//
// Each operator is a library of its own, and all libraries of a backend share one C++ namespace. A function here must
// therefore be the same for every operator and hold no state of one. The template argument names the operator where
// there is such state.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/custom_function.h>

#include <array>
#include <string>
#include <vector>

namespace OPERATOR_NAMESPACE {

using at::Tensor;

/// For each input of an operator, in their order: whether its gradient is wanted.
template <size_t inputs>
using WantedOf = std::array<bool, inputs>;

/// The operator registered as `name`. It is called through the dispatcher, so that fake tensors and tracers see the
/// operator and not the operations inside.
template <typename Signature>
c10::TypedOperatorHandle<Signature> find_operator(const std::string& name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name.c_str(), "").template typed<Signature>();
}

/// Whether autograd follows `tensor`: backward, or forward (which the autograd function refuses).
inline bool is_tracked(const Tensor& tensor) {
  return (tensor.requires_grad() && at::GradMode::is_enabled()) || tensor._fw_grad(/*level=*/0).defined();
}

/// One tensor for each input: its gradient where it is wanted, otherwise an undefined tensor. `computed` holds the
/// wanted gradients in the order of the inputs.
template <size_t inputs>
torch::autograd::variable_list in_places(const std::vector<Tensor>& computed, const WantedOf<inputs>& wanted) {
  torch::autograd::variable_list gradients(inputs);
  auto next = computed.begin();
  for (size_t k = 0; k < inputs; ++k) {
    if (wanted[k]) gradients[k] = *next++;
  }
  return gradients;
}

/// What a backward returns, without data: empty tensors of the shapes of the gradients that are wanted.
template <size_t inputs>
std::vector<Tensor> empty_gradients(const std::array<c10::SymIntArrayRef, inputs>& shapes,
                                    const WantedOf<inputs>& wanted, const at::TensorOptions& options) {
  std::vector<Tensor> gradients;
  for (size_t k = 0; k < inputs; ++k) {
    if (wanted[k]) gradients.push_back(at::empty_symint(shapes[k], options));
  }
  return gradients;
}

}  // namespace OPERATOR_NAMESPACE
