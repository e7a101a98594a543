// The element-wise part of the MLP's hidden layer, forward and backward, over packed accessors.
//
// Reading order:
//   1. spec/mlp.py             the mathematics, with the names that are used here
//   2. mlp.cu                  this file: two kernels, and their launches, which mlp.h declares
//   3. _cuda/mlp_math.h        the arithmetic of one hidden unit
//   4. addressing.h            matrices with strides, and the accessors made of them
//   5. _cuda/launch.h          the instance for a dtype and an index type, the grid, the check of a launch
//   6. mlp.cpp                 from tensors to matrices, by matrix.h
//   7. _cuda/mlp_operator.h    the matrix products around the kernels
//   8. _native/mlp_autograd.h  argument checks, differentiable formulae, and the traits of the operator
//   9. _native/registration.h  autograd, autocast, Meta kernels and registration, for every operator
//
// Compare it with cuda_raw_pointer/csrc/mlp.cu: only the addressing differs.
//
// All matrices are (batch, hidden_size), and may have any strides: the bias has row stride 0.
//
// Work: an item is one hidden unit of one row, so item n is at row n / hidden_size, column n % hidden_size.
// Neighbouring threads take neighbouring columns: where a row is contiguous, its loads and stores are coalesced. Both
// kernels work in place. For each hidden unit, forward moves 2 elements, and the bias, which stays in the cache;
// backward moves 3.
#include "addressing.h"
#include "launch.h"
#include "mlp.h"
#include "mlp_math.h"

namespace OPERATOR_NAMESPACE {

template <typename scalar_t, typename index_t>
__global__ void mlp_forward_kernel(index_t batch, index_t hidden_size,
                                   const Accessor<const scalar_t, index_t> hidden_bias,
                                   Accessor<scalar_t, index_t> hidden) {
  const index_t items = batch * hidden_size;
  for (index_t item = first_item<index_t>(); item < items; item += item_stride<index_t>()) {
    const index_t row = item / hidden_size;
    const index_t column = item % hidden_size;
    hidden[row][column] = hidden_forward<compute_t<scalar_t>>(hidden[row][column], hidden_bias[row][column]);
  }
}

template <typename scalar_t, typename index_t>
__global__ void mlp_backward_kernel(index_t batch, index_t hidden_size, const Accessor<const scalar_t, index_t> hidden,
                                    Accessor<scalar_t, index_t> d_hidden) {
  const index_t items = batch * hidden_size;
  for (index_t item = first_item<index_t>(); item < items; item += item_stride<index_t>()) {
    const index_t row = item / hidden_size;
    const index_t column = item % hidden_size;
    d_hidden[row][column] = hidden_vjp<compute_t<scalar_t>>(d_hidden[row][column], hidden[row][column]);
  }
}

void launch_mlp_forward(ScalarType dtype, const Matrix<const void>& hidden_bias, const Matrix<void>& hidden,
                        void* stream) {
  const int64_t batch = hidden.sizes[0], hidden_size = hidden.sizes[1];
  const int64_t items = batch * hidden_size;
  const int64_t largest = largest_index(items, hidden_bias, hidden);
  for_dtype(dtype, [&]<typename scalar_t>() {
    for_index_type(largest, [&]<typename index_t>() {
      launch("mlp_forward_kernel", mlp_forward_kernel<scalar_t, index_t>, items, stream, batch, hidden_size,
             accessor<const scalar_t, index_t>(hidden_bias), accessor<scalar_t, index_t>(hidden));
    });
  });
}

void launch_mlp_backward(ScalarType dtype, const Matrix<const void>& hidden, const Matrix<void>& d_hidden,
                         void* stream) {
  const int64_t batch = d_hidden.sizes[0], hidden_size = d_hidden.sizes[1];
  const int64_t items = batch * hidden_size;
  const int64_t largest = largest_index(items, hidden, d_hidden);
  for_dtype(dtype, [&]<typename scalar_t>() {
    for_index_type(largest, [&]<typename index_t>() {
      launch("mlp_backward_kernel", mlp_backward_kernel<scalar_t, index_t>, items, stream, batch, hidden_size,
             accessor<const scalar_t, index_t>(hidden), accessor<scalar_t, index_t>(d_hidden));
    });
  });
}

}  // namespace OPERATOR_NAMESPACE
