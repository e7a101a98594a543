// Backward of the LayerNorm in rows.cu: all gradients from one reading of grad_output and input.
//
// With many rows, a thread has the same columns in every row, and adds up their contributions to d_weight and d_bias
// while it works on the rows. The sums of a block are one part; another kernel adds up the parts, in the same order
// each time. Few rows stay in a cache after the first reading: then one kernel does everything, with some blocks for
// rows and others for columns.
#include "launch.h"
#include "layer_norm_math.h"
#include "multiprocessors.h"
#include "row_vectors.h"
#include "rows.h"
#include "slots.h"

namespace OPERATOR_NAMESPACE {

/// Rows up to which one kernel does everything.
constexpr int64_t kFewRows = 128;
/// Parts for each multiprocessor, at most: as many as it has room for blocks (`__launch_bounds__` of the kernel). More
/// parts would only be more to add up.
constexpr int kMaxRowParts = 2;

/// What a thread adds up over its rows: for each of its elements, grad_output * xhat and grad_output.
template <typename real, int width, int held>
struct Sums {
  real of_weight[held][width] = {}, of_bias[held][width] = {};
};

/// Writes the part of a block: the sums of its threads, added up over the rows that it works on at a time.
template <typename real, int width, int held>
__device__ void write_part(const Sums<real, width, held>& sums, const Place& place, real* __restrict__ to) {
  __shared__ real of_thread[2 * width][kBlockSize];
  real* const to_weight = to + static_cast<int64_t>(blockIdx.x) * place.columns;
  real* const to_bias = to_weight + static_cast<int64_t>(gridDim.x) * place.columns;
#pragma unroll
  for (int k = 0; k < held; ++k) {
    __syncthreads();  // all threads have read the previous vector
    for (int lane = 0; lane < width; ++lane) {
      of_thread[lane][threadIdx.x] = sums.of_weight[k][lane];
      of_thread[width + lane][threadIdx.x] = sums.of_bias[k][lane];
    }
    __syncthreads();
    if (place.first > 0 || !place.has<width>(k)) continue;
    const int column = place.column<width>(k);
    for (int lane = 0; lane < width; ++lane) {
      real of_weight = 0, of_bias = 0;
      for (int other = place.own; other < static_cast<int>(kBlockSize); other += place.threads) {
        of_weight += of_thread[lane][other];
        of_bias += of_thread[width + lane][other];
      }
      to_weight[column + lane] = of_weight;
      to_bias[column + lane] = of_bias;
    }
  }
}

/// d_input of a row, unless it is null. `add(k, lane, grad, xhat)` is called with each element that a thread has.
template <int width, int held, typename scalar_t, typename real, typename Add>
__device__ void gradient_of_row(const Place& place, int64_t row, bool is_there,
                                const scalar_t* __restrict__ grad_output, const scalar_t* __restrict__ input, real m,
                                real r, const scalar_t* weight, scalar_t* __restrict__ d_input, Add add) {
  const int columns = place.columns;
  Vector<scalar_t, width> g[held], x[held];
#pragma unroll
  for (int k = 0; k < held; ++k) {
    const int64_t at = row * columns + place.column<width>(k);
    g[k] = load<width>(grad_output + at);
    x[k] = load<width>(input + at);
  }
  real sum_h = 0, sum_h_xhat = 0;
#pragma unroll
  for (int k = 0; k < held; ++k) {
    if (!is_there || !place.has<width>(k)) continue;
    const auto w = load_or<width>(weight, place.column<width>(k), real(1));
    const auto wide_g = widened<real>(g[k]), wide_x = widened<real>(x[k]);
    for (int lane = 0; lane < width; ++lane) {
      const real grad = wide_g.lane[lane], xhat = (wide_x.lane[lane] - m) * r;
      sum_h += grad * w.lane[lane];
      sum_h_xhat += grad * w.lane[lane] * xhat;
      add(k, lane, grad, xhat);
    }
  }
  if (d_input == nullptr) return;
  const real mean_h = row_sum(sum_h, place.threads) / static_cast<real>(columns);
  const real mean_h_xhat = row_sum(sum_h_xhat, place.threads) / static_cast<real>(columns);
#pragma unroll
  for (int k = 0; k < held; ++k) {
    if (!is_there || !place.has<width>(k)) continue;
    const int column = place.column<width>(k);
    const auto w = load_or<width>(weight, column, real(1));
    const auto wide_g = widened<real>(g[k]), wide_x = widened<real>(x[k]);
    Vector<scalar_t, width> d_x;
    for (int lane = 0; lane < width; ++lane) {
      const real xhat = (wide_x.lane[lane] - m) * r;
      d_x.lane[lane] = input_gradient(wide_g.lane[lane] * w.lane[lane], xhat, r, mean_h, mean_h_xhat);
    }
    store(d_input + row * columns + column, d_x);
  }
}

template <typename scalar_t, int width, int held>
__global__ void __launch_bounds__(kBlockSize, kMaxRowParts)
    rows_backward_kernel(int64_t rows, int columns, int log_threads, const scalar_t* __restrict__ grad_output,
                         const scalar_t* __restrict__ input, const compute_t<scalar_t>* __restrict__ mean,
                         const compute_t<scalar_t>* __restrict__ rstd, const scalar_t* weight,
                         scalar_t* __restrict__ d_input, compute_t<scalar_t>* __restrict__ to) {
  using real = compute_t<scalar_t>;
  const Place place = place_of_thread(log_threads, columns);
  const int64_t rows_at_once = kBlockSize >> log_threads;
  Sums<real, width, held> sums;
  for (int64_t begin = blockIdx.x * rows_at_once; begin < rows; begin += gridDim.x * rows_at_once) {
    const bool is_there = begin + place.first < rows;
    const int64_t row = is_there ? begin + place.first : rows - 1;
    gradient_of_row<width, held>(place, row, is_there, grad_output, input, mean[row], rstd[row], weight, d_input,
                                 [&](int k, int lane, real grad, real xhat) {
                                   sums.of_weight[k][lane] += grad * xhat;
                                   sums.of_bias[k][lane] += grad;
                                 });
  }
  if (to != nullptr) write_part<real, width, held>(sums, place, to);
}

/// A block has kTile columns of one of the two gradients, and each of its slots every kSlots-th part.
template <typename scalar_t>
__global__ void totals_kernel(int64_t parts, int64_t columns, const compute_t<scalar_t>* __restrict__ sums,
                              scalar_t* __restrict__ d_weight, scalar_t* __restrict__ d_bias) {
  using real = compute_t<scalar_t>;
  const auto [slot, own] = slot_of_thread();
  const int64_t tiles = (columns + kTile - 1) / kTile;
  for (int64_t tile = blockIdx.x; tile < 2 * tiles; tile += gridDim.x) {
    scalar_t* const to = tile < tiles ? d_weight : d_bias;
    if (to == nullptr) continue;
    const real* const from = sums + tile / tiles * parts * columns;
    const int64_t column = tile % tiles * kTile + own;
    const real sum = sum_of_parts(parts, columns, column, from);
    if (slot == 0 && column < columns) to[column] = sum;
  }
}

/// d_weight and d_bias of kTile columns: each slot of the block adds up every kSlots-th row.
template <typename scalar_t>
__device__ void gradient_of_columns(int block, int rows, int columns, const scalar_t* __restrict__ grad_output,
                                    const scalar_t* __restrict__ input, const compute_t<scalar_t>* __restrict__ mean,
                                    const compute_t<scalar_t>* __restrict__ rstd, scalar_t* d_weight,
                                    scalar_t* d_bias) {
  using real = compute_t<scalar_t>;
  __shared__ real of_slot[2][kSlots][kTile];
  const auto [slot, own] = slot_of_thread();
  const int column = block * kTile + own;
  real of_weight = 0, of_bias = 0;
  for (int row = slot; row < rows && column < columns; row += kSlots) {
    const real grad = grad_output[row * columns + column];
    of_weight += grad * ((static_cast<real>(input[row * columns + column]) - mean[row]) * rstd[row]);
    of_bias += grad;
  }
  of_slot[0][slot][own] = of_weight;
  of_slot[1][slot][own] = of_bias;
  __syncthreads();
  scalar_t* const to = slot == 0 ? d_weight : d_bias;
  if (slot > 1 || column >= columns || to == nullptr) return;
  to[column] = sum_over_slots([&, gradient = slot, at = own](int other) { return of_slot[gradient][other][at]; });
}

/// All gradients of few rows, by two kinds of blocks: the first `row_blocks` have rows, the others columns.
template <typename scalar_t, int width, int held>
__global__ void few_rows_backward_kernel(int rows, int columns, int log_threads, int row_blocks,
                                         const scalar_t* __restrict__ grad_output, const scalar_t* __restrict__ input,
                                         const compute_t<scalar_t>* __restrict__ mean,
                                         const compute_t<scalar_t>* __restrict__ rstd, const scalar_t* weight,
                                         scalar_t* __restrict__ d_input, scalar_t* __restrict__ d_weight,
                                         scalar_t* __restrict__ d_bias) {
  using real = compute_t<scalar_t>;
  const int block = static_cast<int>(blockIdx.x);
  if (block >= row_blocks) {
    gradient_of_columns(block - row_blocks, rows, columns, grad_output, input, mean, rstd, d_weight, d_bias);
    return;
  }
  const Place place = place_of_thread(log_threads, columns);
  const int wanted = block * static_cast<int>(kBlockSize >> log_threads) + place.first;
  const int row = wanted < rows ? wanted : rows - 1;
  gradient_of_row<width, held>(place, row, wanted < rows, grad_output, input, mean[row], rstd[row], weight, d_input,
                               [](int, int, real, real) {});
}

bool is_few(int64_t rows) { return rows <= kFewRows; }

void launch_few_rows_backward(ScalarType dtype, int64_t rows, int64_t columns, const void* grad_output,
                              const void* input, const void* mean, const void* rstd, const void* weight, void* d_input,
                              void* d_weight, void* d_bias, void* stream) {
  for_rows<kMostBackward>(dtype, rows, columns, [&]<typename scalar_t, int width, int held>(int threads) {
    using real = compute_t<scalar_t>;
    const int64_t rows_at_once = kBlockSize / threads;
    const int64_t of_rows = d_input != nullptr ? (rows + rows_at_once - 1) / rows_at_once : 0;
    const int64_t of_columns = d_weight != nullptr || d_bias != nullptr ? (columns + kTile - 1) / kTile : 0;
    launch_blocks("few_rows_backward_kernel", few_rows_backward_kernel<scalar_t, width, held>,
                  {static_cast<unsigned>(of_rows + of_columns)}, {kBlockSize}, stream, static_cast<int>(rows),
                  static_cast<int>(columns), log_of(threads), static_cast<int>(of_rows),
                  static_cast<const scalar_t*>(grad_output), static_cast<const scalar_t*>(input),
                  static_cast<const real*>(mean), static_cast<const real*>(rstd), static_cast<const scalar_t*>(weight),
                  static_cast<scalar_t*>(d_input), static_cast<scalar_t*>(d_weight), static_cast<scalar_t*>(d_bias));
  });
}

static int64_t parts_of(int64_t rows, int threads) {
  const int64_t rows_at_once = kBlockSize / threads;
  return std::min((rows + rows_at_once - 1) / rows_at_once, kMaxRowParts * multiprocessors());
}

int64_t row_parts(ScalarType dtype, int64_t rows, int64_t columns) {
  int64_t parts = 0;
  for_dtype(dtype, [&]<typename scalar_t>() {
    parts = parts_of(rows, threads_that_hold(rows, columns / (kVectorBytes / static_cast<int64_t>(sizeof(scalar_t)))));
  });
  return parts;
}

void launch_rows_backward(ScalarType dtype, int64_t rows, int64_t columns, const void* grad_output, const void* input,
                          const void* mean, const void* rstd, const void* weight, void* d_input, void* sums,
                          void* stream) {
  for_rows<kMostBackward>(dtype, rows, columns, [&]<typename scalar_t, int width, int held>(int threads) {
    using real = compute_t<scalar_t>;
    launch_blocks("rows_backward_kernel", rows_backward_kernel<scalar_t, width, held>,
                  {static_cast<unsigned>(parts_of(rows, threads))}, {kBlockSize}, stream, rows,
                  static_cast<int>(columns), log_of(threads), static_cast<const scalar_t*>(grad_output),
                  static_cast<const scalar_t*>(input), static_cast<const real*>(mean), static_cast<const real*>(rstd),
                  static_cast<const scalar_t*>(weight), static_cast<scalar_t*>(d_input), static_cast<real*>(sums));
  });
}

void launch_totals(ScalarType dtype, int64_t parts, int64_t columns, const void* sums, void* d_weight, void* d_bias,
                   void* stream) {
  for_dtype(dtype, [&]<typename scalar_t>() {
    launch_with_barriers("totals_kernel", totals_kernel<scalar_t>, 2 * ((columns + kTile - 1) / kTile), 1, stream,
                         parts, columns, static_cast<const compute_t<scalar_t>*>(sums),
                         static_cast<scalar_t*>(d_weight), static_cast<scalar_t*>(d_bias));
  });
}

}  // namespace OPERATOR_NAMESPACE
