// LayerNorm forward of few, long rows, each of which several blocks share: a kernel for the mean and the squared
// deviations of each slice, and one that puts those of a row together and normalises.
//
// The second kernel begins early, and has its part of the rows in registers when the first one ends. What it needs
// then comes from a cache.
#include "layer_norm_math.h"
#include "row_vectors.h"
#include "rows.h"
#include "slices.h"
#include "widened_vectors.h"

namespace OPERATOR_NAMESPACE {

/// Writes mean and squared deviations of each slice, (rows, slices, 2).
template <typename scalar_t, int width, int held>
__global__ void __launch_bounds__(kBlockSize, 4)
    slice_moments_kernel(Slices slices, const scalar_t* __restrict__ input, compute_t<scalar_t>* __restrict__ moments) {
  using real = compute_t<scalar_t>;
  let_next_begin();
  const int slice = static_cast<int>(blockIdx.x);
  const int64_t row = blockIdx.y, end = slices.end(slice);
  const scalar_t* const x = input + row * slices.columns;
  Moments<real> all;
  for (int64_t begin = slices.begin(slice); begin < end; begin += slices.chunk) {
    Vector<scalar_t, width> loaded[held];
#pragma unroll
    for (int k = 0; k < held; ++k) loaded[k] = load<width>(x + PlaceInChunk<width>(slices, begin, k).column);
    real sum = 0;
#pragma unroll
    for (int k = 0; k < held; ++k) {
      if (!PlaceInChunk<width>(slices, begin, k).is_there) continue;
      const auto wide = widened<real>(loaded[k]);
      for (int lane = 0; lane < width; ++lane) sum += wide.lane[lane];
    }
    const real count = static_cast<real>(end - begin < slices.chunk ? end - begin : slices.chunk);
    const real m = row_sum_of_round<kBlockSize>(sum, kBlockSize, 0) / count;
    real squares = 0;
#pragma unroll
    for (int k = 0; k < held; ++k) {
      if (!PlaceInChunk<width>(slices, begin, k).is_there) continue;
      const auto wide = widened<real>(loaded[k]);
      for (int lane = 0; lane < width; ++lane) squares += (wide.lane[lane] - m) * (wide.lane[lane] - m);
    }
    all.add({m, row_sum_of_round<kBlockSize>(squares, kBlockSize, 1), count});
  }
  if (threadIdx.x == 0) store(moments + 2 * slices.index(row, slice), Vector<real, 2>{{all.mean, all.squares}});
}

/// The moments of a row from those of its slices. The mean is added up as differences from that of the first slice,
/// and the squares are those of the slices about it: nothing cancels. Each warp of the block finds the same.
template <typename real>
__device__ Moments<real> moments_of_row(const Slices& slices, const real* of_row) {
  const int last = slices.count - 1;
  const real whole = static_cast<real>(slices.whole), rest = static_cast<real>(slices.columns - slices.begin(last));
  const real first = of_row[0], count = static_cast<real>(slices.columns);
  const real apart = sum_over_slices<real>(
      slices.count, [&](int slice) { return (slice < last ? whole : rest) * (of_row[2 * slice] - first); });
  const real mean = first + apart / count;
  const real squares = sum_over_slices<real>(slices.count, [&](int slice) {
    const real of_mean = of_row[2 * slice] - mean;
    return of_row[2 * slice + 1] + of_mean * (slice < last ? whole : rest) * of_mean;
  });
  return {mean, squares, count};
}

template <typename scalar_t, int width, int held>
__global__ void __launch_bounds__(kBlockSize, sizeof(scalar_t) > 4 ? 2 : 3)
    slice_forward_kernel(Slices slices, const scalar_t* __restrict__ input, const scalar_t* __restrict__ weight,
                         const scalar_t* __restrict__ bias, compute_t<scalar_t> eps, const compute_t<scalar_t>* moments,
                         scalar_t* __restrict__ output, compute_t<scalar_t>* __restrict__ mean,
                         compute_t<scalar_t>* __restrict__ rstd) {
  using real = compute_t<scalar_t>;
  const int slice = static_cast<int>(blockIdx.x);
  const int64_t row = blockIdx.y, at = row * slices.columns, first = slices.begin(slice), end = slices.end(slice);
  real m = 0, r = 0;
  for (int64_t begin = first; begin < end; begin += slices.chunk) {
    Vector<scalar_t, width> x[held], w[held], b[held];
#pragma unroll
    for (int k = 0; k < held; ++k) {
      const int64_t column = PlaceInChunk<width>(slices, begin, k).column;
      x[k] = load<width>(input + at + column);
      w[k] = vector_or<width>(weight, column, 1);
      b[k] = vector_or<width>(bias, column, 0);
    }
    if (begin == first) {
      wait_for_previous();
      const Moments<real> all = moments_of_row(slices, moments + 2 * slices.index(row, 0));
      m = all.mean;
      r = reciprocal_root(all.squares / all.count, eps);
    }
#pragma unroll
    for (int k = 0; k < held; ++k) {
      const PlaceInChunk<width> place(slices, begin, k);
      if (!place.is_there) continue;
      const auto wide = widened<real>(x[k]), of_w = widened<real>(w[k]), of_b = widened<real>(b[k]);
      Vector<scalar_t, width> y;
      for (int lane = 0; lane < width; ++lane) {
        y.lane[lane] = normalise(wide.lane[lane], m, r, of_w.lane[lane], of_b.lane[lane]);
      }
      store(output + at + place.column, y);
    }
  }
  if (mean != nullptr && slice == 0 && threadIdx.x == 0) {
    mean[row] = m;
    rstd[row] = r;
  }
}

bool is_split(ScalarType dtype, int64_t rows, int64_t columns, std::initializer_list<const void*> pointers) {
  bool is_long = false;
  for_dtype(dtype, [&]<typename scalar_t>() {
    for_vector_width<scalar_t>(columns, pointers,
                               [&]<int width>() { is_long = columns / width > kMostForward * kBlockSize; });
  });
  return is_long && 2 * rows <= multiprocessors();
}

int64_t split_forward_numbers(ScalarType dtype, int64_t rows, int64_t columns,
                              std::initializer_list<const void*> pointers) {
  int64_t numbers = 0;
  for_slices(dtype, rows, columns, pointers,
             [&]<typename scalar_t, int width, int held>(const Slices& slices) { numbers = 2 * rows * slices.count; });
  return numbers;
}

void launch_split_forward(ScalarType dtype, int64_t rows, int64_t columns, const void* input, const void* weight,
                          const void* bias, double eps, void* output, void* mean, void* rstd, void* numbers,
                          void* stream) {
  for_slices(dtype, rows, columns, {input, weight, bias, output},
             [&]<typename scalar_t, int width, int held>(const Slices& slices) {
               using real = compute_t<scalar_t>;
               const dim3 grid{static_cast<unsigned>(slices.count), static_cast<unsigned>(rows)};
               const auto* const x = static_cast<const scalar_t*>(input);
               launch_blocks("slice_moments_kernel", slice_moments_kernel<scalar_t, width, held>, grid, {kBlockSize},
                             stream, slices, x, static_cast<real*>(numbers));
               launch_blocks_early("slice_forward_kernel", slice_forward_kernel<scalar_t, width, held>, grid,
                                   {kBlockSize}, stream, slices, x, static_cast<const scalar_t*>(weight),
                                   static_cast<const scalar_t*>(bias), static_cast<real>(eps),
                                   static_cast<const real*>(numbers), static_cast<scalar_t*>(output),
                                   static_cast<real*>(mean), static_cast<real*>(rstd));
             });
}

}  // namespace OPERATOR_NAMESPACE
