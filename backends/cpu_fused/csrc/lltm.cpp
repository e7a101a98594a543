// LLTM on the CPU: lltm_operator.h with the pointwise part in one pass over rows.
#include <ATen/Dispatch.h>

#include "passes.h"

// The headers that the CUDA backends share also serve kernels that run on CPU tensors, as emulated kernels do.
#define CUDA_EMULATED
#include "lltm_operator.h"

namespace OPERATOR_NAMESPACE {

void lltm_pointwise_forward(const Tensor& gates, const Tensor& old_cell, const Tensor& new_h, const Tensor& new_cell) {
  const Tensor dense_gates = gates.contiguous(), dense_old_cell = old_cell.contiguous();
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, gates.scalar_type(), "lltm_forward", [&] {
    forward_pass(kAsleep, old_cell.size(0), old_cell.size(1), dense_gates.const_data_ptr<scalar_t>(),
                 dense_old_cell.const_data_ptr<scalar_t>(), new_h.mutable_data_ptr<scalar_t>(),
                 new_cell.mutable_data_ptr<scalar_t>());
  });
}

void lltm_pointwise_backward(const Tensor& gates, const Tensor& old_cell, const Tensor& grad_h, const Tensor& grad_cell,
                             const Tensor& d_gates, const Tensor& d_old_cell) {
  const Tensor dense_gates = gates.contiguous(), dense_old_cell = old_cell.contiguous();
  const Tensor dense_grad_h = grad_h.contiguous(), dense_grad_cell = grad_cell.contiguous();
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, gates.scalar_type(), "lltm_backward", [&] {
    backward_pass(kAsleep, old_cell.size(0), old_cell.size(1), dense_gates.const_data_ptr<scalar_t>(),
                  dense_old_cell.const_data_ptr<scalar_t>(), dense_grad_h.const_data_ptr<scalar_t>(),
                  dense_grad_cell.const_data_ptr<scalar_t>(), d_gates.mutable_data_ptr<scalar_t>(),
                  d_old_cell.mutable_data_ptr<scalar_t>());
  });
}

}  // namespace OPERATOR_NAMESPACE
