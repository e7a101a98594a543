// LayerNorm that reads each row once: it stays in the registers of the threads that work on it.
//
// `threads` neighbouring threads work on a row (layer_norm_math.h), each with `held` vectors of `width` elements, which
// lie `threads` vectors apart, so that loads and stores are coalesced.
#include "rows.h"

#include "launch.h"
#include "layer_norm_math.h"
#include "row_sums.h"
#include "row_vectors.h"

namespace OPERATOR_NAMESPACE {

/// Blocks that share the registers of a multiprocessor: as many as leave a thread enough registers for its elements,
/// and for those of weight and bias, which take half the space in half types.
template <typename scalar_t, int elements>
constexpr int blocks_forward() {
  constexpr int bytes = elements * sizeof(compute_t<scalar_t>);
  if (bytes > 128 || (bytes > 64 && sizeof(scalar_t) == 8)) return 2;
  return bytes > 64 && sizeof(scalar_t) > 2 ? 3 : 4;
}

/// Vectors of a thread up to which there is always room for as many of weight and bias.
constexpr int kAlwaysAhead = 2;

/// Blocks on a multiprocessor that leave a thread room for weight and bias beside its row.
template <typename scalar_t, int held, bool plain>
constexpr int blocks_ahead() {
  if (held == 1) return 4;
  if (held == 2) return sizeof(scalar_t) != 4 ? 3 : plain ? 5 : 4;
  return held != 4 ? 1 : sizeof(scalar_t) == 4 ? 3 : 2;
}

/// 1 / sqrt(variance + eps). The GPU has an instruction for it, which errs by two units in the last place at most: a
/// root and a division take 0.04 to 0.07 us longer, of 1.1 for the smallest matrices (an H200).
template <typename real>
__device__ real reciprocal_root_of_row(real variance, real eps) {
#ifdef __CUDA_ARCH__
  return rsqrt(variance + eps);
#else
  return reciprocal_root(variance, eps);
#endif
}

/// The widened elements of `vector` without the mean, and what they are multiplied with and added to.
template <typename real, typename scalar_t, int width>
__device__ Vector<scalar_t, width> scaled(const real (&centred)[width], real rstd,
                                          const Vector<scalar_t, width>& weight, const Vector<scalar_t, width>& bias) {
  const auto w = widened<real>(weight), b = widened<real>(bias);
  Vector<scalar_t, width> y;
  for (int lane = 0; lane < width; ++lane) y.lane[lane] = centred[lane] * rstd * w.lane[lane] + b.lane[lane];
  return y;
}

/// `keeping` is 0 where mean and rstd are null, else 1. The host says it: with a comparison of the pointers here, and a
/// row's mean needed until its results are stored, the kernel of 32 elements of bfloat16 a thread has not enough
/// registers.
///
/// `plain`: there are weight and bias, all threads have `held` vectors, and no block has a row beyond the end.
///
/// `ahead`: weight and bias are loaded together with the row, so that no row waits for memory twice. Otherwise there
/// are not enough registers for both, and one block lets them come to a cache meanwhile; weight and bias are not
/// `__restrict__`, so that the compiler does not load them before the sums are known.
template <typename scalar_t, int width, int held, bool plain, bool ahead, int blocks>
__global__ void __launch_bounds__(kBlockSize, blocks)
    rows_forward_kernel(int64_t rows, int columns, int log_threads, const scalar_t* input, const scalar_t* weight,
                        const scalar_t* bias, compute_t<scalar_t> eps, scalar_t* output, compute_t<scalar_t>* mean,
                        compute_t<scalar_t>* rstd, int keeping) {
  using real = compute_t<scalar_t>;
  using Vectors = Vector<scalar_t, width>;
  begin_after_previous();
  const Place place = place_of_thread(log_threads, columns);
  const int64_t rows_at_once = static_cast<int>(blockDim.x) >> log_threads;
  const auto weight_of = [&](int k) { return vector_or<width, plain>(weight, place.column<width, plain>(k), 1); };
  const auto bias_of = [&](int k) { return vector_or<width, plain>(bias, place.column<width, plain>(k), 0); };
  Vectors weights[ahead ? held : 1], biases[ahead ? held : 1];
  if constexpr (ahead) {
#pragma unroll
    for (int k = 0; k < held; ++k) {
      weights[k] = weight_of(k);
      biases[k] = bias_of(k);
    }
  } else if (blockIdx.x == 0 && place.first == 0) {
#pragma unroll
    for (int k = 0; k < held; ++k) {
      if (plain || weight != nullptr) begin_caching(weight + place.column<width, plain>(k));
      if (plain || bias != nullptr) begin_caching(bias + place.column<width, plain>(k));
    }
  }
  // All threads of a block make the same number of rounds: the sums of a row need every one of them.
  for (int64_t begin = blockIdx.x * rows_at_once; begin < rows; begin += gridDim.x * rows_at_once) {
    const bool is_there = plain || begin + place.first < rows;
    const int64_t row = is_there ? begin + place.first : rows - 1;
    Vectors loaded[held];
#pragma unroll
    for (int k = 0; k < held; ++k) loaded[k] = load<width>(input + row * columns + place.column<width, plain>(k));
    real x[held][width];  // widened once: to widen an element takes as long as to add it
    real sum = 0;
#pragma unroll
    for (int k = 0; k < held; ++k) {
      const auto wide = widened<real>(loaded[k]);
      for (int lane = 0; lane < width; ++lane) x[k][lane] = wide.lane[lane];
      if (!plain && !place.has<width>(k)) continue;
      for (int lane = 0; lane < width; ++lane) sum += x[k][lane];
    }
    const real m = row_sum_of_round<kBlockSize>(sum, place.threads, 0) / static_cast<real>(columns);
    real squares = 0;
#pragma unroll
    for (int k = 0; k < held; ++k) {
      for (int lane = 0; lane < width; ++lane) x[k][lane] -= m;
      if (!plain && !place.has<width>(k)) continue;
      for (int lane = 0; lane < width; ++lane) squares += x[k][lane] * x[k][lane];
    }
    squares = row_sum_of_round<kBlockSize>(squares, place.threads, 1);
    const real r = reciprocal_root_of_row(squares / static_cast<real>(columns), eps);
    if (is_there && place.own < keeping) {
      mean[row] = m;
      rstd[row] = r;
    }
#pragma unroll
    for (int k = 0; k < held; ++k) {
      const auto y = ahead ? scaled(x[k], r, weights[ahead ? k : 0], biases[ahead ? k : 0])
                           : scaled(x[k], r, weight_of(k), bias_of(k));
      if (plain || (is_there && place.has<width>(k))) {
        store(output + row * columns + place.column<width, plain>(k), y);
      }
    }
  }
}

/// Whether a row is a whole number of vectors of 16 bytes, and of no more than `most`.
static bool fits(ScalarType dtype, int64_t columns, std::initializer_list<const void*> pointers, int64_t most) {
  bool result = false;
  for_dtype(dtype, [&]<typename scalar_t>() {
    for_vector_width<scalar_t>(columns, pointers, [&]<int width>() { result = width > 1 && columns / width <= most; });
  });
  return result;
}

bool fits_forward(ScalarType dtype, int64_t columns, std::initializer_list<const void*> pointers) {
  return fits(dtype, columns, pointers, kMostForward * kBlockSize);
}

bool fits_backward(ScalarType dtype, int64_t columns, std::initializer_list<const void*> pointers) {
  return fits(dtype, columns, pointers, std::min(kMostBackward * kWideBlock, kMostOfFewRows * kBlockSize));
}

/// Bytes of a matrix for each multiprocessor up to which all of it is read at once with `kMostForward` vectors in each
/// thread of `kBlocksAtOnce` blocks: rows of a whole block with half as many would be read in a second round (an H200,
/// 1024 rows of 4096: 9.2 us instead of 9.8).
constexpr int kBlocksAtOnce = 4, kBytesAtOnce = kBlocksAtOnce * kBlockSize * kMostForward * kVectorBytes;

/// Threads up to which a row of floats has weight and bias loaded together with it, however many rows there are.
constexpr int kThreadsAhead = 128;
/// Threads whose vectors fill a line of the cache. With fewer threads a row, a load of a warp touches more lines than
/// it fills, and each takes as long as a full one; but two vectors a thread are quicker than one.
constexpr int kThreadsOfLine = 8;

/// Blocks whose threads have more registers, for rows of a half type in a warp at most where not all of them are there
/// at once (an H200, 8192 rows of 1024 in bfloat16: 10.2 us in blocks of 64 threads, instead of 10.8).
constexpr int kBlocksOfShortRows = 3;

template <typename scalar_t, int held>
bool are_short_and_many(int64_t rows, int threads) {
  const int64_t at_once = blocks_forward<scalar_t, held * kVectorBytes / sizeof(scalar_t)>() * kBlockSize;
  return sizeof(scalar_t) == 2 && held == kHeld && threads <= kLanes && rows * threads > at_once * multiprocessors();
}

/// Threads of a block: those of a row, and at least 128, or 64 where each has enough elements that such blocks are not
/// too many to begin. The fewer rows a block has, the fewer wait for each other (an H200, 8192 rows of 1024
/// floats: 17.8 us with one row a block, 19.1 with four). Fewer where there are not as many rows; a warp at least.
template <typename scalar_t, int held>
int block_of(int64_t rows, int threads) {
  const bool is_narrow = (sizeof(scalar_t) == 4 && held == kHeld) || are_short_and_many<scalar_t, held>(rows, threads);
  int block = std::max(threads, is_narrow ? 64 : 128);
  while (block > threads && block > kLanes && block / threads > rows) block /= 2;
  return block;
}

/// How many threads work on a row of that many vectors: enough for `held` each. More where there are too few rows to
/// fill a GPU, but then no more than a warp, whose sums need no barrier.
static int threads_forward(int64_t rows, int64_t vectors, int held) {
  const int64_t enough = for_all_multiprocessors(kManyThreads);
  const auto least = static_cast<int>(std::min<int64_t>(kThreadsOfLine, (vectors + 1) / 2));
  int threads = 1;
  while (threads < vectors && threads < kBlockSize) {
    const bool holds = threads >= least && threads * held >= vectors;
    if (holds && (threads >= kLanes || rows * threads >= enough)) break;
    threads *= 2;
  }
  return threads;
}

/// The kernel for a matrix with that many threads a row.
template <typename scalar_t, int width, int held, bool plain>
static auto forward_kernel(int64_t rows, int threads, bool at_once) {
  constexpr int few = blocks_ahead<scalar_t, held, plain>(), usual = blocks_forward<scalar_t, width * held>();
  auto kernel = rows_forward_kernel<scalar_t, width, held, plain, true, few>;
  const bool is_short = sizeof(scalar_t) == 4 && held <= kHeld && threads <= kThreadsAhead;
  // Of so few threads none waits for another: what each of them waits for is all there is.
  if (held <= kAlwaysAhead || is_short || rows * threads <= few * kBlockSize * multiprocessors()) {
    return kernel;
  }
  if constexpr (held > kAlwaysAhead) kernel = rows_forward_kernel<scalar_t, width, held, plain, false, usual>;
  if constexpr (sizeof(scalar_t) == 4 && held == kMostForward && plain) {
    if (at_once) kernel = rows_forward_kernel<scalar_t, width, held, plain, false, kBlocksAtOnce>;
  }
  if constexpr (sizeof(scalar_t) == 2 && held == kHeld && plain) {
    if (are_short_and_many<scalar_t, held>(rows, threads)) {
      kernel = rows_forward_kernel<scalar_t, width, held, plain, false, kBlocksOfShortRows>;
    }
  }
  return kernel;
}

void launch_rows_forward(ScalarType dtype, int64_t rows, int64_t columns, const void* input, const void* weight,
                         const void* bias, double eps, void* output, void* mean, void* rstd, void* stream) {
  for_dtype(dtype, [&]<typename scalar_t>() {
    using real = compute_t<scalar_t>;
    constexpr int width = kVectorBytes / sizeof(scalar_t);
    const int64_t vectors = columns / width;
    const bool at_once = sizeof(scalar_t) == 4 && vectors > kHeld * kThreadsAhead &&
                         rows * columns * 4 <= kBytesAtOnce * multiprocessors();
    const int threads = threads_forward(rows, vectors, at_once ? kMostForward : kHeld);
    for_held<kMostForward>((vectors + threads - 1) / threads, [&]<int held>() {
      const int block = block_of<scalar_t, held>(rows, threads);
      const int64_t rows_of_block = block / threads;
      const bool is_plain =
          weight != nullptr && bias != nullptr && columns == held * threads * width && rows % rows_of_block == 0;
      const auto kernel = is_plain ? forward_kernel<scalar_t, width, held, true>(rows, threads, at_once)
                                   : forward_kernel<scalar_t, width, held, false>(rows, threads, at_once);
      launch_blocks_early("rows_forward_kernel", kernel, grid_for(rows, rows_of_block), {static_cast<unsigned>(block)},
                          stream, rows, static_cast<int>(columns), log_of(threads), static_cast<const scalar_t*>(input),
                          static_cast<const scalar_t*>(weight), static_cast<const scalar_t*>(bias),
                          static_cast<real>(eps), static_cast<scalar_t*>(output), static_cast<real*>(mean),
                          static_cast<real*>(rstd), mean != nullptr ? 1 : 0);
    });
  });
}

}  // namespace OPERATOR_NAMESPACE
