// LayerNorm that reads each row once: it stays in the registers of the threads that work on it.
//
// `threads` neighbouring threads work on a row (layer_norm_math.h), each with `held` vectors of `width` elements, which
// lie `threads` vectors apart, so that loads and stores are coalesced. Backward is one pass for all gradients: a thread
// has the same columns in every row, and adds up what they contribute to d_weight and d_bias as it goes. The sums of a
// block are one part; the parts are added up by another kernel, in the same order each time.
#include "rows.h"

#include <bit>

#include "addressing.h"
#include "launch.h"
#include "layer_norm_math.h"
#include "row_vectors.h"

namespace OPERATOR_NAMESPACE {

/// Vectors of a row that a thread should hold: with fewer, more threads wait for each other's sums, and that is what a
/// row costs (an H200, 8192 columns of bfloat16: 68 us with 4, 76 with 2, 110 with 1).
constexpr int kHeld = 4;
/// Vectors of a row that a thread holds at most; backward it has a sum for each element and gradient besides.
constexpr int kMostForward = 8, kMostBackward = 4;
/// Two blocks for each multiprocessor of a large GPU: as many as there is room for, and as few parts as that.
constexpr int64_t kMaxRowParts = 264;
constexpr int kColumns = 32, kSlots = static_cast<int>(kBlockSize) / kColumns;

/// Blocks that share the registers of a multiprocessor: as many as leave a thread room for its elements, and for those
/// of weight and bias, which are half as long in half types.
template <typename scalar_t, int elements>
constexpr int blocks_forward() {
  constexpr int bytes = elements * sizeof(compute_t<scalar_t>);
  if (bytes > 128) return 2;
  return bytes > 64 && sizeof(scalar_t) > 2 ? 3 : 4;
}

/// `plain`: there are weight and bias, all threads have `held` vectors, and all blocks whole rows. Weight and bias are
/// not `__restrict__`, so that the compiler does not load them before the sums are there: the registers would not hold
/// them as well.
template <typename scalar_t, int width, int held, bool plain>
__global__ void __launch_bounds__(kBlockSize, blocks_forward<scalar_t, width * held>())
    rows_forward_kernel(int64_t rows, int columns, int log_threads, const scalar_t* __restrict__ input,
                        const scalar_t* weight, const scalar_t* bias, compute_t<scalar_t> eps,
                        scalar_t* __restrict__ output, compute_t<scalar_t>* __restrict__ mean,
                        compute_t<scalar_t>* __restrict__ rstd) {
  using real = compute_t<scalar_t>;
  const Place place = place_of_thread(log_threads, columns);
  const int64_t rows_at_once = kBlockSize >> log_threads;
  // All threads of a block go round equally often: row_sum needs every one of them.
  for (int64_t begin = blockIdx.x * rows_at_once; begin < rows; begin += gridDim.x * rows_at_once) {
    const bool is_there = plain || begin + place.first < rows;
    const int64_t row = is_there ? begin + place.first : rows - 1;
    Vector<scalar_t, width> loaded[held];
#pragma unroll
    for (int k = 0; k < held; ++k) loaded[k] = load<width>(input + row * columns + place.column<width, plain>(k));
    real x[held][width];  // widened once: to widen an element costs as much as to add it
    real sum = 0;
#pragma unroll
    for (int k = 0; k < held; ++k) {
      const auto wide = widened<real>(loaded[k]);
      for (int lane = 0; lane < width; ++lane) x[k][lane] = wide.lane[lane];
      if (!plain && !place.has<width>(k)) continue;
      for (int lane = 0; lane < width; ++lane) sum += x[k][lane];
    }
    const real m = row_sum(sum, place.threads) / static_cast<real>(columns);
    real squares = 0;
#pragma unroll
    for (int k = 0; k < held; ++k) {
      for (int lane = 0; lane < width; ++lane) x[k][lane] -= m;
      if (!plain && !place.has<width>(k)) continue;
      for (int lane = 0; lane < width; ++lane) squares += x[k][lane] * x[k][lane];
    }
    const real r = reciprocal_root(row_sum(squares, place.threads) / static_cast<real>(columns), eps);
#pragma unroll
    for (int k = 0; k < held; ++k) {
      const int column = place.column<width, plain>(k);
      const auto w = load_or<width, plain>(weight, column, real(1)), b = load_or<width, plain>(bias, column, real(0));
      Vector<scalar_t, width> y;
      for (int lane = 0; lane < width; ++lane) y.lane[lane] = x[k][lane] * r * w.lane[lane] + b.lane[lane];
      if (plain || (is_there && place.has<width>(k))) store(output + row * columns + column, y);
    }
    if (is_there && place.own == 0) {
      mean[row] = m;
      rstd[row] = r;
    }
  }
}

/// What a thread adds up over its rows: for each of its elements, grad_output * xhat and grad_output.
template <typename real, int width, int held>
struct Sums {
  real of_weight[held][width] = {}, of_bias[held][width] = {};
};

/// Writes the part of a block: the sums of its threads, added up where several rows are worked on at a time.
template <typename real, int width, int held>
__device__ void write_part(const Sums<real, width, held>& sums, const Place& place, real* __restrict__ to) {
  __shared__ real of_thread[2 * width][kBlockSize];
  real* const to_weight = to + static_cast<int64_t>(blockIdx.x) * place.columns;
  real* const to_bias = to_weight + static_cast<int64_t>(gridDim.x) * place.columns;
#pragma unroll
  for (int k = 0; k < held; ++k) {
    __syncthreads();  // what was there before has been read
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

template <typename scalar_t, int width, int held>
__global__ void __launch_bounds__(kBlockSize, 2)
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
    const real m = mean[row], r = rstd[row];
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
        sums.of_weight[k][lane] += grad * xhat;
        sums.of_bias[k][lane] += grad;
      }
    }
    if (d_input == nullptr) continue;
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
  if (to != nullptr) write_part<real, width, held>(sums, place, to);
}

/// A block has kColumns columns of one of the two gradients, and each of its slots every kSlots-th part.
template <typename scalar_t>
__global__ void totals_kernel(int64_t parts, int64_t columns, const compute_t<scalar_t>* __restrict__ sums,
                              scalar_t* __restrict__ d_weight, scalar_t* __restrict__ d_bias) {
  using real = compute_t<scalar_t>;
  __shared__ real of_slot[kSlots][kColumns];
  const int slot = static_cast<int>(threadIdx.x) / kColumns, own = static_cast<int>(threadIdx.x) % kColumns;
  const int64_t tiles = (columns + kColumns - 1) / kColumns;
  for (int64_t tile = blockIdx.x; tile < 2 * tiles; tile += gridDim.x) {
    scalar_t* const to = tile < tiles ? d_weight : d_bias;
    if (to == nullptr) continue;
    const real* const from = sums + tile / tiles * parts * columns;
    const int64_t column = tile % tiles * kColumns + own;
    real sum = 0;
    for (int64_t part = slot; part < parts && column < columns; part += kSlots) sum += from[part * columns + column];
    __syncthreads();  // what the tile before left has been read
    of_slot[slot][own] = sum;
    __syncthreads();
    if (slot > 0 || column >= columns) continue;
    for (int other = 1; other < kSlots; ++other) sum += of_slot[other][own];
    to[column] = sum;
  }
}

/// Vectors of a row that each of a block's threads holds; 0 where it would be more than `most`, or rows are not whole
/// vectors of 16 bytes.
static int held_vectors(ScalarType dtype, int64_t columns, std::initializer_list<const void*> pointers, int most) {
  int held = 0;
  for_dtype(dtype, [&]<typename scalar_t>() {
    for_vector_width<scalar_t>(columns, pointers, [&]<int width>() {
      const int64_t a_thread = (columns / width + kBlockSize - 1) / kBlockSize;
      if (width > 1 && a_thread <= most) held = static_cast<int>(a_thread);
    });
  });
  return held;
}

bool fits_forward(ScalarType dtype, int64_t columns, std::initializer_list<const void*> pointers) {
  return held_vectors(dtype, columns, pointers, kMostForward) > 0;
}

bool fits_backward(ScalarType dtype, int64_t columns, std::initializer_list<const void*> pointers) {
  return held_vectors(dtype, columns, pointers, kMostBackward) > 0;
}

/// How many threads work on a row of that many vectors: as many as hold kHeld of them each, but no part of a warp that
/// could be a whole one, and no more than a block has.
static int threads_that_hold(int64_t vectors) {
  int threads = 1;
  while (threads < vectors && threads < kBlockSize && (threads < kLanes || threads * kHeld < vectors)) threads *= 2;
  return threads;
}

/// The exponent of a power of two.
static int log_of(int power) { return std::countr_zero(static_cast<unsigned>(power)); }

/// Calls `body.operator()<scalar_t, width, held>(threads)` with the instance for rows of so many columns.
template <int most, typename Body>
void for_rows(ScalarType dtype, int64_t columns, Body body) {
  for_dtype(dtype, [&]<typename scalar_t>() {
    constexpr int width = kVectorBytes / sizeof(scalar_t);
    const int64_t vectors = columns / width;
    const int threads = threads_that_hold(vectors);
    if (vectors <= threads) {
      body.template operator()<scalar_t, width, 1>(threads);
    } else if (vectors <= most / 2 * threads) {
      body.template operator()<scalar_t, width, most / 2>(threads);
    } else {
      body.template operator()<scalar_t, width, most>(threads);
    }
  });
}

void launch_rows_forward(ScalarType dtype, int64_t rows, int64_t columns, const void* input, const void* weight,
                         const void* bias, double eps, void* output, void* mean, void* rstd, void* stream) {
  for_rows<kMostForward>(dtype, columns, [&]<typename scalar_t, int width, int held>(int threads) {
    using real = compute_t<scalar_t>;
    const bool is_plain =
        weight != nullptr && bias != nullptr && columns == held * threads * width && rows % (kBlockSize / threads) == 0;
    const auto kernel =
        is_plain ? rows_forward_kernel<scalar_t, width, held, true> : rows_forward_kernel<scalar_t, width, held, false>;
    launch_with_barriers("rows_forward_kernel", kernel, rows, kBlockSize / threads, stream, rows,
                         static_cast<int>(columns), log_of(threads), static_cast<const scalar_t*>(input),
                         static_cast<const scalar_t*>(weight), static_cast<const scalar_t*>(bias),
                         static_cast<real>(eps), static_cast<scalar_t*>(output), static_cast<real*>(mean),
                         static_cast<real*>(rstd));
  });
}

static int64_t parts_of(int64_t rows, int threads) {
  const int64_t rows_at_once = kBlockSize / threads;
  return std::min((rows + rows_at_once - 1) / rows_at_once, kMaxRowParts);
}

int64_t row_parts(ScalarType dtype, int64_t rows, int64_t columns) {
  int64_t parts = 0;
  for_dtype(dtype, [&]<typename scalar_t>() {
    parts = parts_of(rows, threads_that_hold(columns / (kVectorBytes / static_cast<int64_t>(sizeof(scalar_t)))));
  });
  return parts;
}

void launch_rows_backward(ScalarType dtype, int64_t rows, int64_t columns, const void* grad_output, const void* input,
                          const void* mean, const void* rstd, const void* weight, void* d_input, void* sums,
                          void* stream) {
  for_rows<kMostBackward>(dtype, columns, [&]<typename scalar_t, int width, int held>(int threads) {
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
    launch_with_barriers("totals_kernel", totals_kernel<scalar_t>, 2 * ((columns + kColumns - 1) / kColumns), 1, stream,
                         parts, columns, static_cast<const compute_t<scalar_t>*>(sums),
                         static_cast<scalar_t*>(d_weight), static_cast<scalar_t*>(d_bias));
  });
}

}  // namespace OPERATOR_NAMESPACE
