// Backward of the LayerNorm in rows.cu for many rows: all gradients from one reading of grad_output and input.
//
// A thread has the same columns in every row, and adds up their contributions to d_weight and d_bias while it works on
// the rows. The sums of a block are one part; another kernel adds up the parts, in the same order each time.
//
// The blocks stay, and each of them takes the next rows when it has done some. The next rows are copied to shared
// memory while the present ones are worked on, so that memory never waits for the sums over a row. A thread reads only
// what it has copied itself: no barrier is needed for that.
#include "copies.h"
#include "launch.h"
#include "layer_norm_math.h"
#include "multiprocessors.h"
#include "row_sums.h"
#include "row_vectors.h"
#include "rows.h"
#include "slots.h"

namespace OPERATOR_NAMESPACE {

/// Threads that a multiprocessor has at a time, so that each of them has 128 registers.
constexpr int64_t kResidentThreads = 512;

/// Rows of a part, at least, where all multiprocessors have one.
constexpr int64_t kRowsOfPart = 32;

/// What a thread adds up over its rows: for each of its elements, grad_output * xhat and grad_output.
template <typename real, int width, int held>
struct Sums {
  Vector<real, width> of_weight[held] = {}, of_bias[held] = {};
};

/// The vectors of a thread in the shared memory of its block: for each stage, those of grad_output and of input.
template <typename scalar_t, int width, int held, int block>
struct Stages {
  using Vectors = Vector<scalar_t, width>;
  static constexpr int64_t kBytes = 2LL * held * block * kVectorBytes;  // of a stage

  Vectors* own;

  __device__ Vectors* grad_output(int stage, int k) const { return own + (2 * stage * held + k) * block; }
  __device__ Vectors* input(int stage, int k) const { return own + ((2 * stage + 1) * held + k) * block; }
};

/// Writes the part of a block: the sums of its threads, added up over the rows that it works on at a time. `memory` has
/// room for the sums of all threads.
template <int block, typename real, int width, int held>
__device__ void write_part(const Sums<real, width, held>& sums, const Place& place, Vector<real, width>* memory,
                           real* to) {
  const int thread = static_cast<int>(threadIdx.x);
  __syncthreads();  // no thread reads its rows any more
#pragma unroll
  for (int k = 0; k < held; ++k) {
    memory[k * block + thread] = sums.of_weight[k];
    memory[(held + k) * block + thread] = sums.of_bias[k];
  }
  __syncthreads();
  // The threads share out the vectors of both gradients.
  for (int item = thread; item < 2 * held * place.threads; item += block) {
    const int vector = item & (held * place.threads - 1), gradient = item / (held * place.threads);
    const int own = vector & (place.threads - 1), k = vector / place.threads, column = vector * width;
    if (column >= place.columns) continue;
    Vector<real, width> sum = memory[(gradient * held + k) * block + own];
    for (int other = own + place.threads; other < block; other += place.threads) {
      const auto more = memory[(gradient * held + k) * block + other];
      for (int lane = 0; lane < width; ++lane) sum.lane[lane] += more.lane[lane];
    }
    store(to + (static_cast<int64_t>(gradient) * gridDim.x + blockIdx.x) * place.columns + column, sum);
  }
}

/// `ahead`: stages that are copied while one is worked on. d_input and `to` may be null.
template <typename scalar_t, int width, int held, int block, int ahead>
__global__ void __launch_bounds__(block, kResidentThreads / block)
    rows_backward_kernel(int64_t rows, int columns, int log_threads, const scalar_t* grad_output, const scalar_t* input,
                         const compute_t<scalar_t>* mean, const compute_t<scalar_t>* rstd, const scalar_t* weight,
                         scalar_t* d_input, compute_t<scalar_t>* to) {
  using real = compute_t<scalar_t>;
  begin_after_previous();
  const Place place = place_of_thread(log_threads, columns);
  const int64_t rows_at_once = block >> log_threads, step = gridDim.x * rows_at_once;
  const Stages<scalar_t, width, held, block> stages{memory_of_block<Vector<scalar_t, width>>() + threadIdx.x};
  const auto begin_stage = [&](int64_t row, int stage) {
#pragma unroll
    for (int k = 0; k < held; ++k) {
      if (row >= rows || !place.has<width>(k)) continue;
      const int64_t at = row * columns + place.column<width, true>(k);
      begin_copy(stages.grad_output(stage, k), grad_output + at);
      begin_copy(stages.input(stage, k), input + at);
    }
    end_group();
  };
  int64_t row = blockIdx.x * rows_at_once + place.first;
  for (int stage = 0; stage < ahead; ++stage) begin_stage(row + stage * step, stage);
  real next_mean = row < rows ? mean[row] : real(0), next_rstd = row < rows ? rstd[row] : real(0);
  Sums<real, width, held> sums;
  int stage = 0, round = 0;
  // All threads of a block make the same number of rounds: row_sums needs every one of them.
  for (; row - place.first < rows; row += step) {
    const bool is_there = row < rows;
    const real m = next_mean, r = next_rstd;
    if (row + step < rows) {
      next_mean = mean[row + step];
      next_rstd = rstd[row + step];
    }
    begin_stage(row + ahead * step, stage == 0 ? ahead : stage - 1);
    wait_for_groups<ahead>();
    real mean_h = 0, mean_h_xhat = 0;
#pragma unroll
    for (int k = 0; k < held; ++k) {
      if (!is_there || !place.has<width>(k)) continue;
      const auto w = load_or<width>(weight, place.column<width, true>(k), real(1));
      const auto g = widened<real>(*stages.grad_output(stage, k)), x = widened<real>(*stages.input(stage, k));
      for (int lane = 0; lane < width; ++lane) {
        const real xhat = (x.lane[lane] - m) * r, h = g.lane[lane] * w.lane[lane];
        mean_h += h;
        mean_h_xhat += h * xhat;
        sums.of_weight[k].lane[lane] += g.lane[lane] * xhat;
        sums.of_bias[k].lane[lane] += g.lane[lane];
      }
    }
    if (d_input != nullptr) {
      row_sums<block>(mean_h, mean_h_xhat, place.threads, round);
      mean_h /= static_cast<real>(columns);
      mean_h_xhat /= static_cast<real>(columns);
#pragma unroll
      for (int k = 0; k < held; ++k) {
        if (!is_there || !place.has<width>(k)) continue;
        const int column = place.column<width, true>(k);
        const auto w = load_or<width>(weight, column, real(1));
        const auto g = widened<real>(*stages.grad_output(stage, k)), x = widened<real>(*stages.input(stage, k));
        Vector<scalar_t, width> d_x;
        for (int lane = 0; lane < width; ++lane) {
          const real xhat = (x.lane[lane] - m) * r;
          d_x.lane[lane] = input_gradient(g.lane[lane] * w.lane[lane], xhat, r, mean_h, mean_h_xhat);
        }
        store(d_input + row * columns + column, d_x);
      }
    }
    stage = stage == ahead ? 0 : stage + 1;
    round ^= 1;
  }
  wait_for_groups<0>();
  if (to != nullptr) write_part<block>(sums, place, memory_of_block<Vector<real, width>>(), to);
}

/// A block has kTotalTile columns of one of the two gradients, and each of its slots every kTotalSlots-th part.
template <typename scalar_t>
__global__ void totals_kernel(int64_t parts, int64_t columns, const compute_t<scalar_t>* sums, scalar_t* d_weight,
                              scalar_t* d_bias) {
  using real = compute_t<scalar_t>;
  begin_after_previous();
  const auto [slot, own] = slot_of_thread<kTotalTile>();
  const int64_t tiles = (columns + kTotalTile - 1) / kTotalTile;
  for (int64_t tile = blockIdx.x; tile < 2 * tiles; tile += gridDim.x) {
    scalar_t* const to = tile < tiles ? d_weight : d_bias;
    if (to == nullptr) continue;
    const real* const from = sums + tile / tiles * parts * columns;
    const int64_t column = tile % tiles * kTotalTile + own;
    const real sum = sum_of_parts(parts, columns, column, from);
    if (slot == 0 && column < columns) to[column] = sum;
  }
}

/// Threads of a block for rows on which that many threads work.
static int64_t block_of(int threads) { return threads <= kNarrowBlock ? kNarrowBlock : kWideBlock; }

static int64_t parts_of(int64_t rows, int threads) {
  const int64_t block = block_of(threads);
  const int64_t rounds = (rows * threads + block - 1) / block;
  // A part is written and read again, which takes as long as some rows. So it has several, if there are enough.
  const int64_t most = kResidentThreads / block * multiprocessors(), least = std::min(rounds, multiprocessors());
  const int64_t wanted = std::clamp(rows / kRowsOfPart, int64_t{1}, rounds);
  return std::clamp(wanted, least, most);
}

int64_t row_parts(ScalarType dtype, int64_t rows, int64_t columns) {
  int64_t parts = 0;
  for_rows<kMostBackward, kWideBlock>(dtype, rows, columns, [&]<typename scalar_t, int width, int held>(int threads) {
    parts = parts_of(rows, threads);
  });
  return parts;
}

/// Shared memory that a block asks for: its stages, in whose place it adds up its sums at the end.
template <typename scalar_t, int width, int held, int block>
constexpr int64_t bytes_of_block(int stages) {
  using real = compute_t<scalar_t>;
  return std::max(stages * Stages<scalar_t, width, held, block>::kBytes,
                  static_cast<int64_t>(2 * held * block * sizeof(Vector<real, width>)));
}

/// Whether the current device has that memory for a block, beside what the kernel declares.
template <typename scalar_t, int width, int held, int block>
static bool has_memory(int stages) {
  return bytes_of_block<scalar_t, width, held, block>(stages) + kRowSumsBytes<block, compute_t<scalar_t>> <=
         most_memory_of_block();
}

bool has_memory_for_rows(ScalarType dtype, int64_t rows, int64_t columns) {
  bool result = false;
  for_rows<kMostBackward, kWideBlock>(dtype, rows, columns, [&]<typename scalar_t, int width, int held>(int threads) {
    result = block_of(threads) == kNarrowBlock ? has_memory<scalar_t, width, held, kNarrowBlock>(1)
                                               : has_memory<scalar_t, width, held, kWideBlock>(1);
  });
  return result;
}

/// `launch_rows_backward` with that many threads in a block, and as many stages as there is memory for.
template <typename scalar_t, int width, int held, int block>
static void launch_of_blocks(int64_t rows, int64_t columns, int threads, const void* grad_output, const void* input,
                             const void* mean, const void* rstd, const void* weight, void* d_input, void* sums,
                             void* stream) {
  using real = compute_t<scalar_t>;
  const bool has_two = has_memory<scalar_t, width, held, block>(2);
  const auto kernel = has_two ? rows_backward_kernel<scalar_t, width, held, block, 1>
                              : rows_backward_kernel<scalar_t, width, held, block, 0>;
  launch_early_with_memory("rows_backward_kernel", kernel, {static_cast<unsigned>(parts_of(rows, threads))}, {block},
                           bytes_of_block<scalar_t, width, held, block>(has_two ? 2 : 1), stream, rows,
                           static_cast<int>(columns), log_of(threads), static_cast<const scalar_t*>(grad_output),
                           static_cast<const scalar_t*>(input), static_cast<const real*>(mean),
                           static_cast<const real*>(rstd), static_cast<const scalar_t*>(weight),
                           static_cast<scalar_t*>(d_input), static_cast<real*>(sums));
}

void launch_rows_backward(ScalarType dtype, int64_t rows, int64_t columns, const void* grad_output, const void* input,
                          const void* mean, const void* rstd, const void* weight, void* d_input, void* sums,
                          void* stream) {
  for_rows<kMostBackward, kWideBlock>(dtype, rows, columns, [&]<typename scalar_t, int width, int held>(int threads) {
    const auto launch = threads <= kNarrowBlock ? launch_of_blocks<scalar_t, width, held, kNarrowBlock>
                                                : launch_of_blocks<scalar_t, width, held, kWideBlock>;
    launch(rows, columns, threads, grad_output, input, mean, rstd, weight, d_input, sums, stream);
  });
}

void launch_totals(ScalarType dtype, int64_t parts, int64_t columns, const void* sums, void* d_weight, void* d_bias,
                   void* stream) {
  for_dtype(dtype, [&]<typename scalar_t>() {
    launch_blocks_early("totals_kernel", totals_kernel<scalar_t>,
                        grid_for(2 * ((columns + kTotalTile - 1) / kTotalTile), 1), {kBlockSize}, stream, parts,
                        columns, static_cast<const compute_t<scalar_t>*>(sums), static_cast<scalar_t*>(d_weight),
                        static_cast<scalar_t*>(d_bias));
  });
}

}  // namespace OPERATOR_NAMESPACE
