// LayerNorm that reads each row once: it stays in the registers of the threads that work on it.
//
// `threads` neighbouring threads work on a row (layer_norm_math.h), each with `held` vectors of `width` elements, which
// lie `threads` vectors apart, so that loads and stores are coalesced.
#include "rows.h"

#include "launch.h"
#include "layer_norm_math.h"
#include "row_vectors.h"

namespace OPERATOR_NAMESPACE {

/// Blocks that share the registers of a multiprocessor: as many as leave a thread enough registers for its elements,
/// and for those of weight and bias, which take half the space in half types.
template <typename scalar_t, int elements>
constexpr int blocks_forward() {
  constexpr int bytes = elements * sizeof(compute_t<scalar_t>);
  if (bytes > 128) return 2;
  return bytes > 64 && sizeof(scalar_t) > 2 ? 3 : 4;
}

/// `plain`: there are weight and bias, all threads have `held` vectors, and no block has a row beyond the end. Weight
/// and bias are not `__restrict__`, so that the compiler does not load them before the sums are known: there are not
/// enough registers for both.
template <typename scalar_t, int width, int held, bool plain, int blocks = blocks_forward<scalar_t, width * held>()>
__global__ void __launch_bounds__(kBlockSize, blocks)
    rows_forward_kernel(int64_t rows, int columns, int log_threads, const scalar_t* __restrict__ input,
                        const scalar_t* weight, const scalar_t* bias, compute_t<scalar_t> eps,
                        scalar_t* __restrict__ output, compute_t<scalar_t>* __restrict__ mean,
                        compute_t<scalar_t>* __restrict__ rstd) {
  using real = compute_t<scalar_t>;
  const Place place = place_of_thread(log_threads, columns);
  const int64_t rows_at_once = kBlockSize >> log_threads;
  // All threads of a block make the same number of rounds: row_sum needs every one of them.
  for (int64_t begin = blockIdx.x * rows_at_once; begin < rows; begin += gridDim.x * rows_at_once) {
    const bool is_there = plain || begin + place.first < rows;
    const int64_t row = is_there ? begin + place.first : rows - 1;
    Vector<scalar_t, width> loaded[held];
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

/// Blocks on a multiprocessor, and bytes of a matrix for each, for which all of the matrix is read at once: in four
/// bytes an element, twice as many vectors in a thread then leave no second round (an H200, 4096 rows of 1024: 13.7 us
/// instead of 15.1).
constexpr int kBlocksAtOnce = 4, kBytesAtOnce = kBlocksAtOnce * kBlockSize * kMostForward * kVectorBytes;

void launch_rows_forward(ScalarType dtype, int64_t rows, int64_t columns, const void* input, const void* weight,
                         const void* bias, double eps, void* output, void* mean, void* rstd, void* stream) {
  const bool at_once = dtype == ScalarType::Float && rows * columns * 4 <= kBytesAtOnce * multiprocessors();
  const auto launch = [&]<typename scalar_t, int width, int held>(int threads) {
    using real = compute_t<scalar_t>;
    const bool is_plain =
        weight != nullptr && bias != nullptr && columns == held * threads * width && rows % (kBlockSize / threads) == 0;
    auto kernel =
        is_plain ? rows_forward_kernel<scalar_t, width, held, true> : rows_forward_kernel<scalar_t, width, held, false>;
    if constexpr (sizeof(scalar_t) == 4 && held == kMostForward) {
      if (is_plain && at_once) kernel = rows_forward_kernel<scalar_t, width, held, true, kBlocksAtOnce>;
    }
    launch_with_barriers("rows_forward_kernel", kernel, rows, kBlockSize / threads, stream, rows,
                         static_cast<int>(columns), log_of(threads), static_cast<const scalar_t*>(input),
                         static_cast<const scalar_t*>(weight), static_cast<const scalar_t*>(bias),
                         static_cast<real>(eps), static_cast<scalar_t*>(output), static_cast<real*>(mean),
                         static_cast<real*>(rstd));
  };
  for_rows<kMostForward, kBlockSize>(dtype, rows, columns, launch, at_once ? kMostForward : kHeld);
}

}  // namespace OPERATOR_NAMESPACE
