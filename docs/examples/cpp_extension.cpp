// The element-wise part of the LLTM cell in C++, one pass over memory forward and one backward.
//
// gates is (batch, 3*state_size), everything else (batch, state_size); all are contiguous, on the CPU, of one dtype.
#include <ATen/AccumulateType.h>
#include <ATen/Dispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <torch/library.h>

#include <cmath>
#include <tuple>

namespace {

using at::Tensor;

template <typename real>
real sigmoid(real z) {
  return 1 / (1 + std::exp(-z));
}

std::tuple<Tensor, Tensor> forward(const Tensor& gates, const Tensor& old_cell) {
  const int64_t batch = old_cell.size(0), state = old_cell.size(1);
  const Tensor new_h = at::empty_like(old_cell), new_cell = at::empty_like(old_cell);
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, old_cell.scalar_type(), "forward", [&] {
    using real = at::opmath_type<scalar_t>;  // float for half types: they are rounded once, at the end
    const auto *z = gates.const_data_ptr<scalar_t>(), *cell = old_cell.const_data_ptr<scalar_t>();
    auto *h = new_h.mutable_data_ptr<scalar_t>(), *c = new_cell.mutable_data_ptr<scalar_t>();
    for (int64_t n = 0; n < batch * state; ++n) {
      const int64_t gate = n + n / state * 2 * state;
      const real k = z[gate + 2 * state], elu = k > 0 ? k : std::expm1(k);
      const real next = cell[n] + sigmoid<real>(z[gate]) * elu;
      h[n] = sigmoid<real>(z[gate + state]) * std::tanh(next);
      c[n] = next;
    }
  });
  return {new_h, new_cell};
}

std::tuple<Tensor, Tensor> backward(const Tensor& grad_h, const Tensor& grad_cell, const Tensor& gates,
                                    const Tensor& old_cell) {
  const int64_t batch = old_cell.size(0), state = old_cell.size(1);
  const Tensor d_gates = at::empty_like(gates), d_old_cell = at::empty_like(old_cell);
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, old_cell.scalar_type(), "backward", [&] {
    using real = at::opmath_type<scalar_t>;
    const auto *z = gates.const_data_ptr<scalar_t>(), *cell = old_cell.const_data_ptr<scalar_t>();
    const auto *g_h = grad_h.const_data_ptr<scalar_t>(), *g_c = grad_cell.const_data_ptr<scalar_t>();
    auto *dz = d_gates.mutable_data_ptr<scalar_t>(), *dc = d_old_cell.mutable_data_ptr<scalar_t>();
    for (int64_t n = 0; n < batch * state; ++n) {
      const int64_t gate = n + n / state * 2 * state;
      const real i = sigmoid<real>(z[gate]), o = sigmoid<real>(z[gate + state]), k = z[gate + 2 * state];
      const real elu = k > 0 ? k : std::expm1(k), slope = k > 0 ? 1 : std::exp(k);
      const real t = std::tanh(cell[n] + i * elu);
      const real d_cell = g_h[n] * o * (1 - t * t) + g_c[n];
      dz[gate] = d_cell * elu * i * (1 - i);
      dz[gate + state] = g_h[n] * t * o * (1 - o);
      dz[gate + 2 * state] = d_cell * i * slope;
      dc[n] = d_cell;
    }
  });
  return {d_gates, d_old_cell};
}

}  // namespace

TORCH_LIBRARY(my_extension, m) {
  m.def("forward(Tensor gates, Tensor old_cell) -> (Tensor, Tensor)");
  m.def("backward(Tensor grad_h, Tensor grad_cell, Tensor gates, Tensor old_cell) -> (Tensor, Tensor)");
}

TORCH_LIBRARY_IMPL(my_extension, CPU, m) {
  m.impl("forward", &forward);
  m.impl("backward", &backward);
}
