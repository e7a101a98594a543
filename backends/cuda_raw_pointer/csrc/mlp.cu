// The element-wise part of the MLP's hidden layer, forward and backward, over raw pointers.
//
// Reading order:
//   1. spec/mlp.py             the mathematics, with the names that are used here
//   2. mlp.cu                  this file: two kernels, and their launches, which mlp.h declares
//   3. _cuda/mlp_math.h        the arithmetic of one hidden unit
//   4. _cuda/vectors.h         loads and stores of 16 bytes
//   5. _cuda/launch.h          the instance for a dtype and an index type, the grid, the check of a launch
//   6. mlp.cpp                 from tensors to pointers
//   7. _cuda/mlp_operator.h    the matrix products around the kernels
//   8. _native/mlp_autograd.h  argument checks, differentiable formulae, and the traits of the operator
//   9. _native/registration.h  autograd, autocast, Meta kernels and registration, for every operator
//
// hidden_bias is (hidden_size,), all other arrays are (batch, hidden_size). Everything is contiguous.
//
// Work: an item is `width` neighbouring elements of one row, so item n starts at element n*width, which is in column
// n*width % hidden_size. Neighbouring threads take neighbouring items: every load and store is coalesced, and of 16
// bytes where size and alignment allow it. Both kernels work in place. For each hidden unit, forward moves 2 elements,
// and the bias, which stays in the cache; backward moves 3.
#include "mlp.h"

#include "launch.h"
#include "mlp_math.h"
#include "vectors.h"

namespace OPERATOR_NAMESPACE {

template <typename scalar_t, typename index_t, int width>
__global__ void mlp_forward_kernel(index_t batch, index_t hidden_size, const scalar_t* __restrict__ hidden_bias,
                                   scalar_t* __restrict__ hidden) {
  const index_t items = batch * hidden_size / width;
  for (index_t item = first_item<index_t>(); item < items; item += item_stride<index_t>()) {
    const index_t unit = item * width;
    const auto bias = load<width>(hidden_bias + unit % hidden_size);
    auto value = load<width>(hidden + unit);
    for (int k = 0; k < width; ++k) {
      value.lane[k] = hidden_forward<compute_t<scalar_t>>(value.lane[k], bias.lane[k]);
    }
    store(hidden + unit, value);
  }
}

template <typename scalar_t, typename index_t, int width>
__global__ void mlp_backward_kernel(index_t batch, index_t hidden_size, const scalar_t* __restrict__ hidden,
                                    scalar_t* __restrict__ d_hidden) {
  const index_t items = batch * hidden_size / width;
  for (index_t item = first_item<index_t>(); item < items; item += item_stride<index_t>()) {
    const index_t unit = item * width;
    const auto value = load<width>(hidden + unit);
    auto gradient = load<width>(d_hidden + unit);
    for (int k = 0; k < width; ++k) {
      gradient.lane[k] = hidden_vjp<compute_t<scalar_t>>(gradient.lane[k], value.lane[k]);
    }
    store(d_hidden + unit, gradient);
  }
}

void launch_mlp_forward(ScalarType dtype, int64_t batch, int64_t hidden_size, const void* hidden_bias, void* hidden,
                        void* stream) {
  for_dtype(dtype, [&]<typename scalar_t>() {
    for_index_type(batch * hidden_size, [&]<typename index_t>() {
      for_vector_width<scalar_t>(hidden_size, {hidden_bias, hidden}, [&]<int width>() {
        launch("mlp_forward_kernel", mlp_forward_kernel<scalar_t, index_t, width>, batch * hidden_size / width, stream,
               static_cast<index_t>(batch), static_cast<index_t>(hidden_size),
               static_cast<const scalar_t*>(hidden_bias), static_cast<scalar_t*>(hidden));
      });
    });
  });
}

void launch_mlp_backward(ScalarType dtype, int64_t batch, int64_t hidden_size, const void* hidden, void* d_hidden,
                         void* stream) {
  for_dtype(dtype, [&]<typename scalar_t>() {
    for_index_type(batch * hidden_size, [&]<typename index_t>() {
      for_vector_width<scalar_t>(hidden_size, {hidden, d_hidden}, [&]<int width>() {
        launch("mlp_backward_kernel", mlp_backward_kernel<scalar_t, index_t, width>, batch * hidden_size / width,
               stream, static_cast<index_t>(batch), static_cast<index_t>(hidden_size),
               static_cast<const scalar_t*>(hidden), static_cast<scalar_t*>(d_hidden));
      });
    });
  });
}

}  // namespace OPERATOR_NAMESPACE
