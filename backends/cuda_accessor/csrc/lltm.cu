// The element-wise part of the LLTM cell, forward and backward, over packed accessors.
//
// Reading order:
//   1. spec/lltm.py             the mathematics, with the names that are used here
//   2. lltm.cu                  this file: two kernels, and their launches, which lltm.h declares
//   3. _cuda/lltm_math.h        the arithmetic of one element
//   4. addressing.h             matrices with strides, and the accessors made of them
//   5. _cuda/launch.h           the instance for a dtype and an index type, the grid, the check of a launch
//   6. lltm.cpp                 from tensors to matrices, by matrix.h
//   7. _cuda/lltm_operator.h    the matrix products around the kernels
//   8. _native/lltm_autograd.h  argument checks, differentiable formulae, and the traits of the operator
//   9. _native/registration.h   autograd, autocast, Meta kernels and registration, for every operator
//
// Compare it with cuda_raw_pointer/csrc/lltm.cu: only the addressing differs.
//
// gates and d_gates are (batch, 3*state_size): a row holds in_gate, out_gate and candidate_gate, state_size each. All
// other matrices are (batch, state_size). Each of them may have any strides.
//
// Work: an item is one element of the state, so item n is at row n / state_size, column n % state_size. Neighbouring
// threads take neighbouring columns: where a row is contiguous, its loads and stores are coalesced. For each element of
// the state, forward moves 6 elements and backward 10.
#include "addressing.h"
#include "launch.h"
#include "lltm.h"
#include "lltm_math.h"

namespace OPERATOR_NAMESPACE {

template <typename scalar_t, typename index_t>
__global__ void lltm_forward_kernel(index_t batch, index_t state_size, const Accessor<const scalar_t, index_t> gates,
                                    const Accessor<const scalar_t, index_t> old_cell, Accessor<scalar_t, index_t> new_h,
                                    Accessor<scalar_t, index_t> new_cell) {
  const index_t items = batch * state_size;
  for (index_t item = first_item<index_t>(); item < items; item += item_stride<index_t>()) {
    const index_t row = item / state_size;
    const index_t column = item % state_size;
    const auto gate = gates[row];
    const auto next = cell_forward<compute_t<scalar_t>>(gate[column], gate[column + state_size],
                                                        gate[column + 2 * state_size], old_cell[row][column]);
    new_h[row][column] = next.new_h;
    new_cell[row][column] = next.new_cell;
  }
}

template <typename scalar_t, typename index_t>
__global__ void lltm_backward_kernel(index_t batch, index_t state_size, const Accessor<const scalar_t, index_t> gates,
                                     const Accessor<const scalar_t, index_t> old_cell,
                                     const Accessor<const scalar_t, index_t> grad_h,
                                     const Accessor<const scalar_t, index_t> grad_cell,
                                     Accessor<scalar_t, index_t> d_gates, Accessor<scalar_t, index_t> d_old_cell) {
  const index_t items = batch * state_size;
  for (index_t item = first_item<index_t>(); item < items; item += item_stride<index_t>()) {
    const index_t row = item / state_size;
    const index_t column = item % state_size;
    const auto gate = gates[row];
    const auto gradient =
        cell_vjp<compute_t<scalar_t>>(grad_h[row][column], grad_cell[row][column], gate[column],
                                      gate[column + state_size], gate[column + 2 * state_size], old_cell[row][column]);
    auto d_gate = d_gates[row];
    d_gate[column] = gradient.d_in_gate;
    d_gate[column + state_size] = gradient.d_out_gate;
    d_gate[column + 2 * state_size] = gradient.d_candidate_gate;
    d_old_cell[row][column] = gradient.d_old_cell;
  }
}

void launch_lltm_forward(ScalarType dtype, const Matrix<const void>& gates, const Matrix<const void>& old_cell,
                         const Matrix<void>& new_h, const Matrix<void>& new_cell, void* stream) {
  const int64_t batch = old_cell.sizes[0], state_size = old_cell.sizes[1];
  const int64_t items = batch * state_size;
  for_dtype(dtype, [&]<typename scalar_t>() {
    for_index_type(largest_index(3 * items, gates, old_cell, new_h, new_cell), [&]<typename index_t>() {
      launch("lltm_forward_kernel", lltm_forward_kernel<scalar_t, index_t>, items, stream, batch, state_size,
             accessor<const scalar_t, index_t>(gates), accessor<const scalar_t, index_t>(old_cell),
             accessor<scalar_t, index_t>(new_h), accessor<scalar_t, index_t>(new_cell));
    });
  });
}

void launch_lltm_backward(ScalarType dtype, const Matrix<const void>& gates, const Matrix<const void>& old_cell,
                          const Matrix<const void>& grad_h, const Matrix<const void>& grad_cell,
                          const Matrix<void>& d_gates, const Matrix<void>& d_old_cell, void* stream) {
  const int64_t batch = old_cell.sizes[0], state_size = old_cell.sizes[1];
  const int64_t items = batch * state_size;
  for_dtype(dtype, [&]<typename scalar_t>() {
    for_index_type(
        largest_index(3 * items, gates, old_cell, grad_h, grad_cell, d_gates, d_old_cell), [&]<typename index_t>() {
          launch("lltm_backward_kernel", lltm_backward_kernel<scalar_t, index_t>, items, stream, batch, state_size,
                 accessor<const scalar_t, index_t>(gates), accessor<const scalar_t, index_t>(old_cell),
                 accessor<const scalar_t, index_t>(grad_h), accessor<const scalar_t, index_t>(grad_cell),
                 accessor<scalar_t, index_t>(d_gates), accessor<scalar_t, index_t>(d_old_cell));
        });
  });
}

}  // namespace OPERATOR_NAMESPACE
