// MLP between PyTorch's products: one pass forward, and one backward that also makes the gradients of both biases.
//
// Each kernel is launched early, which saves most of a launch. So no pointer is __restrict__: it would allow the
// compiler to read before the wait.
//
// Backward adds up the rows of d_z as it makes them, and those of grad_output beside it. A block has one tile of
// columns, of either matrix, and one part of the rows: kTile items of a row, which are `width` neighbouring elements of
// d_z or one element of grad_output, and kSlots rows at a time (slots.h). Where one part is enough, a block's sums are
// the gradient. Otherwise another kernel adds up the parts, in the same order each time.
#include "mlp.h"

#include <algorithm>

#include "launch.h"
#include "mlp_math.h"
#include "multiprocessors.h"
#include "slots.h"
#include "vectors.h"

namespace OPERATOR_NAMESPACE {

/// Blocks that keep a multiprocessor busy.
constexpr int64_t kBlocks = 4;
/// Elements for each multiprocessor. With fewer, an item is one element: wide loads would leave most of a GPU idle.
constexpr int64_t kFew = 4096;
/// Rows that one part has at most, as long as a GPU has room for more blocks: a thread waits for memory as often as it
/// has rows, and another kernel takes as long as some of that.
constexpr int64_t kRowsOfPart = 16 * kSlots;

static bool too_few_for_vectors(const MlpSizes& sizes) {
  return sizes.batch * sizes.hidden_size < for_all_multiprocessors(kFew);
}

template <typename scalar_t, typename index_t, int width>
__global__ void hidden_forward_kernel(index_t batch, index_t hidden_size, const scalar_t* hidden_bias,
                                      scalar_t* hidden) {
  begin_after_previous();
  const index_t items = batch * hidden_size / width;
  for (index_t item = first_item<index_t>(); item < items; item += item_stride<index_t>()) {
    const index_t unit = item * width;
    const auto bias = load<width>(hidden_bias + unit % hidden_size);
    auto value = load<width>(hidden + unit);
    for (int lane = 0; lane < width; ++lane) {
      value.lane[lane] = hidden_forward<compute_t<scalar_t>>(value.lane[lane], bias.lane[lane]);
    }
    store(hidden + unit, value);
  }
}

/// Where the sums over rows go: into the gradients, or, unless it is null, into the part's row of `sums`.
template <typename scalar_t, typename index_t>
struct BiasSums {
  index_t hidden_size, output_size;
  compute_t<scalar_t>* sums;
  scalar_t *d_hidden_bias, *d_output_bias;

  /// `column` counts the columns of d_z first.
  __device__ void write(index_t column, compute_t<scalar_t> sum) const {
    scalar_t* const gradient = column < hidden_size ? d_hidden_bias : d_output_bias;
    if (gradient != nullptr) gradient[column < hidden_size ? column : column - hidden_size] = sum;
  }

  __device__ void write(index_t part, index_t column, compute_t<scalar_t> sum) const {
    if (sums == nullptr) return write(column, sum);
    sums[part * (hidden_size + output_size) + column] = sum;
  }
};

template <typename scalar_t, typename index_t, int width>
__global__ void hidden_backward_kernel(index_t batch, index_t parts, const scalar_t* hidden,
                                       const scalar_t* grad_output, scalar_t* d_hidden,
                                       BiasSums<scalar_t, index_t> sums) {
  using real = compute_t<scalar_t>;
  __shared__ real of_slot[kSlots][width][kTile];
  begin_after_previous();
  const index_t hidden_size = sums.hidden_size, output_size = sums.output_size;
  const index_t hidden_tiles = (hidden_size / width + kTile - 1) / kTile;
  const index_t tiles = hidden_tiles + (output_size + kTile - 1) / kTile;
  const auto [slot, own] = slot_of_thread();
  for (index_t block = blockIdx.x; block < tiles * parts; block += gridDim.x) {
    const index_t part = block / tiles, tile = block % tiles;
    const bool of_hidden = tile < hidden_tiles;
    const index_t column = of_hidden ? (tile * kTile + own) * width : (tile - hidden_tiles) * kTile + own;
    const bool is_there = column < (of_hidden ? hidden_size : output_size);
    real sum[width] = {};
    for (index_t row = part * kSlots + slot; row < batch && is_there; row += parts * kSlots) {
      if (of_hidden) {
        const auto value = load<width>(hidden + row * hidden_size + column);
        auto gradient = load<width>(d_hidden + row * hidden_size + column);
        for (int lane = 0; lane < width; ++lane) {
          const real d_z = hidden_vjp<real>(gradient.lane[lane], value.lane[lane]);
          gradient.lane[lane] = d_z;
          sum[lane] += d_z;
        }
        store(d_hidden + row * hidden_size + column, gradient);
      } else {
        sum[0] += static_cast<real>(grad_output[row * output_size + column]);
      }
    }
    __syncthreads();  // all threads have read what the previous round stored
    for (int k = 0; k < width; ++k) of_slot[slot][k][own] = sum[k];
    __syncthreads();
    if (!is_there) continue;
    for (int k = slot; k < (of_hidden ? width : 1); k += kSlots) {
      sums.write(part, (of_hidden ? 0 : hidden_size) + column + k,
                 sum_over_slots([&, at = own](int other) { return of_slot[other][k][at]; }));
    }
  }
}

/// Adds up the parts. A block has kTotalTile columns, and each of its slots every kTotalSlots-th part.
template <typename scalar_t>
__global__ void bias_gradients_kernel(int64_t parts, BiasSums<scalar_t, int64_t> sums) {
  begin_after_previous();
  const int64_t columns = sums.hidden_size + sums.output_size;
  const auto [slot, own] = slot_of_thread<kTotalTile>();
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * kTotalTile; first < columns;
       first += static_cast<int64_t>(gridDim.x) * kTotalTile) {
    const int64_t column = first + own;
    const auto sum = sum_of_parts(parts, columns, column, sums.sums);
    if (slot == 0 && column < columns) sums.write(column, sum);
  }
}

/// Calls `body.operator()<scalar_t, index_t, width>()`.
template <typename Body>
static void for_instance(ScalarType dtype, const MlpSizes& sizes, std::initializer_list<const void*> pointers,
                         Body body) {
  const int64_t row_size = too_few_for_vectors(sizes) ? 1 : sizes.hidden_size;
  for_dtype(dtype, [&]<typename scalar_t>() {
    for_index_type(sizes.batch * std::max(sizes.hidden_size, sizes.output_size), [&]<typename index_t>() {
      for_vector_width<scalar_t>(row_size, pointers,
                                 [&]<int width>() { body.template operator()<scalar_t, index_t, width>(); });
    });
  });
}

void launch_hidden_forward(ScalarType dtype, const MlpSizes& sizes, const void* hidden_bias, void* hidden,
                           void* stream) {
  for_instance(dtype, sizes, {hidden_bias, hidden}, [&]<typename scalar_t, typename index_t, int width>() {
    launch_early("hidden_forward_kernel", hidden_forward_kernel<scalar_t, index_t, width>,
                 sizes.batch * sizes.hidden_size / width, stream, static_cast<index_t>(sizes.batch),
                 static_cast<index_t>(sizes.hidden_size), static_cast<const scalar_t*>(hidden_bias),
                 static_cast<scalar_t*>(hidden));
  });
}

/// How many tiles of columns there are, where an item of d_z has `width` elements.
static int64_t tiles_of(const MlpSizes& sizes, int64_t width) {
  return (sizes.hidden_size / width + kTile - 1) / kTile + (sizes.output_size + kTile - 1) / kTile;
}

int64_t mlp_parts(ScalarType dtype, const MlpSizes& sizes) {
  int64_t width = 1;
  for_dtype(dtype, [&]<typename scalar_t>() {
    if (!too_few_for_vectors(sizes)) width = kVectorBytes / static_cast<int64_t>(sizeof(scalar_t));
  });
  const int64_t room = for_all_multiprocessors(kBlocks) / std::max<int64_t>(tiles_of(sizes, width), 1);
  return std::max<int64_t>(1, std::min(room, (sizes.batch + kRowsOfPart - 1) / kRowsOfPart));
}

void launch_hidden_backward(ScalarType dtype, const MlpSizes& sizes, const void* hidden, const void* grad_output,
                            void* d_hidden, void* sums, void* d_hidden_bias, void* d_output_bias, void* stream) {
  const int64_t hidden_size = d_hidden == nullptr ? 0 : sizes.hidden_size;
  const int64_t output_size = d_output_bias == nullptr ? 0 : sizes.output_size;
  const int64_t parts = mlp_parts(dtype, sizes);
  for_instance(dtype, sizes, {hidden, d_hidden}, [&]<typename scalar_t, typename index_t, int width>() {
    const auto into = [&]<typename index>(index) -> BiasSums<scalar_t, index> {
      return {static_cast<index>(hidden_size), static_cast<index>(output_size),
              parts > 1 ? static_cast<compute_t<scalar_t>*>(sums) : nullptr, static_cast<scalar_t*>(d_hidden_bias),
              static_cast<scalar_t*>(d_output_bias)};
    };
    const int64_t tiles = tiles_of({sizes.batch, sizes.input_features, hidden_size, output_size}, width);
    launch_blocks_early("hidden_backward_kernel", hidden_backward_kernel<scalar_t, index_t, width>,
                        grid_for(tiles * parts, 1), {kBlockSize}, stream, static_cast<index_t>(sizes.batch),
                        static_cast<index_t>(parts), static_cast<const scalar_t*>(hidden),
                        static_cast<const scalar_t*>(grad_output), static_cast<scalar_t*>(d_hidden), into(index_t()));
    if (parts > 1 && (d_hidden_bias != nullptr || d_output_bias != nullptr)) {
      launch_blocks_early("bias_gradients_kernel", bias_gradients_kernel<scalar_t>,
                          grid_for(hidden_size + output_size, kTotalTile), {kBlockSize}, stream, parts,
                          into(int64_t()));
    }
  });
}

}  // namespace OPERATOR_NAMESPACE
