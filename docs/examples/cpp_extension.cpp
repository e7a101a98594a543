// The element-wise part of the LLTM cell in C++, one pass over memory forward and one backward.
//
// gates is (batch, 3*state_size), everything else (batch, state_size); all are contiguous, on the CPU, of one dtype.
// `check` refuses everything else: a kernel that assumes it would read past the end of a smaller array.
#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

#include <array>
#include <cmath>
#include <tuple>

namespace {

using at::Tensor;

template <typename real>
real sigmoid(real z) {
  return 1 / (1 + std::exp(-z));
}

/// Raises, with the name of the argument, unless it is contiguous and `parts` times as wide as old_cell.
void check(const char* name, const Tensor& tensor, int64_t parts, const Tensor& old_cell) {
  TORCH_CHECK(old_cell.dim() == 2, "old_cell had ", old_cell.dim(), " dimensions, but should have 2");
  const std::array<int64_t, 2> shape = {old_cell.size(0), parts * old_cell.size(1)};
  TORCH_CHECK(tensor.sizes() == at::IntArrayRef(shape), name, " was of shape ", tensor.sizes(), ", but should be of ",
              at::IntArrayRef(shape));
  TORCH_CHECK(tensor.scalar_type() == old_cell.scalar_type(), name, " was ", tensor.scalar_type(), ", but should be ",
              old_cell.scalar_type(), ", the dtype of old_cell");
  TORCH_CHECK(tensor.is_contiguous(), name, " was not contiguous, but should be; call .contiguous()");
}

std::tuple<Tensor, Tensor> forward(const Tensor& gates, const Tensor& old_cell) {
  check("gates", gates, 3, old_cell);
  check("old_cell", old_cell, 1, old_cell);
  const int64_t batch = old_cell.size(0), state = old_cell.size(1);
  const Tensor new_h = at::empty_like(old_cell), new_cell = at::empty_like(old_cell);
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, old_cell.scalar_type(), "forward", [&] {
    using real = at::opmath_type<scalar_t>;  // float for half types, which are rounded once, at the end
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
  check("grad_h", grad_h, 1, old_cell);
  check("grad_cell", grad_cell, 1, old_cell);
  check("gates", gates, 3, old_cell);
  check("old_cell", old_cell, 1, old_cell);
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
