// Backward of the LayerNorm in split_rows.cu.
//
// The blocks of the first kernel have the same columns of some rows, a group. They add up those columns, for d_weight
// and d_bias, and find for each of the rows the two sums that d_input needs, over their slice. The second kernel puts
// the sums of a row together and computes d_input. Where there is one group, its sums of columns are the gradients;
// otherwise blocks of the second kernel add up those of all groups.
#include "layer_norm_math.h"
#include "row_vectors.h"
#include "rows.h"
#include "slices.h"
#include "slots.h"
#include "widened_vectors.h"

namespace OPERATOR_NAMESPACE {

/// Rows that a thread loads before it uses them, and rows of a group at most, whose sums are in shared memory.
constexpr int kRowsAhead = 4, kRowsOfGroup = 32;
/// Blocks of the first kernel that each multiprocessor should have, if there are enough rows.
constexpr int64_t kBlocksOfSums = 2;
constexpr int kWarpsOfBlock = static_cast<int>(kBlockSize) / kLanes;

/// Which rows the blocks of the first kernel have: `count` groups of `rows`, the last of which may have fewer.
struct Groups {
  int64_t count, rows;
};

/// `slices` blocks have the same rows.
static Groups groups_of(int64_t rows, int64_t slices) {
  const int64_t most = (rows + kRowsAhead - 1) / kRowsAhead;
  const int64_t wanted = std::clamp<int64_t>(kBlocksOfSums * multiprocessors() / slices, 1, most);
  const int64_t of_group = std::min<int64_t>((rows + wanted - 1) / wanted, kRowsOfGroup);
  return {(rows + of_group - 1) / of_group, of_group};
}

/// The rows of a thread's columns in a group, kRowsAhead at a time.
template <typename scalar_t, int width>
struct RowsAhead {
  using real = compute_t<scalar_t>;

  Vector<scalar_t, width> grad_output[kRowsAhead], input[kRowsAhead];
  real mean[kRowsAhead], rstd[kRowsAhead];

  /// Those beyond the last row are not there.
  __device__ RowsAhead(int64_t first, int64_t last, int64_t columns, int64_t column,
                       const scalar_t* __restrict__ of_grad_output, const scalar_t* __restrict__ of_input,
                       const real* __restrict__ of_mean, const real* __restrict__ of_rstd) {
#pragma unroll
    for (int k = 0; k < kRowsAhead; ++k) {
      const int64_t row = first + k;
      if (k > 0 && row > last) break;
      grad_output[k] = load<width>(of_grad_output + row * columns + column);
      input[k] = load<width>(of_input + row * columns + column);
      mean[k] = of_mean[row];
      rstd[k] = of_rstd[row];
    }
  }
};

/// Sums of h and of h xhat over each slice to `row_sums`, (rows, slices, 2). Sums over the rows of each group, of
/// grad_output * xhat and of grad_output, to `column_sums`, (2, groups, columns); of the only group, to d_weight and
/// d_bias. Any of them may be null.
template <typename scalar_t, int width>
__global__ void __launch_bounds__(kBlockSize, 2)
    slice_sums_kernel(Slices slices, int64_t rows, int64_t rows_of_group, const scalar_t* __restrict__ grad_output,
                      const scalar_t* __restrict__ input, const compute_t<scalar_t>* __restrict__ mean,
                      const compute_t<scalar_t>* __restrict__ rstd, const scalar_t* __restrict__ weight,
                      compute_t<scalar_t>* __restrict__ row_sums, compute_t<scalar_t>* __restrict__ column_sums,
                      scalar_t* __restrict__ d_weight, scalar_t* __restrict__ d_bias) {
  using real = compute_t<scalar_t>;
  __shared__ real of_warp[kRowsOfGroup][2][kWarpsOfBlock];
  let_next_begin();
  const int thread = static_cast<int>(threadIdx.x), warp = thread / kLanes, lane = thread % kLanes;
  const int slice = static_cast<int>(blockIdx.x);
  const int64_t group = blockIdx.y, columns = slices.columns;
  const int64_t first = group * rows_of_group, last = (first + rows_of_group < rows ? first + rows_of_group : rows) - 1;
  const int64_t start = slices.begin(slice), end = slices.end(slice);
  for (int64_t begin = start; begin < end; begin += slices.chunk) {
    const PlaceInChunk<width> place(slices, begin, 0);
    const auto w = load_or<width>(weight, place.column, real(1));
    Vector<real, width> of_weight = {}, of_bias = {};
    for (int64_t row = first; row <= last; row += kRowsAhead) {
      const RowsAhead<scalar_t, width> ahead(row, last, columns, place.column, grad_output, input, mean, rstd);
#pragma unroll
      for (int k = 0; k < kRowsAhead; ++k) {
        if (row + k > last) break;
        const auto g = widened<real>(ahead.grad_output[k]), x = widened<real>(ahead.input[k]);
        real sum_h = 0, sum_h_xhat = 0;
        for (int l = 0; l < width; ++l) {
          const real xhat = (x.lane[l] - ahead.mean[k]) * ahead.rstd[k], h = g.lane[l] * w.lane[l];
          sum_h += h;
          sum_h_xhat += h * xhat;
          of_weight.lane[l] += g.lane[l] * xhat;
          of_bias.lane[l] += g.lane[l];
        }
        if (!place.is_there) sum_h = sum_h_xhat = 0;
        sum_h = sum_over_lanes(sum_h, kLanes);
        sum_h_xhat = sum_over_lanes(sum_h_xhat, kLanes);
        if (lane != 0) continue;
        real* const to = &of_warp[row + k - first][0][warp];
        to[0] = begin == start ? sum_h : to[0] + sum_h;
        to[kWarpsOfBlock] = begin == start ? sum_h_xhat : to[kWarpsOfBlock] + sum_h_xhat;
      }
    }
    if (!place.is_there) continue;
    if (column_sums != nullptr) {
      store(column_sums + group * columns + place.column, of_weight);
      store(column_sums + (gridDim.y + group) * columns + place.column, of_bias);
    }
    Vector<scalar_t, width> narrow;
    if (d_weight != nullptr) {
      for (int l = 0; l < width; ++l) narrow.lane[l] = of_weight.lane[l];
      store(d_weight + place.column, narrow);
    }
    if (d_bias != nullptr) {
      for (int l = 0; l < width; ++l) narrow.lane[l] = of_bias.lane[l];
      store(d_bias + place.column, narrow);
    }
  }
  __syncthreads();
  const int64_t row = first + thread / 2;
  if (row_sums == nullptr || row > last) return;
  row_sums[2 * slices.index(row, slice) + thread % 2] =
      sum_over_slots<kWarpsOfBlock>([&](int other) { return of_warp[thread / 2][thread % 2][other]; });
}

/// d_weight and d_bias from the sums of the groups: each thread has a vector of one of them.
template <typename scalar_t, int width>
__device__ void add_up_groups(int64_t item, int64_t groups, int64_t columns, const compute_t<scalar_t>* column_sums,
                              scalar_t* __restrict__ d_weight, scalar_t* __restrict__ d_bias) {
  using real = compute_t<scalar_t>;
  const int64_t vectors = columns / width, gradient = item / vectors, column = (item - gradient * vectors) * width;
  scalar_t* const to = gradient == 0 ? d_weight : d_bias;
  if (gradient > 1 || to == nullptr) return;
  const real* const from = column_sums + gradient * groups * columns + column;
  Vector<real, width> sum = load<width>(from);
#pragma unroll 4
  for (int64_t group = 1; group < groups; ++group) {
    const auto more = load<width>(from + group * columns);
    for (int lane = 0; lane < width; ++lane) sum.lane[lane] += more.lane[lane];
  }
  Vector<scalar_t, width> narrow;
  for (int lane = 0; lane < width; ++lane) narrow.lane[lane] = sum.lane[lane];
  store(to + column, narrow);
}

/// d_input, by blocks of the first `rows` lines of the grid, from the sums over `slices_of_sums` slices of each row;
/// the other blocks add up the groups.
template <typename scalar_t, int width, int held>
__global__ void __launch_bounds__(kBlockSize, 2)
    slice_backward_kernel(Slices slices, int64_t rows, int slices_of_sums, int64_t groups,
                          const scalar_t* __restrict__ grad_output, const scalar_t* __restrict__ input,
                          const compute_t<scalar_t>* __restrict__ mean, const compute_t<scalar_t>* __restrict__ rstd,
                          const scalar_t* __restrict__ weight, const compute_t<scalar_t>* row_sums,
                          const compute_t<scalar_t>* column_sums, scalar_t* __restrict__ d_input,
                          scalar_t* __restrict__ d_weight, scalar_t* __restrict__ d_bias) {
  using real = compute_t<scalar_t>;
  const int slice = static_cast<int>(blockIdx.x);
  const int64_t row = blockIdx.y, columns = slices.columns;
  if (row >= rows) {
    wait_for_previous();
    const int64_t block = (row - rows) * gridDim.x + slice;
    add_up_groups<scalar_t, width>(block * kBlockSize + threadIdx.x, groups, columns, column_sums, d_weight, d_bias);
    return;
  }
  const int64_t first = slices.begin(slice), end = slices.end(slice), at = row * columns;
  const real m = mean[row], r = rstd[row];
  real mean_h = 0, mean_h_xhat = 0;
  for (int64_t begin = first; begin < end; begin += slices.chunk) {
    Vector<scalar_t, width> g[held], x[held], w[held];
#pragma unroll
    for (int k = 0; k < held; ++k) {
      const int64_t column = PlaceInChunk<width>(slices, begin, k).column;
      g[k] = load<width>(grad_output + at + column);
      x[k] = load<width>(input + at + column);
      w[k] = vector_or<width>(weight, column, 1);
    }
    if (begin == first) {
      wait_for_previous();
      const real* const of_row = row_sums + 2 * row * slices_of_sums;
      const auto mean_of = [&](int which) {
        return sum_over_slices<real>(slices_of_sums, [&](int other) { return of_row[2 * other + which]; }) /
               static_cast<real>(columns);
      };
      mean_h = mean_of(0);
      mean_h_xhat = mean_of(1);
    }
#pragma unroll
    for (int k = 0; k < held; ++k) {
      const PlaceInChunk<width> place(slices, begin, k);
      if (!place.is_there) continue;
      const auto of_g = widened<real>(g[k]), of_x = widened<real>(x[k]), of_w = widened<real>(w[k]);
      Vector<scalar_t, width> d_x;
      for (int lane = 0; lane < width; ++lane) {
        const real xhat = (of_x.lane[lane] - m) * r;
        d_x.lane[lane] = input_gradient(of_g.lane[lane] * of_w.lane[lane], xhat, r, mean_h, mean_h_xhat);
      }
      store(d_input + at + place.column, d_x);
    }
  }
}

/// What the first kernel has for vectors of `width` elements, and the numbers that it leaves: the sums of columns, if
/// there are several groups, then those of rows.
struct SumsOfSlices {
  Slices slices;
  Groups groups;
  int64_t column_numbers, row_numbers;

  SumsOfSlices(int64_t rows, int64_t columns, int width)
      : slices(slices_of(1, columns, width)),
        groups(groups_of(rows, slices.count)),
        column_numbers(groups.count > 1 ? 2 * groups.count * columns : 0),
        row_numbers(2 * rows * slices.count) {}
};

int64_t split_backward_numbers(ScalarType dtype, int64_t rows, int64_t columns,
                               std::initializer_list<const void*> pointers) {
  int64_t numbers = 0;
  for_slices(dtype, rows, columns, pointers, [&]<typename scalar_t, int width, int held>(const Slices&) {
    const SumsOfSlices sums(rows, columns, width);
    numbers = sums.column_numbers + sums.row_numbers;
  });
  return numbers;
}

void launch_split_backward(ScalarType dtype, int64_t rows, int64_t columns, const void* grad_output, const void* input,
                           const void* mean, const void* rstd, const void* weight, void* d_input, void* d_weight,
                           void* d_bias, void* numbers, void* stream) {
  for_slices(
      dtype, rows, columns, {grad_output, input, weight, d_input, d_weight, d_bias},
      [&]<typename scalar_t, int width, int held>(const Slices& slices) {
        using real = compute_t<scalar_t>;
        const SumsOfSlices sums(rows, columns, width);
        const bool has_groups = sums.groups.count > 1, wants_columns = d_weight != nullptr || d_bias != nullptr;
        real* const column_sums = has_groups && wants_columns ? static_cast<real*>(numbers) : nullptr;
        real* const row_sums = d_input != nullptr ? static_cast<real*>(numbers) + sums.column_numbers : nullptr;
        const auto *const g = static_cast<const scalar_t*>(grad_output), *const x = static_cast<const scalar_t*>(input),
                          *const w = static_cast<const scalar_t*>(weight);
        const auto *const m = static_cast<const real*>(mean), *const r = static_cast<const real*>(rstd);
        auto *const to_weight = static_cast<scalar_t*>(d_weight), *const to_bias = static_cast<scalar_t*>(d_bias);
        launch_blocks("slice_sums_kernel", slice_sums_kernel<scalar_t, width>,
                      {static_cast<unsigned>(sums.slices.count), static_cast<unsigned>(sums.groups.count)},
                      {kBlockSize}, stream, sums.slices, rows, sums.groups.rows, g, x, m, r, w, row_sums, column_sums,
                      has_groups ? nullptr : to_weight, has_groups ? nullptr : to_bias);
        const int64_t totals = column_sums != nullptr ? (2 * columns / width + kBlockSize - 1) / kBlockSize : 0;
        const int64_t lines = (d_input != nullptr ? rows : 0) + (totals + slices.count - 1) / slices.count;
        if (lines == 0) return;
        launch_blocks_early("slice_backward_kernel", slice_backward_kernel<scalar_t, width, held>,
                            {static_cast<unsigned>(slices.count), static_cast<unsigned>(lines)}, {kBlockSize}, stream,
                            slices, d_input != nullptr ? rows : 0, sums.slices.count, sums.groups.count, g, x, m, r, w,
                            row_sums, column_sums, static_cast<scalar_t*>(d_input), to_weight, to_bias);
      });
}

}  // namespace OPERATOR_NAMESPACE
