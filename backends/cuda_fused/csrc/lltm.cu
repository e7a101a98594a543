// LLTM around PyTorch's products: kernels that build what the products read, and one pass forward and one backward for
// everything else.
//
// An item is `width` neighbouring elements of a row, as in vectors.h. Backward adds up the rows of
// d_gates as it makes them: a block has kTile items of a row and kSlots rows at a time, each thread keeps the sums of
// its columns, and they are added up in the order of the slots, then, if there are several parts of the rows, in
// another kernel in the order of the parts.
//
// Each kernel is launched early. So no pointer is __restrict__: it would allow the compiler to read before the wait.
#include "lltm.h"

#include "functions.h"
#include "launch.h"
#include "multiprocessors.h"
#include "slots.h"
#include "vectors.h"

namespace OPERATOR_NAMESPACE {

/// Blocks that keep a multiprocessor busy.
constexpr int64_t kBlocks = 4;
/// Blocks of a forward that a multiprocessor holds. In half types, whose functions are short, more threads with half
/// vectors are faster than fewer threads with whole ones.
template <typename scalar_t>
constexpr int kForwardBlocks = sizeof(scalar_t) == 2 ? 6 : 3;
template <typename scalar_t, int width>
constexpr int kForwardWidth = sizeof(scalar_t) == 2 && width > 4 ? 4 : width;
/// Elements for each multiprocessor. With fewer, an item is one element: wide loads would leave most of a GPU idle.
constexpr int64_t kFew = 2048;

/// Rows that are one part: two for each slot take less time than another kernel.
constexpr int64_t kRowsOfOnePart = 2 * kSlots;

static bool too_few_for_vectors(int64_t elements) { return elements < for_all_multiprocessors(kFew); }

template <typename scalar_t, typename index_t, int width>
__global__ void join_kernel(index_t rows, index_t left_columns, index_t right_columns, const scalar_t* left,
                            const scalar_t* right, scalar_t* whole) {
  begin_after_previous();
  const index_t columns = left_columns + right_columns, items = rows * columns / width;
#pragma unroll 1
  for (index_t item = first_item<index_t>(); item < items; item += item_stride<index_t>()) {
    const index_t row = item * width / columns, column = item * width - row * columns;
    store(whole + item * width, column < left_columns
                                    ? load<width>(left + row * left_columns + column)
                                    : load<width>(right + row * right_columns + column - left_columns));
  }
}

template <typename scalar_t, typename index_t, int width>
__global__ void split_kernel(index_t rows, index_t left_columns, index_t right_columns, const scalar_t* whole,
                             scalar_t* left, scalar_t* right) {
  begin_after_previous();
  const index_t columns = left_columns + right_columns, items = rows * columns / width;
#pragma unroll 1
  for (index_t item = first_item<index_t>(); item < items; item += item_stride<index_t>()) {
    const index_t row = item * width / columns, column = item * width - row * columns;
    store(column < left_columns ? left + row * left_columns + column
                                : right + row * right_columns + column - left_columns,
          load<width>(whole + item * width));
  }
}

/// An item of forward: where it lies, and what is read for it.
template <typename scalar_t, typename index_t, int width>
struct Item {
  index_t gate, column;
  Vector<scalar_t, width> gates[3], cell;
};

template <int width, typename scalar_t, typename index_t>
__device__ Item<scalar_t, index_t, width> item_at(index_t item, index_t state_size, const scalar_t* old_cell,
                                                  const scalar_t* gates) {
  const index_t state = item * width, row = state / state_size;
  Item<scalar_t, index_t, width> found{state + 2 * row * state_size, state - row * state_size, {}, {}};
  found.cell = load<width>(old_cell + state);
  for (int k = 0; k < 3; ++k) found.gates[k] = load<width>(gates + found.gate + k * state_size);
  return found;
}

/// A thread asks for its next item before it works on the one that it has: there is about as much arithmetic as there
/// is waiting, and neither has to wait for the other.
template <typename scalar_t, typename index_t, int width, bool adds_bias>
__global__ void __launch_bounds__(kBlockSize, kForwardBlocks<scalar_t>)
    forward_kernel(index_t batch, index_t state_size, scalar_t* gates, const scalar_t* bias, bool wants_gates,
                   const scalar_t* old_cell, scalar_t* new_h, scalar_t* new_cell) {
  using real = compute_t<scalar_t>;
  const index_t items = batch * state_size / width, step = item_stride<index_t>();
  index_t item = first_item<index_t>();
  if (item < items) begin_caching(old_cell + item * width);
  begin_after_previous();
  if (item >= items) return;
  auto next = item_at<width>(item, state_size, old_cell, gates);
#pragma unroll 1
  for (; item < items; item += step) {
    auto own = next;
    if (item + step < items) next = item_at<width>(item + step, state_size, old_cell, gates);
    for (int k = 0; k < 3 && adds_bias; ++k) {
      const auto b = load<width>(bias + own.column + k * state_size);
      for (int lane = 0; lane < width; ++lane) {
        own.gates[k].lane[lane] = static_cast<real>(own.gates[k].lane[lane]) + static_cast<real>(b.lane[lane]);
      }
    }
    Vector<scalar_t, width> h, c;
    for (int lane = 0; lane < width; ++lane) {
      const auto cell = cell_forward<real, functions_of<scalar_t>>(own.gates[0].lane[lane], own.gates[1].lane[lane],
                                                                   own.gates[2].lane[lane], own.cell.lane[lane]);
      h.lane[lane] = cell.new_h;
      c.lane[lane] = cell.new_cell;
    }
    for (int k = 0; k < 3 && adds_bias && wants_gates; ++k) store(gates + own.gate + k * state_size, own.gates[k]);
    store(new_h + item * width, h);
    store(new_cell + item * width, c);
  }
}

template <typename scalar_t, typename index_t, int width>
__global__ void backward_kernel(index_t batch, index_t state_size, index_t parts, const scalar_t* gates,
                                const scalar_t* old_cell, const scalar_t* grad_h, const scalar_t* grad_cell,
                                scalar_t* d_gates, scalar_t* d_old_cell, compute_t<scalar_t>* sums, scalar_t* d_bias) {
  using real = compute_t<scalar_t>;
  __shared__ real of_slot[kSlots][3 * width][kTile];
  begin_after_previous();
  const index_t tiles = (state_size / width + kTile - 1) / kTile;
  const auto [slot, own] = slot_of_thread();
  for (index_t block = blockIdx.x; block < tiles * parts; block += gridDim.x) {
    const index_t part = block / tiles, column = (block % tiles * kTile + own) * width;
    real sum[3 * width] = {};
    for (index_t row = part * kSlots + slot; row < batch && column < state_size; row += parts * kSlots) {
      const index_t state = row * state_size + column, gate = state + row * 2 * state_size;
      const auto in_gate = load<width>(gates + gate), out_gate = load<width>(gates + gate + state_size);
      const auto candidate_gate = load<width>(gates + gate + 2 * state_size);
      const auto cell = load<width>(old_cell + state), g_h = load<width>(grad_h + state);
      const auto g_c = load<width>(grad_cell + state);
      Vector<scalar_t, width> d_gate[3], d_cell;
      for (int lane = 0; lane < width; ++lane) {
        const auto gradient =
            cell_vjp<real, functions_of<scalar_t>>(g_h.lane[lane], g_c.lane[lane], in_gate.lane[lane],
                                                   out_gate.lane[lane], candidate_gate.lane[lane], cell.lane[lane]);
        d_gate[0].lane[lane] = gradient.d_in_gate;
        d_gate[1].lane[lane] = gradient.d_out_gate;
        d_gate[2].lane[lane] = gradient.d_candidate_gate;
        d_cell.lane[lane] = gradient.d_old_cell;
        sum[lane] += gradient.d_in_gate;
        sum[width + lane] += gradient.d_out_gate;
        sum[2 * width + lane] += gradient.d_candidate_gate;
      }
      for (int k = 0; k < 3; ++k) store(d_gates + gate + k * state_size, d_gate[k]);
      store(d_old_cell + state, d_cell);
    }
    if (sums == nullptr && d_bias == nullptr) continue;
    __syncthreads();  // all threads have read what the previous block stored
    for (int k = 0; k < 3 * width; ++k) of_slot[slot][k][own] = sum[k];
    __syncthreads();
    if (column >= state_size) continue;
    for (int k = slot; k < 3 * width; k += kSlots) {
      const index_t gate = k / width * state_size + column + k % width;
      const real total = sum_over_slots([&, at = own](int other) { return of_slot[other][k][at]; });
      if (d_bias != nullptr) {
        d_bias[gate] = total;
      } else {
        sums[part * 3 * state_size + gate] = total;
      }
    }
  }
}

/// A block has kTotalTile columns, and each of its slots every kTotalSlots-th part.
template <typename scalar_t>
__global__ void total_kernel(int64_t parts, int64_t columns, const compute_t<scalar_t>* sums, scalar_t* total) {
  begin_after_previous();
  const auto [slot, own] = slot_of_thread<kTotalTile>();
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * kTotalTile; first < columns;
       first += static_cast<int64_t>(gridDim.x) * kTotalTile) {
    const int64_t column = first + own;
    const auto sum = sum_of_parts(parts, columns, column, sums);
    if (slot == 0 && column < columns) total[column] = sum;
  }
}

/// Calls `body.operator()<scalar_t, index_t, width>()` for matrices whose rows are of these lengths.
template <typename Body>
void for_instance(ScalarType dtype, int64_t elements, std::initializer_list<int64_t> lengths,
                  std::initializer_list<const void*> pointers, Body body) {
  for_dtype(dtype, [&]<typename scalar_t>() {
    // The OR of the lengths is divisible by 2^k iff every length is. An odd number allows no vectors.
    int64_t common = too_few_for_vectors(elements) ? 1 : 0;
    for (const int64_t length : lengths) common |= length;
    for_index_type(elements, [&]<typename index_t>() {
      for_vector_width<scalar_t>(common, pointers,
                                 [&]<int width>() { body.template operator()<scalar_t, index_t, width>(); });
    });
  });
}

void launch_join(ScalarType dtype, int64_t rows, int64_t left_columns, int64_t right_columns, const void* left,
                 const void* right, void* whole, void* stream) {
  const int64_t elements = rows * (left_columns + right_columns);
  for_instance(dtype, elements, {left_columns, right_columns}, {left, right, whole},
               [&]<typename scalar_t, typename index_t, int width>() {
                 launch_early("join_kernel", join_kernel<scalar_t, index_t, width>, elements / width, stream,
                              static_cast<index_t>(rows), static_cast<index_t>(left_columns),
                              static_cast<index_t>(right_columns), static_cast<const scalar_t*>(left),
                              static_cast<const scalar_t*>(right), static_cast<scalar_t*>(whole));
               });
}

void launch_split(ScalarType dtype, int64_t rows, int64_t left_columns, int64_t right_columns, const void* whole,
                  void* left, void* right, void* stream) {
  const int64_t elements = rows * (left_columns + right_columns);
  for_instance(dtype, elements, {left_columns, right_columns}, {left, right, whole},
               [&]<typename scalar_t, typename index_t, int width>() {
                 launch_early("split_kernel", split_kernel<scalar_t, index_t, width>, elements / width, stream,
                              static_cast<index_t>(rows), static_cast<index_t>(left_columns),
                              static_cast<index_t>(right_columns), static_cast<const scalar_t*>(whole),
                              static_cast<scalar_t*>(left), static_cast<scalar_t*>(right));
               });
}

void launch_lltm_forward(ScalarType dtype, const LltmSizes& sizes, void* gates, const void* bias, bool wants_gates,
                         const void* old_cell, void* new_h, void* new_cell, void* stream) {
  const int64_t elements = sizes.batch * sizes.state_size;
  for_instance(dtype, 3 * elements, {sizes.state_size}, {gates, bias, old_cell, new_h, new_cell},
               [&]<typename scalar_t, typename index_t, int width>() {
                 constexpr int own = kForwardWidth<scalar_t, width>;
                 const int64_t at_once = multiprocessors() * kForwardBlocks<scalar_t> * kBlockSize;
                 const auto kernel = bias == nullptr ? forward_kernel<scalar_t, index_t, own, false>
                                                     : forward_kernel<scalar_t, index_t, own, true>;
                 launch_early("forward_kernel", kernel, std::min(elements / own, at_once), stream,
                              static_cast<index_t>(sizes.batch), static_cast<index_t>(sizes.state_size),
                              static_cast<scalar_t*>(gates), static_cast<const scalar_t*>(bias), wants_gates,
                              static_cast<const scalar_t*>(old_cell), static_cast<scalar_t*>(new_h),
                              static_cast<scalar_t*>(new_cell));
               });
}

int64_t lltm_parts(ScalarType dtype, const LltmSizes& sizes) {
  int64_t parts = 1;
  for_dtype(dtype, [&]<typename scalar_t>() {
    const int64_t width = too_few_for_vectors(3 * sizes.batch * sizes.state_size)
                              ? 1
                              : kVectorBytes / static_cast<int64_t>(sizeof(scalar_t));
    const int64_t tile = kTile * width;
    const int64_t tiles = (sizes.state_size + tile - 1) / tile;
    if (sizes.batch <= kRowsOfOnePart) return;
    parts =
        std::max<int64_t>(1, std::min(for_all_multiprocessors(kBlocks) / tiles, (sizes.batch + kSlots - 1) / kSlots));
  });
  return parts;
}

/// d_bias, of (columns,) and `dtype`, is the sum of the rows of `sums`.
static void launch_total(ScalarType dtype, int64_t parts, int64_t columns, const void* sums, void* d_bias,
                         void* stream) {
  for_dtype(dtype, [&]<typename scalar_t>() {
    launch_blocks_early("total_kernel", total_kernel<scalar_t>, grid_for(columns, kTotalTile), {kBlockSize}, stream,
                        parts, columns, static_cast<const compute_t<scalar_t>*>(sums), static_cast<scalar_t*>(d_bias));
  });
}

void launch_lltm_backward(ScalarType dtype, const LltmSizes& sizes, const void* gates, const void* old_cell,
                          const void* grad_h, const void* grad_cell, void* d_gates, void* d_old_cell, void* sums,
                          void* d_bias, void* stream) {
  const int64_t parts = lltm_parts(dtype, sizes);
  const bool in_parts = d_bias != nullptr && parts > 1;
  for_instance(dtype, 3 * sizes.batch * sizes.state_size, {sizes.state_size},
               {gates, old_cell, grad_h, grad_cell, d_gates, d_old_cell},
               [&]<typename scalar_t, typename index_t, int width>() {
                 const int64_t blocks = (sizes.state_size / width + kTile - 1) / kTile * parts;
                 launch_blocks_early("backward_kernel", backward_kernel<scalar_t, index_t, width>, grid_for(blocks, 1),
                                     {kBlockSize}, stream, static_cast<index_t>(sizes.batch),
                                     static_cast<index_t>(sizes.state_size), static_cast<index_t>(parts),
                                     static_cast<const scalar_t*>(gates), static_cast<const scalar_t*>(old_cell),
                                     static_cast<const scalar_t*>(grad_h), static_cast<const scalar_t*>(grad_cell),
                                     static_cast<scalar_t*>(d_gates), static_cast<scalar_t*>(d_old_cell),
                                     in_parts ? static_cast<compute_t<scalar_t>*>(sums) : nullptr,
                                     in_parts ? nullptr : static_cast<scalar_t*>(d_bias));
               });
  if (in_parts) launch_total(dtype, parts, 3 * sizes.state_size, sums, d_bias, stream);
}

}  // namespace OPERATOR_NAMESPACE
