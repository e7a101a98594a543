// The forward of LLTM in one kernel, for half types and few rows: its product on tensor cores, where PyTorch's would
// want [old_h, input] in one piece, and would store the gates before they are read again.
//
// A block has kTileColumns elements of the state in all three gates, and `tiles` times kTileRows rows of the batch. Its
// warps share out the terms of the products, kTerms at a time, and their sums are added up in shared memory, in the
// order of the warps. Each lane copies what it multiplies to a place of its own in shared memory, for `ahead` rounds
// before it waits for the first: the kernel waits for memory and for little else.
//
// A lane copies kPiece neighbouring terms at once. The instruction wants other terms of it (tensor_cores.h), but a sum
// of products is the same if both factors have their terms in another order.
//
// Not on AMD GPUs: tensor_cores.h has no instruction of theirs.
#include "lltm.h"

#include "launch.h"

#ifndef __HIPCC__
#include <cstring>

#include "copies.h"
#include "functions.h"
#include "tensor_cores.h"
#include "together.h"
#include "vectors.h"
#endif

namespace OPERATOR_NAMESPACE {

#ifdef __HIPCC__

bool has_few_rows(ScalarType, const LltmSizes&, std::initializer_list<const void*>) { return false; }

void launch_few_rows_forward(ScalarType, const LltmSizes&, const void*, const void*, const void*, const void*,
                             const void*, void*, void*, void*, void*) {
  STD_TORCH_CHECK(false, "launch_few_rows_forward: AMD GPUs have none; call has_few_rows first");
}

#else

constexpr int kWarps = static_cast<int>(kBlockSize) / kLanes, kGates = 3;
/// Terms that a lane loads at once, 16 bytes of them; and a warp, whose lanes 4g to 4g + 3 have those of row g.
constexpr int kPiece = kVectorBytes / 2, kTerms = 4 * kPiece;
/// Rows of a block, at most, in tiles.
constexpr int kMostTiles = 4;
/// Rounds that are on their way: as many as fit the 227 KiB of a block on Hopper, or the 99 KiB on Ada.
constexpr int kAhead = 5, kAheadOfLittle = 2;

/// Sizes for which `has_few_rows` is true fit an int, and so do all offsets.
struct FewRows {
  int batch, input_features, state_size;

  __host__ __device__ int columns() const { return state_size + input_features; }
};

/// A piece, as registers of two terms each.
struct alignas(kVectorBytes) Piece {
  uint32_t pair[kPiece / 2];
};

/// What a lane copies in a round: pieces of a row of the weights for each gate, and of two rows of each tile.
template <int tiles>
constexpr int kPieces = kGates + 2 * tiles;

/// The shared memory of a block: first what is on its way to each thread, then the sums of each warp.
template <int tiles, int ahead>
union FewRowsShared {
  Piece pieces[ahead][kPieces<tiles>][kBlockSize];
  float sums[kWarps][kGates][tiles * kTileRows][kTileColumns];
};

/// What is multiplied: [old_h, input] by the weights.
template <typename scalar_t>
struct Factors {
  const scalar_t *old_h, *input, *weights;
};

template <typename scalar_t, int tiles, int ahead>
__global__ void __launch_bounds__(kBlockSize)
    few_rows_forward_kernel(FewRows sizes, Factors<scalar_t> factors, const scalar_t* __restrict__ bias,
                            const scalar_t* __restrict__ old_cell, scalar_t* __restrict__ new_h,
                            scalar_t* __restrict__ new_cell, scalar_t* __restrict__ gates) {
  auto& shared = *memory_of_block<FewRowsShared<tiles, ahead>>();
  const int thread = static_cast<int>(threadIdx.x), lane = thread % kLanes, warp = thread / kLanes;
  const int g = lane / 4, t = lane % 4, columns = sizes.columns(), state_size = sizes.state_size;
  const int first_state = static_cast<int>(blockIdx.x) * kTileColumns;
  const int first_row = static_cast<int>(blockIdx.y) * tiles * kTileRows;
  // The terms of a warp's round, and those of this lane; it has some of the weights of one state.
  const auto first_of = [&](int round) { return (warp + round * kWarps) * kTerms; };
  const scalar_t* const own_weights = factors.weights + (first_state + g) * columns;
  const auto begin_round = [&](int round, int place) {
    const int column = first_of(round) + t * kPiece;
    if (column < columns) {
      Piece(&to)[kPieces<tiles>][kBlockSize] = shared.pieces[place];
      for (int gate = 0; gate < kGates; ++gate) {
        begin_copy(&to[gate][thread], own_weights + gate * state_size * columns + column);
      }
      const bool is_h = column < state_size;
      const scalar_t* const from = is_h ? factors.old_h + column : factors.input + (column - state_size);
      const int row_size = is_h ? state_size : sizes.input_features;
#pragma unroll
      for (int half = 0; half < 2 * tiles; ++half) {
        // A row beyond the end is replaced by the last one, and its result is not used.
        const int wanted = first_row + half * kTileRows / 2 + g;
        begin_copy(&to[kGates + half][thread], from + (wanted < sizes.batch ? wanted : sizes.batch - 1) * row_size);
      }
    }
    end_group();
  };
#pragma unroll 1  // its instructions come from memory too
  for (int round = 0; round < ahead; ++round) begin_round(round, round);
  // What the end needs arrives meanwhile.
  const int unit = thread % kTileColumns, state = first_state + unit;
  constexpr int kRowsAtOnce = static_cast<int>(kBlockSize) / kTileColumns;
  begin_caching(bias + thread % kGates * state_size + state);
  for (int own = thread / kTileColumns; own < tiles * kTileRows; own += kRowsAtOnce) {
    if (first_row + own < sizes.batch) begin_caching(old_cell + (first_row + own) * state_size + state);
  }

  float sums[kGates][tiles][4] = {};
#pragma unroll 1
  for (int round = 0, place = 0; first_of(round) < columns; ++round, place = place + 1 < ahead ? place + 1 : 0) {
    wait_for_groups<ahead - 1>();
    const bool is_there = first_of(round) + t * kPiece < columns;  // where it is not, zeros are multiplied
    const auto piece = [&](int which) { return is_there ? shared.pieces[place][which][thread] : Piece{}; };
    Piece of_gate[kGates];
    for (int gate = 0; gate < kGates; ++gate) of_gate[gate] = piece(gate);
#pragma unroll
    for (int tile = 0; tile < tiles; ++tile) {
      const Piece upper = piece(kGates + 2 * tile), lower = piece(kGates + 2 * tile + 1);
#pragma unroll
      for (int pair = 0; pair < kPiece / 2; pair += 2) {
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
  for (int own = thread / kTileColumns; own < tiles * kTileRows; own += kRowsAtOnce) {
    const int row = first_row + own;
    if (row >= sizes.batch) continue;
    float total[kGates];
    for (int gate = 0; gate < kGates; ++gate) {
      total[gate] = bias[gate * state_size + state];
      for (int other = 0; other < kWarps; ++other) total[gate] += shared.sums[other][gate][own][unit];
      if (gates != nullptr) gates[(row * kGates + gate) * state_size + state] = total[gate];
    }
    const auto next =
        cell_forward<float, functions_of<scalar_t>>(total[0], total[1], total[2], old_cell[row * state_size + state]);
    new_h[row * state_size + state] = next.new_h;
    new_cell[row * state_size + state] = next.new_cell;
  }
}

static FewRows few(const LltmSizes& sizes) {
  return {static_cast<int>(sizes.batch), static_cast<int>(sizes.input_features), static_cast<int>(sizes.state_size)};
}

/// Weights of the largest state and features of which the kernel is faster than the products, in elements.
constexpr int64_t kMostWeights = int64_t{5} << 20;

bool has_few_rows(ScalarType dtype, const LltmSizes& sizes, std::initializer_list<const void*> pointers) {
  if (dtype != ScalarType::Half && dtype != ScalarType::BFloat16) return false;
  if (sizes.batch > kMostTiles * kTileRows || sizes.state_size > kMostWeights || sizes.input_features > kMostWeights)
    return false;
  const int64_t columns = sizes.state_size + sizes.input_features;
  if (kGates * sizes.state_size * columns > kMostWeights || !has_tensor_cores()) return false;
  bool is_of_pieces = sizes.state_size % kPiece == 0 && sizes.input_features % kPiece == 0;
  for (const void* pointer : pointers) {
    is_of_pieces = is_of_pieces && reinterpret_cast<std::uintptr_t>(pointer) % kVectorBytes == 0;
  }
  return is_of_pieces;
}

void launch_few_rows_forward(ScalarType dtype, const LltmSizes& sizes, const void* input, const void* weights,
                             const void* bias, const void* old_h, const void* old_cell, void* new_h, void* new_cell,
                             void* gates, void* stream) {
  const FewRows own = few(sizes);
  for_dtype(dtype, [&]<typename scalar_t>() {
    if constexpr (sizeof(scalar_t) == 2) {
      const auto launch_as = [&]<int tiles, int ahead>() {
        const Factors<scalar_t> factors{static_cast<const scalar_t*>(old_h), static_cast<const scalar_t*>(input),
                                        static_cast<const scalar_t*>(weights)};
        const auto groups = static_cast<unsigned>((own.batch + tiles * kTileRows - 1) / (tiles * kTileRows));
        launch_with_memory("few_rows_forward_kernel", few_rows_forward_kernel<scalar_t, tiles, ahead>,
                           {static_cast<unsigned>(own.state_size / kTileColumns), groups}, {kBlockSize},
                           static_cast<int64_t>(sizeof(FewRowsShared<tiles, ahead>)), stream, own, factors,
                           static_cast<const scalar_t*>(bias), static_cast<const scalar_t*>(old_cell),
                           static_cast<scalar_t*>(new_h), static_cast<scalar_t*>(new_cell),
                           static_cast<scalar_t*>(gates));
      };
      const auto launch_tiles = [&]<int tiles>() {
        if (most_memory_of_block() >= static_cast<int64_t>(sizeof(FewRowsShared<tiles, kAhead>))) {
          launch_as.template operator()<tiles, kAhead>();
        } else {
          launch_as.template operator()<tiles, kAheadOfLittle>();
        }
      };
      if (own.batch <= kTileRows) return launch_tiles.template operator()<1>();
      if (own.batch <= 2 * kTileRows) return launch_tiles.template operator()<2>();
      launch_tiles.template operator()<kMostTiles>();
    }
  });
}

#endif

}  // namespace OPERATOR_NAMESPACE
