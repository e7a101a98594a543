// The kernels of LayerNorm over contiguous rows of any length: the rows forward and backward, and the sums over rows.
//
// No row has to fit registers, so each pass reads it again. Forward has three passes, for the mean, the variance and
// the output; backward has two, for the sums and for the gradient. All passes but the first find the row in the cache.
//
// Matrices are (rows, columns). Rows: `threads` neighbouring threads work on one (layer_norm_math.h) and take
// neighbouring vectors of `width` elements in turn, so that loads and stores are coalesced, and of 16 bytes where size
// and alignment allow it. Sums over rows: a thread has one column of one part of the rows, so neighbouring threads read
// neighbouring elements. Another operation adds up the parts, in the same order each time.
#pragma once

#include <initializer_list>

#include "launch.h"
#include "layer_norm_math.h"
#include "vectors.h"
#include "widened_vectors.h"

namespace OPERATOR_NAMESPACE {

template <typename scalar_t, typename index_t, int width>
__global__ void layer_norm_forward_kernel(index_t rows, index_t columns, int threads,
                                          const scalar_t* __restrict__ input, const scalar_t* __restrict__ weight,
                                          const scalar_t* __restrict__ bias, compute_t<scalar_t> eps,
                                          scalar_t* __restrict__ output, compute_t<scalar_t>* __restrict__ mean,
                                          compute_t<scalar_t>* __restrict__ rstd) {
  using real = compute_t<scalar_t>;
  const index_t rows_at_once = static_cast<index_t>(blockDim.x) / threads;
  const index_t own_row = static_cast<index_t>(threadIdx.x) / threads;
  const index_t begin = static_cast<index_t>(threadIdx.x) % threads * width,
                step = static_cast<index_t>(threads) * width;
  // All threads of a block make the same number of rounds: row_sum needs every one of them.
  for (index_t first = blockIdx.x * rows_at_once; first < rows; first += gridDim.x * rows_at_once) {
    const index_t row = first + own_row;
    const index_t end = row < rows ? columns : 0;
    const scalar_t* x = input + row * columns;
    real sum = 0;
    for (index_t column = begin; column < end; column += step) {
      const auto vector = load<width>(x + column);
      for (int k = 0; k < width; ++k) sum += static_cast<real>(vector.lane[k]);
    }
    const real m = row_sum(sum, threads) / static_cast<real>(columns);
    real squares = 0;
    for (index_t column = begin; column < end; column += step) {
      const auto vector = load<width>(x + column);
      for (int k = 0; k < width; ++k) {
        const real centred = static_cast<real>(vector.lane[k]) - m;
        squares += centred * centred;
      }
    }
    const real r = reciprocal_root(row_sum(squares, threads) / static_cast<real>(columns), eps);
    for (index_t column = begin; column < end; column += step) {
      const auto vector = load<width>(x + column);
      const auto w = load_or<width>(weight, column, real(1)), b = load_or<width>(bias, column, real(0));
      Vector<scalar_t, width> y;
      for (int k = 0; k < width; ++k) {
        y.lane[k] = normalise(static_cast<real>(vector.lane[k]), m, r, w.lane[k], b.lane[k]);
      }
      store(output + row * columns + column, y);
    }
    if (begin < end && begin == 0) {
      mean[row] = m;
      rstd[row] = r;
    }
  }
}

template <typename scalar_t, typename index_t, int width>
__global__ void layer_norm_backward_kernel(index_t rows, index_t columns, int threads,
                                           const scalar_t* __restrict__ grad_output, const scalar_t* __restrict__ input,
                                           const compute_t<scalar_t>* __restrict__ mean,
                                           const compute_t<scalar_t>* __restrict__ rstd,
                                           const scalar_t* __restrict__ weight, scalar_t* __restrict__ d_input) {
  using real = compute_t<scalar_t>;
  const index_t rows_at_once = static_cast<index_t>(blockDim.x) / threads;
  const index_t own_row = static_cast<index_t>(threadIdx.x) / threads;
  const index_t begin = static_cast<index_t>(threadIdx.x) % threads * width,
                step = static_cast<index_t>(threads) * width;
  for (index_t first = blockIdx.x * rows_at_once; first < rows; first += gridDim.x * rows_at_once) {
    const index_t row = first + own_row;
    const bool is_there = row < rows;
    const index_t end = is_there ? columns : 0;
    const scalar_t *g = grad_output + row * columns, *x = input + row * columns;
    const real m = is_there ? mean[row] : real(0), r = is_there ? rstd[row] : real(0);
    real sum_h = 0, sum_h_xhat = 0;
    for (index_t column = begin; column < end; column += step) {
      const auto grad = load<width>(g + column), vector = load<width>(x + column);
      const auto w = load_or<width>(weight, column, real(1));
      for (int k = 0; k < width; ++k) {
        const real h = static_cast<real>(grad.lane[k]) * w.lane[k];
        sum_h += h;
        sum_h_xhat += h * ((static_cast<real>(vector.lane[k]) - m) * r);
      }
    }
    const real mean_h = row_sum(sum_h, threads) / static_cast<real>(columns);
    const real mean_h_xhat = row_sum(sum_h_xhat, threads) / static_cast<real>(columns);
    for (index_t column = begin; column < end; column += step) {
      const auto grad = load<width>(g + column), vector = load<width>(x + column);
      const auto w = load_or<width>(weight, column, real(1));
      Vector<scalar_t, width> d_x;
      for (int k = 0; k < width; ++k) {
        const real h = static_cast<real>(grad.lane[k]) * w.lane[k];
        const real xhat = (static_cast<real>(vector.lane[k]) - m) * r;
        d_x.lane[k] = input_gradient(h, xhat, r, mean_h, mean_h_xhat);
      }
      store(d_input + row * columns + column, d_x);
    }
  }
}

template <typename scalar_t, typename index_t>
__global__ void layer_norm_columns_kernel(index_t rows, index_t columns, index_t parts,
                                          const scalar_t* __restrict__ grad_output, const scalar_t* __restrict__ input,
                                          const compute_t<scalar_t>* __restrict__ mean,
                                          const compute_t<scalar_t>* __restrict__ rstd,
                                          compute_t<scalar_t>* __restrict__ d_weight,
                                          compute_t<scalar_t>* __restrict__ d_bias) {
  using real = compute_t<scalar_t>;
  const index_t items = parts * columns;
  for (index_t item = first_item<index_t>(); item < items; item += item_stride<index_t>()) {
    const index_t part = item / columns, column = item % columns;
    real sum_g = 0, sum_g_xhat = 0;
    for (index_t row = part; row < rows; row += parts) {
      const real g = static_cast<real>(grad_output[row * columns + column]);
      sum_g += g;
      sum_g_xhat += g * ((static_cast<real>(input[row * columns + column]) - mean[row]) * rstd[row]);
    }
    d_weight[item] = sum_g_xhat;
    d_bias[item] = sum_g;
  }
}

/// Calls `body.operator()<scalar_t, index_t, width>(threads)` with the instance for a matrix, and for pointers that are
/// accessed by vectors, and with the number of threads for a row.
template <typename Body>
void for_row_instance(ScalarType dtype, int64_t rows, int64_t columns, std::initializer_list<const void*> pointers,
                      Body body) {
  for_dtype(dtype, [&]<typename scalar_t>() {
    for_index_type(rows * columns, [&]<typename index_t>() {
      for_vector_width<scalar_t>(columns, pointers, [&]<int width>() {
        body.template operator()<scalar_t, index_t, width>(threads_for_row(columns / width));
      });
    });
  });
}

}  // namespace OPERATOR_NAMESPACE
