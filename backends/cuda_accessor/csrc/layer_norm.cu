// LayerNorm over packed accessors: the rows forward and backward, and the sums over rows.
//
// Reading order:
//    1. spec/layer_norm.py             the mathematics, with the names that are used here
//    2. layer_norm.cu                  this file: three kernels, and their launches, which layer_norm.h declares
//    3. _cuda/layer_norm_math.h        the arithmetic of one element, and the sum over a row
//    4. addressing.h                   matrices with strides, and the accessors made of them
//    5. _cuda/launch.h                 the instance for a dtype and an index type, the grid, the check of a launch
//    6. layer_norm.cpp                 from tensors to matrices, by matrix.h
//    7. _cuda/layer_norm_passes.h      backward as a pass over rows and one over columns
//    8. _cuda/layer_norm_operator.h    what is allocated; tensors of any rank as matrices
//    9. _native/layer_norm_autograd.h  argument checks, differentiable formulae, and the traits of the operator
//   10. _native/registration.h         autograd, autocast, Meta kernels and registration, for every operator
//
// Compare it with _cuda/layer_norm_kernels.h, which cuda_raw_pointer uses: only the addressing differs.
//
// Matrices are (rows, columns) with any strides. Rows: `threads` neighbouring threads work on one (layer_norm_math.h)
// and take neighbouring elements in turn: where a row is contiguous, loads and stores are coalesced. Forward reads a
// row three times, for its mean, its variance and its output; the second and third time from the cache. Sums over rows:
// a thread has one column of one part of the rows, so neighbouring threads read neighbouring elements. Another
// operation adds up the parts, in the same order each time.
#include "addressing.h"
#include "launch.h"
#include "layer_norm.h"
#include "layer_norm_math.h"

namespace OPERATOR_NAMESPACE {

/// Element `column`, or `otherwise` where there is no data.
template <typename real, typename accessor_t, typename index_t>
__device__ real element_or(const accessor_t& row, index_t column, real otherwise) {
  return row.data() == nullptr ? otherwise : static_cast<real>(row[0][column]);
}

template <typename scalar_t, typename index_t>
__global__ void layer_norm_forward_kernel(index_t rows, index_t columns, int threads,
                                          const Accessor<const scalar_t, index_t> input,
                                          const Accessor<const scalar_t, index_t> weight,
                                          const Accessor<const scalar_t, index_t> bias, compute_t<scalar_t> eps,
                                          Accessor<scalar_t, index_t> output,
                                          Accessor<compute_t<scalar_t>, index_t> mean,
                                          Accessor<compute_t<scalar_t>, index_t> rstd) {
  using real = compute_t<scalar_t>;
  const index_t rows_at_once = static_cast<index_t>(blockDim.x) / threads;
  const index_t own_row = static_cast<index_t>(threadIdx.x) / threads;
  const index_t begin = static_cast<index_t>(threadIdx.x) % threads;
  // All threads of a block make the same number of rounds: row_sum needs every one of them.
  for (index_t first = blockIdx.x * rows_at_once; first < rows; first += gridDim.x * rows_at_once) {
    const index_t row = first + own_row;
    const index_t end = row < rows ? columns : 0;
    real sum = 0;
    for (index_t column = begin; column < end; column += threads) sum += static_cast<real>(input[row][column]);
    const real m = row_sum(sum, threads) / static_cast<real>(columns);
    real squares = 0;
    for (index_t column = begin; column < end; column += threads) {
      const real centred = static_cast<real>(input[row][column]) - m;
      squares += centred * centred;
    }
    const real r = reciprocal_root(row_sum(squares, threads) / static_cast<real>(columns), eps);
    for (index_t column = begin; column < end; column += threads) {
      output[row][column] = normalise(static_cast<real>(input[row][column]), m, r, element_or(weight, column, real(1)),
                                      element_or(bias, column, real(0)));
    }
    if (begin < end && begin == 0) {
      mean[0][row] = m;
      rstd[0][row] = r;
    }
  }
}

template <typename scalar_t, typename index_t>
__global__ void layer_norm_backward_kernel(index_t rows, index_t columns, int threads,
                                           const Accessor<const scalar_t, index_t> grad_output,
                                           const Accessor<const scalar_t, index_t> input,
                                           const Accessor<const compute_t<scalar_t>, index_t> mean,
                                           const Accessor<const compute_t<scalar_t>, index_t> rstd,
                                           const Accessor<const scalar_t, index_t> weight,
                                           Accessor<scalar_t, index_t> d_input) {
  using real = compute_t<scalar_t>;
  const index_t rows_at_once = static_cast<index_t>(blockDim.x) / threads;
  const index_t own_row = static_cast<index_t>(threadIdx.x) / threads;
  const index_t begin = static_cast<index_t>(threadIdx.x) % threads;
  for (index_t first = blockIdx.x * rows_at_once; first < rows; first += gridDim.x * rows_at_once) {
    const index_t row = first + own_row;
    const bool is_there = row < rows;
    const index_t end = is_there ? columns : 0;
    const real m = is_there ? mean[0][row] : real(0), r = is_there ? rstd[0][row] : real(0);
    real sum_h = 0, sum_h_xhat = 0;
    for (index_t column = begin; column < end; column += threads) {
      const real h = static_cast<real>(grad_output[row][column]) * element_or(weight, column, real(1));
      sum_h += h;
      sum_h_xhat += h * ((static_cast<real>(input[row][column]) - m) * r);
    }
    const real mean_h = row_sum(sum_h, threads) / static_cast<real>(columns);
    const real mean_h_xhat = row_sum(sum_h_xhat, threads) / static_cast<real>(columns);
    for (index_t column = begin; column < end; column += threads) {
      const real h = static_cast<real>(grad_output[row][column]) * element_or(weight, column, real(1));
      const real xhat = (static_cast<real>(input[row][column]) - m) * r;
      d_input[row][column] = input_gradient(h, xhat, r, mean_h, mean_h_xhat);
    }
  }
}

template <typename scalar_t, typename index_t>
__global__ void layer_norm_columns_kernel(index_t rows, index_t columns, index_t parts,
                                          const Accessor<const scalar_t, index_t> grad_output,
                                          const Accessor<const scalar_t, index_t> input,
                                          const Accessor<const compute_t<scalar_t>, index_t> mean,
                                          const Accessor<const compute_t<scalar_t>, index_t> rstd,
                                          Accessor<compute_t<scalar_t>, index_t> d_weight,
                                          Accessor<compute_t<scalar_t>, index_t> d_bias) {
  using real = compute_t<scalar_t>;
  const index_t items = parts * columns;
  for (index_t item = first_item<index_t>(); item < items; item += item_stride<index_t>()) {
    const index_t part = item / columns, column = item % columns;
    real sum_g = 0, sum_g_xhat = 0;
    for (index_t row = part; row < rows; row += parts) {
      const real g = static_cast<real>(grad_output[row][column]);
      sum_g += g;
      sum_g_xhat += g * ((static_cast<real>(input[row][column]) - mean[0][row]) * rstd[0][row]);
    }
    d_weight[part][column] = sum_g_xhat;
    d_bias[part][column] = sum_g;
  }
}

void launch_layer_norm_forward(ScalarType dtype, const Matrix<const void>& input, const Matrix<const void>& weight,
                               const Matrix<const void>& bias, double eps, const Matrix<void>& output,
                               const Matrix<void>& mean, const Matrix<void>& rstd, void* stream) {
  const int64_t rows = input.sizes[0], columns = input.sizes[1];
  const int threads = threads_for_row(columns);
  for_dtype(dtype, [&]<typename scalar_t>() {
    using real = compute_t<scalar_t>;
    for_index_type(largest_index(rows * columns, input, weight, bias, output), [&]<typename index_t>() {
      launch_with_barriers(
          "layer_norm_forward_kernel", layer_norm_forward_kernel<scalar_t, index_t>, rows, kBlockSize / threads, stream,
          rows, columns, threads, accessor<const scalar_t, index_t>(input), accessor<const scalar_t, index_t>(weight),
          accessor<const scalar_t, index_t>(bias), static_cast<real>(eps), accessor<scalar_t, index_t>(output),
          accessor<real, index_t>(mean), accessor<real, index_t>(rstd));
    });
  });
}

void launch_layer_norm_backward(ScalarType dtype, const Matrix<const void>& grad_output,
                                const Matrix<const void>& input, const Matrix<const void>& mean,
                                const Matrix<const void>& rstd, const Matrix<const void>& weight,
                                const Matrix<void>& d_input, void* stream) {
  const int64_t rows = input.sizes[0], columns = input.sizes[1];
  const int threads = threads_for_row(columns);
  for_dtype(dtype, [&]<typename scalar_t>() {
    using real = compute_t<scalar_t>;
    for_index_type(largest_index(rows * columns, grad_output, input, weight, d_input), [&]<typename index_t>() {
      launch_with_barriers("layer_norm_backward_kernel", layer_norm_backward_kernel<scalar_t, index_t>, rows,
                           kBlockSize / threads, stream, rows, columns, threads,
                           accessor<const scalar_t, index_t>(grad_output), accessor<const scalar_t, index_t>(input),
                           accessor<const real, index_t>(mean), accessor<const real, index_t>(rstd),
                           accessor<const scalar_t, index_t>(weight), accessor<scalar_t, index_t>(d_input));
    });
  });
}

void launch_layer_norm_columns(ScalarType dtype, const Matrix<const void>& grad_output, const Matrix<const void>& input,
                               const Matrix<const void>& mean, const Matrix<const void>& rstd,
                               const Matrix<void>& d_weight, const Matrix<void>& d_bias, void* stream) {
  const int64_t rows = input.sizes[0], columns = input.sizes[1];
  const int64_t parts = d_weight.sizes[0];
  for_dtype(dtype, [&]<typename scalar_t>() {
    using real = compute_t<scalar_t>;
    for_index_type(largest_index(rows * columns, grad_output, input), [&]<typename index_t>() {
      launch("layer_norm_columns_kernel", layer_norm_columns_kernel<scalar_t, index_t>, parts * columns, stream, rows,
             columns, parts, accessor<const scalar_t, index_t>(grad_output), accessor<const scalar_t, index_t>(input),
             accessor<const real, index_t>(mean), accessor<const real, index_t>(rstd),
             accessor<real, index_t>(d_weight), accessor<real, index_t>(d_bias));
    });
  });
}

}  // namespace OPERATOR_NAMESPACE
