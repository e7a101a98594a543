// LLTM on the CPU: lltm_operator.h with one pass over rows each way, and backward's products of few rows in
// small_products.h.
#include <ATen/Dispatch.h>
#include <ATen/ops/empty.h>

#include <vector>

#include "passes.h"
#include "small_products.h"

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

/// `lltm_wanted_gradients` by small products. d_gates is contiguous.
template <typename real>
std::vector<Tensor> lltm_small_gradients(const Tensor& d_gates, const Tensor& d_old_cell, const Tensor& input,
                                         const Tensor& weights, const Tensor& old_h, LltmWanted wanted) {
  const int64_t rows = d_gates.size(0), gates = d_gates.size(1), H = old_h.size(1), columns = weights.size(1);
  const real* d = d_gates.const_data_ptr<real>();
  /// d_gates times the columns of the weights from `first` on.
  const auto times_weights = [&](const Tensor& like, int64_t first) {
    Tensor made = at::empty(like.sizes(), like.options());
    multiply<real>({rows, like.size(1), gates, d, gates, 1, weights.const_data_ptr<real>() + first, weights.stride(0),
                    nullptr, made.mutable_data_ptr<real>(), like.size(1)});
    return made;
  };
  std::vector<Tensor> gradients;
  if (wanted[LltmInput::input]) gradients.push_back(times_weights(input, H));
  if (wanted[LltmInput::weights]) {
    Tensor made = at::empty(weights.sizes(), weights.options());
    real* const to = made.mutable_data_ptr<real>();
    const Tensor dense_h = old_h.contiguous(), dense_input = input.contiguous();
    multiply<real>({gates, H, rows, d, 1, gates, dense_h.const_data_ptr<real>(), H, nullptr, to, columns});
    multiply<real>({gates, columns - H, rows, d, 1, gates, dense_input.const_data_ptr<real>(), columns - H, nullptr,
                    to + H, columns});
    gradients.push_back(made);
  }
  if (wanted[LltmInput::bias]) gradients.push_back(d_gates.sum(0));
  if (wanted[LltmInput::old_h]) gradients.push_back(times_weights(old_h, 0));
  if (wanted[LltmInput::old_cell]) gradients.push_back(d_old_cell);
  return gradients;
}

std::vector<Tensor> lltm_products(const Tensor& d_gates, const Tensor& d_old_cell, const Tensor& input,
                                  const Tensor& weights, const Tensor& old_h, LltmWanted wanted) {
  if (!is_small(d_gates.size(0), weights)) {
    return lltm_wanted_gradients(d_gates, d_old_cell, input, weights, old_h, wanted);
  }
  return AT_DISPATCH_FLOATING_TYPES(weights.scalar_type(), "lltm_backward", [&] {
    return lltm_small_gradients<scalar_t>(d_gates, d_old_cell, input, weights, old_h, wanted);
  });
}

}  // namespace OPERATOR_NAMESPACE
