// LLTM over a sequence on the CPU: lltm_sequence_operator.h with one product and one pass over rows for each step.
//
// No step allocates or copies anything: it adds its product to its gates in place, and its pass writes the state and
// the cell where the next step reads them.
#include <ATen/Dispatch.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mm.h>

#include <type_traits>

#include "passes.h"
#include "small_products.h"

// The headers that the CUDA backends share also serve kernels that run on CPU tensors, as emulated kernels do.
#define CUDA_EMULATED
#include "lltm_sequence_operator.h"

namespace OPERATOR_NAMESPACE {

namespace {

/// out = start + a b; an undefined `start` is 0. It may be `out`. Rows of b are dense, all else is contiguous.
template <typename scalar>
void add_product(const Tensor& start, const Tensor& a, const Tensor& b, Tensor& out) {
  if constexpr (std::is_same_v<scalar, float> || std::is_same_v<scalar, double>) {
    if (is_small(a.size(0), b)) {
      return multiply<scalar>({a.size(0), b.size(1), a.size(1), a.const_data_ptr<scalar>(), a.size(1), 1,
                               b.const_data_ptr<scalar>(), b.stride(0),
                               start.defined() ? start.const_data_ptr<scalar>() : nullptr,
                               out.mutable_data_ptr<scalar>(), out.size(1)});
    }
  }
  if (start.defined()) {
    at::addmm_out(out, start, a, b);
  } else {
    at::mm_out(out, a, b);
  }
}

}  // namespace

void lltm_steps_forward(const Tensor& of_h, const Tensor& h0, const Tensor& c0, const Tensor& gates, const Tensor& h,
                        const Tensor& cells, const Tensor& c_T) {
  const int64_t steps = h.size(0), batch = h.size(1), state_size = h.size(2);
  // A product of few rows with weights in the other layout takes 1.6 times as long. The time to transpose them is saved
  // by four steps.
  const Tensor transposed = of_h.t().contiguous();
  Tensor state = h0, cell = cells.select(0, 0);
  cell.copy_(c0);
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, gates.scalar_type(), "lltm_sequence_forward", [&] {
    for (int64_t t = 0; t < steps; ++t) {
      Tensor now = gates.select(0, t);
      const Tensor new_h = h.select(0, t), new_cell = t + 1 < steps ? cells.select(0, t + 1) : c_T;
      add_product<scalar_t>(now, state, transposed, now);
      forward_pass(kAwake, batch, state_size, now.const_data_ptr<scalar_t>(), cell.const_data_ptr<scalar_t>(),
                   new_h.mutable_data_ptr<scalar_t>(), new_cell.mutable_data_ptr<scalar_t>());
      state = new_h;
      cell = new_cell;
    }
  });
}

void lltm_steps_backward(const Tensor& of_h, const Tensor& gates, const Tensor& cells, const Tensor& grad_h,
                         const Tensor& grad_cell, const Tensor& d_gates, const Tensor& d_h0, const Tensor& d_c0) {
  const int64_t steps = cells.size(0), batch = cells.size(1), state_size = cells.size(2);
  // A pass must not write what it reads: two buffers take turns, so that step 0 writes to d_c0.
  const Tensor d_cells[] = {d_c0, at::empty_like(d_c0)};
  Tensor g_h = grad_h.select(0, steps - 1), g_cell = grad_cell, d_h = d_h0;
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, gates.scalar_type(), "lltm_sequence_backward", [&] {
    for (int64_t t = steps - 1; t >= 0; --t) {
      const Tensor d_now = d_gates.select(0, t), &d_cell = d_cells[t % 2];
      backward_pass(kAwake, batch, state_size, gates.select(0, t).const_data_ptr<scalar_t>(),
                    cells.select(0, t).const_data_ptr<scalar_t>(), g_h.const_data_ptr<scalar_t>(),
                    g_cell.const_data_ptr<scalar_t>(), d_now.mutable_data_ptr<scalar_t>(),
                    d_cell.mutable_data_ptr<scalar_t>());
      g_cell = d_cell;
      if (t > 0) {
        add_product<scalar_t>(grad_h.select(0, t - 1), d_now, of_h, d_h);
        g_h = d_h;
      } else {
        add_product<scalar_t>({}, d_now, of_h, d_h);
      }
    }
  });
}

}  // namespace OPERATOR_NAMESPACE
