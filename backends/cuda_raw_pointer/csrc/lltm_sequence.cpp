// LLTM over a sequence over raw pointers: lltm_sequence_autograd.h with the kernels of lltm.cu, which are those of the
// cell, one launch a step and direction. The products are PyTorch's.
//
// Gates and cells of all steps lie in one array each. A step's product is added to its gates where they lie, and its
// kernel writes the state and the cell where the next step reads them: no step copies anything.
#include "lltm_sequence_autograd.h"

#include <c10/core/DeviceGuard.h>

#include "lltm.h"
#include "operator.h"

namespace OPERATOR_NAMESPACE {

std::tuple<Tensor, Tensor, Tensor, Tensor> lltm_sequence_forward(const Tensor& input, const Tensor& weights,
                                                                 const Tensor& bias, const Tensor& h0,
                                                                 const Tensor& c0) {
  lltm_sequence_check_forward_arguments(input, weights, bias, h0, c0);
  check_device("lltm_sequence", input);
  const c10::DeviceGuard on_device(input.device());
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const int64_t steps = input.size(0), batch = h0.size(0), state_size = h0.size(1);
  const Tensor gates = lltm_sequence_gates_of_input(input, weights, bias, h0);
  const Tensor of_h = lltm_sequence_weights_of_h(weights, h0).t();
  const Tensor h = at::empty({steps, batch, state_size}, input.options());
  const Tensor cells = at::empty({steps, batch, state_size}, input.options());
  const Tensor c_T = at::empty({batch, state_size}, input.options());
  (steps > 0 ? cells.select(0, 0) : c_T).copy_(c0);
  for (int64_t t = 0; t < steps && h0.numel() > 0; ++t) {
    const Tensor now = gates.select(0, t);
    now.addmm_(t > 0 ? h.select(0, t - 1) : h0.contiguous(), of_h);
    const Tensor new_cell = t + 1 < steps ? cells.select(0, t + 1) : c_T;
    launch_lltm_forward(now.scalar_type(), batch, state_size, now.const_data_ptr(), cells.select(0, t).const_data_ptr(),
                        h.select(0, t).mutable_data_ptr(), new_cell.mutable_data_ptr(), current_stream(now));
  }
  return {h, c_T, gates, cells};
}

std::vector<Tensor> lltm_sequence_backward(const Tensor& grad_h, const Tensor& grad_cell, const Tensor& gates,
                                           const Tensor& cells, const Tensor& h, const Tensor& input,
                                           const Tensor& weights, const Tensor& h0, LltmSequenceWanted wanted) {
  lltm_sequence_check_backward_arguments(grad_h, grad_cell, gates, cells, h, input, weights, h0);
  check_device("lltm_sequence", input);
  const c10::DeviceGuard on_device(input.device());
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const int64_t steps = input.size(0), batch = h0.size(0), state_size = h0.size(1);
  const Tensor of_h = lltm_sequence_weights_of_h(weights, h0);
  const Tensor all_gates = gates.contiguous(), all_cells = cells.contiguous();
  const Tensor d_gates = at::empty({steps, batch, 3 * state_size}, input.options());
  Tensor d_h = at::zeros_like(h0, at::MemoryFormat::Contiguous);
  Tensor d_cell = grad_cell.clone(at::MemoryFormat::Contiguous);
  for (int64_t t = steps - 1; t >= 0 && h0.numel() > 0; --t) {
    const Tensor d_now = d_gates.select(0, t), d_old_cell = at::empty({batch, state_size}, input.options());
    d_h.add_(grad_h.select(0, t));
    launch_lltm_backward(d_now.scalar_type(), batch, state_size, all_gates.select(0, t).const_data_ptr(),
                         all_cells.select(0, t).const_data_ptr(), d_h.const_data_ptr(), d_cell.const_data_ptr(),
                         d_now.mutable_data_ptr(), d_old_cell.mutable_data_ptr(), current_stream(d_now));
    d_cell = d_old_cell;
    d_h = d_now.mm(of_h);
  }
  return lltm_sequence_gradients(d_gates, d_h, d_cell, h, input, weights, h0, wanted);
}

}  // namespace OPERATOR_NAMESPACE
