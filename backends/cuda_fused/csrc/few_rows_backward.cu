// Backward of the LayerNorm in rows.cu for few rows: all gradients by one kernel, since the rows stay in a cache after
// the first reading. Some blocks have rows, for d_input, and others have columns, for d_weight and d_bias.
#include "launch.h"
#include "layer_norm_math.h"
#include "multiprocessors.h"
#include "row_sums.h"
#include "row_vectors.h"
#include "rows.h"
#include "slots.h"

namespace OPERATOR_NAMESPACE {

/// Rows for each multiprocessor, up to which one kernel does everything: it saves launches, whose time does not depend
/// on the rows, and reads the rows once more, which takes longer the fewer multiprocessors there are.
constexpr int64_t kFewRows = 1;

/// d_input of a row.
template <int width, int held, typename scalar_t, typename real>
__device__ void gradient_of_row(const Place& place, int64_t row, bool is_there, const scalar_t* grad_output,
                                const scalar_t* input, real m, real r, const scalar_t* weight, scalar_t* d_input) {
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
    }
  }
  row_sums<kBlockSize>(sum_h, sum_h_xhat, place.threads, 0);
  const real mean_h = sum_h / static_cast<real>(columns), mean_h_xhat = sum_h_xhat / static_cast<real>(columns);
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

/// d_weight and d_bias of kTile columns: each slot of the block adds up every kSlots-th row.
template <typename scalar_t>
__device__ void gradient_of_columns(int block, int rows, int columns, const scalar_t* grad_output,
                                    const scalar_t* input, const compute_t<scalar_t>* mean,
                                    const compute_t<scalar_t>* rstd, scalar_t* d_weight, scalar_t* d_bias) {
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
                                         const scalar_t* grad_output, const scalar_t* input,
                                         const compute_t<scalar_t>* mean, const compute_t<scalar_t>* rstd,
                                         const scalar_t* weight, scalar_t* d_input, scalar_t* d_weight,
                                         scalar_t* d_bias) {
  using real = compute_t<scalar_t>;
  begin_after_previous();
  const int block = static_cast<int>(blockIdx.x);
  if (block >= row_blocks) {
    gradient_of_columns(block - row_blocks, rows, columns, grad_output, input, mean, rstd, d_weight, d_bias);
    return;
  }
  const Place place = place_of_thread(log_threads, columns);
  const int wanted = block * static_cast<int>(kBlockSize >> log_threads) + place.first;
  const int row = wanted < rows ? wanted : rows - 1;
  gradient_of_row<width, held>(place, row, wanted < rows, grad_output, input, mean[row], rstd[row], weight, d_input);
}

bool is_few(int64_t rows) { return rows <= for_all_multiprocessors(kFewRows); }

void launch_few_rows_backward(ScalarType dtype, int64_t rows, int64_t columns, const void* grad_output,
                              const void* input, const void* mean, const void* rstd, const void* weight, void* d_input,
                              void* d_weight, void* d_bias, void* stream) {
  for_rows<kMostOfFewRows, kBlockSize>(dtype, rows, columns, [&]<typename scalar_t, int width, int held>(int threads) {
    using real = compute_t<scalar_t>;
    const int64_t rows_at_once = kBlockSize / threads;
    const int64_t of_rows = d_input != nullptr ? (rows + rows_at_once - 1) / rows_at_once : 0;
    const int64_t of_columns = d_weight != nullptr || d_bias != nullptr ? (columns + kTile - 1) / kTile : 0;
    launch_blocks_early("few_rows_backward_kernel", few_rows_backward_kernel<scalar_t, width, held>,
                        {static_cast<unsigned>(of_rows + of_columns)}, {kBlockSize}, stream, static_cast<int>(rows),
                        static_cast<int>(columns), log_of(threads), static_cast<int>(of_rows),
                        static_cast<const scalar_t*>(grad_output), static_cast<const scalar_t*>(input),
                        static_cast<const real*>(mean), static_cast<const real*>(rstd),
                        static_cast<const scalar_t*>(weight), static_cast<scalar_t*>(d_input),
                        static_cast<scalar_t*>(d_weight), static_cast<scalar_t*>(d_bias));
  });
}

}  // namespace OPERATOR_NAMESPACE
