// The element-wise part of the LLTM cell, forward and backward, over packed accessors.
//
// gates and d_gates are (batch, 3*state_size): a row holds in_gate, out_gate and candidate_gate, state_size each. All
// other matrices are (batch, state_size). Any of them may have any strides.
//
// Work: an item is one element of the state, so item n is at row n / state_size, column n % state_size. Neighbouring
// threads take neighbouring columns: where a row is contiguous, its loads and stores are coalesced. Forward moves 6
// elements for each of the state, backward 10.
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
