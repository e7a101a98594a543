// LLTM over a sequence for the CUDA backends: the products over all steps by PyTorch, the steps by the backend. The
// operator itself, which aten-cpp shares, is in lltm_sequence_autograd.h.
//
// One array has the gates of all steps and one has the cells, so no step copies anything.
//
// A backend includes this header in one source file, and defines the two functions that are declared first.
#pragma once

#include <ATen/ops/empty.h>
#include <c10/core/DeviceGuard.h>

#include <tuple>
#include <vector>

#include "lltm_sequence_autograd.h"
#include "operator.h"

namespace OPERATOR_NAMESPACE {

// Everything but of_h is contiguous, and nothing is empty. of_h, (3*state_size, state_size), are the weights of the
// state: a part of the weights, whose rows are contiguous.

/// On entry `gates` are the part of the input, on return the pre-activations. Writes h, the cell before each step
/// to `cells`, and the last cell to c_T.
void lltm_steps_forward(const Tensor& of_h, const Tensor& h0, const Tensor& c0, const Tensor& gates, const Tensor& h,
                        const Tensor& cells, const Tensor& c_T);

/// Writes d_gates, d_h0 and d_c0.
void lltm_steps_backward(const Tensor& of_h, const Tensor& gates, const Tensor& cells, const Tensor& grad_h,
                         const Tensor& grad_cell, const Tensor& d_gates, const Tensor& d_h0, const Tensor& d_c0);

/// The weights of the state where they lie, if their rows are contiguous.
inline Tensor weights_of_state(const Tensor& weights, const Tensor& h0) {
  const Tensor of_h = weights.slice(1, 0, h0.size(1));
  return of_h.stride(1) == 1 ? of_h : of_h.contiguous();
}

// Autocast is kept out: it would change the dtype between the products and the kernels.

inline std::tuple<Tensor, Tensor, Tensor, Tensor> lltm_sequence_forward(const Tensor& input, const Tensor& weights,
                                                                        const Tensor& bias, const Tensor& h0,
                                                                        const Tensor& c0) {
  lltm_sequence_check_forward_arguments(input, weights, bias, h0, c0);
  check_device("lltm_sequence", input);
  const c10::DeviceGuard on_device(input.device());
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const int64_t steps = input.size(0), batch = h0.size(0), state_size = h0.size(1);
  const Tensor gates = lltm_sequence_gates_of_input(input, weights, bias, h0);
  const Tensor h = at::empty({steps, batch, state_size}, input.options());
  const Tensor cells = at::empty({steps, batch, state_size}, input.options());
  if (h.numel() == 0) return {h, c0.clone(at::MemoryFormat::Contiguous), gates, cells};
  const Tensor c_T = at::empty({batch, state_size}, input.options());
  lltm_steps_forward(weights_of_state(weights, h0), h0.contiguous(), c0.contiguous(), gates, h, cells, c_T);
  return {h, c_T, gates, cells};
}

inline std::vector<Tensor> lltm_sequence_backward(const Tensor& grad_h, const Tensor& grad_cell, const Tensor& gates,
                                                  const Tensor& cells, const Tensor& h, const Tensor& input,
                                                  const Tensor& weights, const Tensor& h0, LltmSequenceWanted wanted) {
  lltm_sequence_check_backward_arguments(grad_h, grad_cell, gates, cells, h, input, weights, h0);
  check_device("lltm_sequence", input);
  const c10::DeviceGuard on_device(input.device());
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const Tensor d_gates = at::empty(gates.sizes(), input.options());
  if (h.numel() == 0) {
    return lltm_sequence_gradients(d_gates, at::zeros_like(h0, at::MemoryFormat::Contiguous),
                                   grad_cell.clone(at::MemoryFormat::Contiguous), h, input, weights, h0, wanted);
  }
  const Tensor d_h0 = at::empty(h0.sizes(), input.options()), d_c0 = at::empty(h0.sizes(), input.options());
  lltm_steps_backward(weights_of_state(weights, h0), gates.contiguous(), cells.contiguous(), grad_h.contiguous(),
                      grad_cell.contiguous(), d_gates, d_h0, d_c0);
  return lltm_sequence_gradients(d_gates, d_h0, d_c0, h, input, weights, h0, wanted);
}

}  // namespace OPERATOR_NAMESPACE
