// The forward of LLTM in one kernel, for half types and few rows (lltm_few_rows.h): its product on tensor cores, where
// PyTorch's would want [old_h, input] in one piece, and would store the gates before they are read again.
//
// The warps have kTerms terms of the products at a time. Each lane copies what it multiplies to a place of its own in
// shared memory, for `ahead` rounds before it waits for the first: the kernel waits for memory and for little else.
//
// A lane copies kHalves neighbouring terms at once. The instruction wants other terms of it (tensor_cores.h), but a sum
// of products is the same if both factors have their terms in another order.
//
// Not on AMD GPUs: tensor_cores.h has no instruction of theirs.
#include "lltm_few_rows.h"

#include "launch.h"

#ifndef __HIPCC__
#include "copies.h"
#include "tensor_cores.h"
#include "together.h"
#endif

namespace OPERATOR_NAMESPACE {

#ifdef __HIPCC__

bool has_few_rows(ScalarType, const LltmSizes&, std::initializer_list<const void*>) { return false; }

void launch_few_rows_forward(ScalarType, const LltmSizes&, const void*, const void*, const void*, const void*,
                             const void*, void*, void*, void*, void*) {
  STD_TORCH_CHECK(false, "launch_few_rows_forward: AMD GPUs have none; call has_few_rows first");
}

#else

static_assert(kStates == kTileColumns);
/// Terms that a lane loads at once, 16 bytes of them; and a warp, whose lanes 4g to 4g + 3 have those of row g.
constexpr int kTerms = 4 * kHalves;
/// Rows of a batch, at most, in tiles.
constexpr int kMostTiles = kMostRows / kTileRows;

/// A piece, as registers of two terms each.
struct alignas(kVectorBytes) Piece {
  uint32_t pair[kHalves / 2];
};

/// What a lane copies in a round: pieces of a row of the weights for each gate, and of two rows of each tile.
template <int tiles>
constexpr int kPieces = kGates + 2 * tiles;

/// The shared memory of a block: first what is on its way to each thread, then the sums of each warp.
template <int tiles, int ahead>
union FewRowsShared {
  Piece pieces[ahead][kPieces<tiles>][kBlockSize];
  WarpSums<tiles * kTileRows> sums;
};

template <typename scalar_t, int tiles, int ahead>
__global__ void __launch_bounds__(kBlockSize)
    few_rows_forward_kernel(FewRows sizes, Factors<scalar_t> factors, NextState<scalar_t> next) {
  begin_after_previous();
  auto& shared = *memory_of_block<FewRowsShared<tiles, ahead>>();
  const int thread = static_cast<int>(threadIdx.x), lane = thread % kLanes, warp = thread / kLanes;
  const int g = lane / 4, t = lane % 4, columns = sizes.columns(), state_size = sizes.state_size;
  const int first_state = sizes.first_state();
  // The terms of a warp's round, and those of this lane; it has some of the weights of one state.
  const auto first_of = [&](int round) { return (warp + round * kWarps) * kTerms; };
  const scalar_t* const own_weights = factors.weights + (first_state + g) * columns;
  const auto begin_round = [&](int round, int place) {
    const int column = first_of(round) + t * kHalves;
    if (column < columns) {
      Piece(&to)[kPieces<tiles>][kBlockSize] = shared.pieces[place];
      for (int gate = 0; gate < kGates; ++gate) {
        begin_copy(&to[gate][thread], own_weights + gate * state_size * columns + column);
      }
#pragma unroll
      for (int half = 0; half < 2 * tiles; ++half) {
        // A row beyond the end is zeros, and its result is not used.
        const int row = half * kTileRows / 2 + g;
        const bool is_row = row < sizes.batch;
        begin_copy_or_zeros(&to[kGates + half][thread], factors.element(sizes, is_row ? row : 0, column), is_row);
      }
    }
    end_group();
  };
#pragma unroll 1  // its instructions come from memory too
  for (int round = 0; round < ahead; ++round) begin_round(round, round);
  begin_caching<tiles * kTileRows>(sizes, next);

  float sums[kGates][tiles][4] = {};
#pragma unroll 1
  for (int round = 0, place = 0; first_of(round) < columns; ++round, place = place + 1 < ahead ? place + 1 : 0) {
    wait_for_groups<ahead - 1>();
    const bool is_there = first_of(round) + t * kHalves < columns;  // where it is not, zeros are multiplied
    const auto piece = [&](int which) { return is_there ? shared.pieces[place][which][thread] : Piece{}; };
    Piece of_gate[kGates];
    for (int gate = 0; gate < kGates; ++gate) of_gate[gate] = piece(gate);
#pragma unroll
    for (int tile = 0; tile < tiles; ++tile) {
      const Piece upper = piece(kGates + 2 * tile), lower = piece(kGates + 2 * tile + 1);
#pragma unroll
      for (int pair = 0; pair < kHalves / 2; pair += 2) {
        const uint32_t rows[4] = {upper.pair[pair], lower.pair[pair], upper.pair[pair + 1], lower.pair[pair + 1]};
        for (int gate = 0; gate < kGates; ++gate) {
          multiply_tiles<scalar_t>(sums[gate][tile], rows, {of_gate[gate].pair[pair], of_gate[gate].pair[pair + 1]});
        }
      }
    }
    begin_round(round + ahead, place);
  }
  wait_for_groups<0>();
  __syncthreads();  // nobody's pieces are needed any more
  for (int gate = 0; gate < kGates; ++gate) {
    for (int tile = 0; tile < tiles; ++tile) {
      for (int k = 0; k < 4; ++k) {
        const int row = tile * kTileRows + k / 2 * kTileRows / 2 + g;
        shared.sums[warp][gate][row][2 * t + k % 2] = sums[gate][tile][k];
      }
    }
  }
  __syncthreads();
  write_next_state<tiles * kTileRows>(sizes, shared.sums, next);
}

/// Elements of the weights up to which the kernels are faster than the products: the fewer rows, the more.
static int64_t most_weights(bool is_float, int64_t batch) {
  if (batch <= kTileRows) return int64_t{26} << 20;
  return is_float || batch <= 2 * kTileRows ? int64_t{5} << 20 : int64_t{2} << 20;
}

/// Rows of floats below which the products are those of a matrix and vectors, which a library is faster at.
constexpr int64_t kLeastRowsOfFloats = 8;

bool has_few_rows(ScalarType dtype, const LltmSizes& sizes, std::initializer_list<const void*> pointers) {
  const bool is_float = dtype == ScalarType::Float;
  if (!is_float && dtype != ScalarType::Half && dtype != ScalarType::BFloat16) return false;
  const int64_t most = most_weights(is_float, sizes.batch);
  if (sizes.batch > kMostRows || sizes.state_size > most || sizes.input_features > most) return false;
  const int64_t columns = sizes.state_size + sizes.input_features;
  if (kGates * sizes.state_size * columns > most) return false;
  if (is_float ? sizes.batch < kLeastRowsOfFloats || !has_memory_for_floats(sizes) : !has_tensor_cores()) return false;
  // A vector of float has half as many elements, but a block has kStates elements of the state anyway.
  return is_of_vectors(sizes, pointers);
}

template <typename scalar_t>
static void launch_halves(const FewRows& sizes, const Factors<scalar_t>& factors, const NextState<scalar_t>& next,
                          void* stream) {
  const auto launch_as = [&]<int tiles, int ahead>() {
    launch_early_with_memory("few_rows_forward_kernel", few_rows_forward_kernel<scalar_t, tiles, ahead>,
                             {static_cast<unsigned>(sizes.state_groups())}, {kBlockSize},
                             static_cast<int64_t>(sizeof(FewRowsShared<tiles, ahead>)), stream, sizes, factors, next);
  };
  const auto launch_tiles = [&]<int tiles>() {
    if (most_memory_of_block() >= static_cast<int64_t>(sizeof(FewRowsShared<tiles, kAhead>))) {
      launch_as.template operator()<tiles, kAhead>();
    } else {
      launch_as.template operator()<tiles, kAheadOfLittle>();
    }
  };
  if (sizes.batch <= kTileRows) return launch_tiles.template operator()<1>();
  if (sizes.batch <= 2 * kTileRows) return launch_tiles.template operator()<2>();
  launch_tiles.template operator()<kMostTiles>();
}

void launch_few_rows_forward(ScalarType dtype, const LltmSizes& sizes, const void* input, const void* weights,
                             const void* bias, const void* old_h, const void* old_cell, void* new_h, void* new_cell,
                             void* gates, void* stream) {
  for_dtype(dtype, [&]<typename scalar_t>() {
    const auto read = [](const void* pointer) { return static_cast<const scalar_t*>(pointer); };
    const auto written = [](void* pointer) { return static_cast<scalar_t*>(pointer); };
    const Factors<scalar_t> factors{{read(old_h), read(input)}, read(weights)};
    const NextState<scalar_t> next{read(bias), read(old_cell), written(new_h), written(new_cell), written(gates)};
    if constexpr (sizeof(scalar_t) == 2) launch_halves(FewRows(sizes), factors, next, stream);
    if constexpr (sizeof(scalar_t) == 4) launch_few_rows_of_floats(FewRows(sizes), factors, next, stream);
  });
}

#endif

}  // namespace OPERATOR_NAMESPACE
