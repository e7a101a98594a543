// LayerNorm of rows that do not fit the registers of a block: a block has one row at a time, and reads it twice. The
// second reading finds it in a cache. Backward adds up the columns in a kernel of its own, in parts of the rows.
//
// Short rows that allow no loads of 16 bytes go to the kernels that every CUDA backend has.
#include "layer_norm_kernels.h"
#include "multiprocessors.h"
#include "row_sums.h"
#include "rows.h"

namespace OPERATOR_NAMESPACE {

/// Threads of a block, and vectors of a row above which it is the large one; measured on an H200.
constexpr int kBlock = 512, kLargeBlock = 1024, kLong = 4096;
/// Threads that a multiprocessor has at a time, so that each of them has 64 registers.
constexpr int kResident = 1024;
/// Rows of fewer vectors are short: a block would have too little to do.
constexpr int kShort = 1024;
/// Vectors that a thread loads before it uses them.
constexpr int kLoads = 4;

template <typename scalar_t, typename index_t, int width, int block>
__global__ void __launch_bounds__(block, kResident / block)
    long_rows_forward_kernel(index_t rows, index_t columns, const scalar_t* __restrict__ input,
                             const scalar_t* __restrict__ weight, const scalar_t* __restrict__ bias,
                             compute_t<scalar_t> eps, scalar_t* __restrict__ output,
                             compute_t<scalar_t>* __restrict__ mean, compute_t<scalar_t>* __restrict__ rstd) {
  using real = compute_t<scalar_t>;
  constexpr index_t step = block * width;
  const index_t first = static_cast<index_t>(threadIdx.x) * width;
  int round = 0;
  for (index_t row = blockIdx.x; row < rows; row += gridDim.x, round ^= 1) {
    const scalar_t* const x = input + row * columns;
    Moments<real> own;
    for (index_t begin = first; begin < columns; begin += kLoads * step) {
      Vector<scalar_t, width> loaded[kLoads];
#pragma unroll
      for (int k = 0; k < kLoads; ++k) {
        if (begin + k * step < columns) loaded[k] = load<width>(x + begin + k * step);
      }
#pragma unroll
      for (int k = 0; k < kLoads; ++k) {
        if (begin + k * step >= columns) continue;
        const auto wide = widened<real>(loaded[k]);
        Moments<real> of_vector{0, 0, width};
        for (int lane = 0; lane < width; ++lane) of_vector.mean += wide.lane[lane];
        of_vector.mean /= width;
        for (int lane = 0; lane < width; ++lane) {
          const real centred = wide.lane[lane] - of_vector.mean;
          of_vector.squares += centred * centred;
        }
        own.add(of_vector);
      }
    }
    const auto all = moments_of_block<block>(own, round);
    const real m = all.mean, r = reciprocal_root(all.squares / static_cast<real>(columns), eps);
#pragma unroll kLoads
    for (index_t column = first; column < columns; column += step) {
      const auto wide = widened<real>(load<width>(x + column));
      const auto w = load_or<width>(weight, column, real(1)), b = load_or<width>(bias, column, real(0));
      Vector<scalar_t, width> y;
      for (int lane = 0; lane < width; ++lane) {
        y.lane[lane] = normalise(wide.lane[lane], m, r, w.lane[lane], b.lane[lane]);
      }
      store(output + row * columns + column, y);
    }
    if (threadIdx.x == 0) {
      mean[row] = m;
      rstd[row] = r;
    }
  }
}

template <typename scalar_t, typename index_t, int width, int block>
__global__ void __launch_bounds__(block, kResident / block)
    long_rows_backward_kernel(index_t rows, index_t columns, const scalar_t* __restrict__ grad_output,
                              const scalar_t* __restrict__ input, const compute_t<scalar_t>* __restrict__ mean,
                              const compute_t<scalar_t>* __restrict__ rstd, const scalar_t* __restrict__ weight,
                              scalar_t* __restrict__ d_input) {
  using real = compute_t<scalar_t>;
  constexpr index_t step = block * width;
  const index_t first = static_cast<index_t>(threadIdx.x) * width;
  int round = 0;
  for (index_t row = blockIdx.x; row < rows; row += gridDim.x, round ^= 1) {
    const scalar_t *const g = grad_output + row * columns, *const x = input + row * columns;
    const real m = mean[row], r = rstd[row];
    real mean_h = 0, mean_h_xhat = 0;
#pragma unroll kLoads
    for (index_t column = first; column < columns; column += step) {
      const auto grad = widened<real>(load<width>(g + column)), wide = widened<real>(load<width>(x + column));
      const auto w = load_or<width>(weight, column, real(1));
      for (int lane = 0; lane < width; ++lane) {
        const real h = grad.lane[lane] * w.lane[lane];
        mean_h += h;
        mean_h_xhat += h * ((wide.lane[lane] - m) * r);
      }
    }
    row_sums<block>(mean_h, mean_h_xhat, block, round);
    mean_h /= static_cast<real>(columns);
    mean_h_xhat /= static_cast<real>(columns);
#pragma unroll kLoads
    for (index_t column = first; column < columns; column += step) {
      const auto grad = widened<real>(load<width>(g + column)), wide = widened<real>(load<width>(x + column));
      const auto w = load_or<width>(weight, column, real(1));
      Vector<scalar_t, width> d_x;
      for (int lane = 0; lane < width; ++lane) {
        const real xhat = (wide.lane[lane] - m) * r;
        d_x.lane[lane] = input_gradient(grad.lane[lane] * w.lane[lane], xhat, r, mean_h, mean_h_xhat);
      }
      store(d_input + row * columns + column, d_x);
    }
  }
}

/// A thread has a vector of columns in every `parts`-th row.
template <typename scalar_t, typename index_t, int width>
__global__ void columns_kernel(index_t rows, index_t columns, index_t parts, const scalar_t* __restrict__ grad_output,
                               const scalar_t* __restrict__ input, const compute_t<scalar_t>* __restrict__ mean,
                               const compute_t<scalar_t>* __restrict__ rstd, compute_t<scalar_t>* __restrict__ sums) {
  using real = compute_t<scalar_t>;
  const index_t vectors = columns / width, items = parts * vectors;
  for (index_t item = first_item<index_t>(); item < items; item += item_stride<index_t>()) {
    const index_t part = item / vectors, column = item % vectors * width;
    Vector<real, width> of_weight = {}, of_bias = {};
#pragma unroll kLoads
    for (index_t row = part; row < rows; row += parts) {
      const auto grad = widened<real>(load<width>(grad_output + row * columns + column));
      const auto wide = widened<real>(load<width>(input + row * columns + column));
      const real m = mean[row], r = rstd[row];
      for (int lane = 0; lane < width; ++lane) {
        of_weight.lane[lane] += grad.lane[lane] * ((wide.lane[lane] - m) * r);
        of_bias.lane[lane] += grad.lane[lane];
      }
    }
    store(sums + part * columns + column, of_weight);
    store(sums + (parts + part) * columns + column, of_bias);
  }
}

/// Calls `body.operator()<scalar_t, index_t, width, block>()` for rows that a block works on; returns false, and calls
/// nothing, for short ones.
template <typename Body>
bool for_long_rows(ScalarType dtype, int64_t rows, int64_t columns, std::initializer_list<const void*> pointers,
                   Body body) {
  bool is_long = true;
  for_dtype(dtype, [&]<typename scalar_t>() {
    for_vector_width<scalar_t>(columns, pointers, [&]<int width>() {
      is_long = columns / width >= kShort;
      if (!is_long) return;
      for_index_type(rows * columns, [&]<typename index_t>() {
        if (columns / width > kLong) {
          body.template operator()<scalar_t, index_t, width, kLargeBlock>();
        } else {
          body.template operator()<scalar_t, index_t, width, kBlock>();
        }
      });
    });
  });
  return is_long;
}

void launch_long_rows_forward(ScalarType dtype, int64_t rows, int64_t columns, const void* input, const void* weight,
                              const void* bias, double eps, void* output, void* mean, void* rstd, void* stream) {
  const std::initializer_list<const void*> pointers = {input, weight, bias, output};
  const bool is_long =
      for_long_rows(dtype, rows, columns, pointers, [&]<typename scalar_t, typename index_t, int width, int block>() {
        using real = compute_t<scalar_t>;
        launch_blocks("long_rows_forward_kernel", long_rows_forward_kernel<scalar_t, index_t, width, block>,
                      grid_for(rows, 1), {block}, stream, static_cast<index_t>(rows), static_cast<index_t>(columns),
                      static_cast<const scalar_t*>(input), static_cast<const scalar_t*>(weight),
                      static_cast<const scalar_t*>(bias), static_cast<real>(eps), static_cast<scalar_t*>(output),
                      static_cast<real*>(mean), static_cast<real*>(rstd));
      });
  if (is_long) return;
  for_row_instance(dtype, rows, columns, pointers, [&]<typename scalar_t, typename index_t, int width>(int threads) {
    using real = compute_t<scalar_t>;
    launch_with_barriers("layer_norm_forward_kernel", layer_norm_forward_kernel<scalar_t, index_t, width>, rows,
                         kBlockSize / threads, stream, static_cast<index_t>(rows), static_cast<index_t>(columns),
                         threads, static_cast<const scalar_t*>(input), static_cast<const scalar_t*>(weight),
                         static_cast<const scalar_t*>(bias), static_cast<real>(eps), static_cast<scalar_t*>(output),
                         static_cast<real*>(mean), static_cast<real*>(rstd));
  });
}

void launch_long_rows_backward(ScalarType dtype, int64_t rows, int64_t columns, const void* grad_output,
                               const void* input, const void* mean, const void* rstd, const void* weight, void* d_input,
                               void* stream) {
  const std::initializer_list<const void*> pointers = {grad_output, input, weight, d_input};
  const bool is_long =
      for_long_rows(dtype, rows, columns, pointers, [&]<typename scalar_t, typename index_t, int width, int block>() {
        using real = compute_t<scalar_t>;
        launch_blocks("long_rows_backward_kernel", long_rows_backward_kernel<scalar_t, index_t, width, block>,
                      grid_for(rows, 1), {block}, stream, static_cast<index_t>(rows), static_cast<index_t>(columns),
                      static_cast<const scalar_t*>(grad_output), static_cast<const scalar_t*>(input),
                      static_cast<const real*>(mean), static_cast<const real*>(rstd),
                      static_cast<const scalar_t*>(weight), static_cast<scalar_t*>(d_input));
      });
  if (is_long) return;
  for_row_instance(dtype, rows, columns, pointers, [&]<typename scalar_t, typename index_t, int width>(int threads) {
    using real = compute_t<scalar_t>;
    launch_with_barriers("layer_norm_backward_kernel", layer_norm_backward_kernel<scalar_t, index_t, width>, rows,
                         kBlockSize / threads, stream, static_cast<index_t>(rows), static_cast<index_t>(columns),
                         threads, static_cast<const scalar_t*>(grad_output), static_cast<const scalar_t*>(input),
                         static_cast<const real*>(mean), static_cast<const real*>(rstd),
                         static_cast<const scalar_t*>(weight), static_cast<scalar_t*>(d_input));
  });
}

int64_t column_parts(ScalarType dtype, int64_t rows, int64_t columns) {
  int64_t parts = 0;
  for_dtype(dtype, [&]<typename scalar_t>() {
    constexpr int64_t width = kVectorBytes / sizeof(scalar_t);
    parts = std::clamp<int64_t>(kResident * multiprocessors() * width / columns, 1, rows);
  });
  return parts;
}

void launch_columns(ScalarType dtype, int64_t rows, int64_t columns, int64_t parts, const void* grad_output,
                    const void* input, const void* mean, const void* rstd, void* sums, void* stream) {
  for_dtype(dtype, [&]<typename scalar_t>() {
    using real = compute_t<scalar_t>;
    for_vector_width<scalar_t>(columns, {grad_output, input}, [&]<int width>() {
      for_index_type(std::max(rows, 2 * parts) * columns, [&]<typename index_t>() {
        launch("columns_kernel", columns_kernel<scalar_t, index_t, width>, parts * columns / width, stream,
               static_cast<index_t>(rows), static_cast<index_t>(columns), static_cast<index_t>(parts),
               static_cast<const scalar_t*>(grad_output), static_cast<const scalar_t*>(input),
               static_cast<const real*>(mean), static_cast<const real*>(rstd), static_cast<real*>(sums));
      });
    });
  });
}

}  // namespace OPERATOR_NAMESPACE
