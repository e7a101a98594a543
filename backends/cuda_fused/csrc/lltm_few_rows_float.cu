// The forward of LLTM in one kernel, for float and few rows (lltm_few_rows.h).
//
// A warp multiplies kTerms terms of all rows by those of all columns of its block in a round. It copies them to a place
// of its own in shared memory, and `ahead` rounds are on their way before it waits for the first. So only the lanes of
// a warp wait for each other. A lane has the products of a few rows and kColumnsOfLane columns: each number that it
// reads is used several times.
//
// Not on AMD GPUs, as all kernels for few rows.
#ifndef __HIPCC__
#include "lltm_few_rows.h"

#include "copies.h"
#include "multiprocessors.h"

namespace OPERATOR_NAMESPACE {

/// Terms that are copied at once; pieces of a row, and terms of it, in a round.
constexpr int kPiece = kCopyBytes / static_cast<int>(sizeof(float)), kPieces = 4, kTerms = kPiece * kPieces;
/// The columns of a block: of each gate, kStates rows of the weights.
constexpr int kColumns = kGates * kStates;
/// How the lanes of a warp share out rows and columns: lane r * kColumnLanes + c has every kRowLanes-th row from r on,
/// and every kColumnLanes-th column from c on.
constexpr int kRowLanes = 8, kColumnLanes = kLanes / kRowLanes, kColumnsOfLane = kColumns / kColumnLanes;

using FloatPiece = Vector<float, kPiece>;

/// Rows of [old_h, input], or of the weights, of a round. Pieces of a row are exchanged so that neighbouring rows have
/// the same piece in different banks: all lanes read at once.
template <int rows>
struct RowsOfRound {
  FloatPiece pieces[rows][kPieces];

  __device__ FloatPiece& at(int row, int piece) { return pieces[row][piece ^ (row / 2 % kPieces)]; }
};

template <int rows>
struct FloatRound {
  RowsOfRound<rows> left;
  RowsOfRound<kColumns> right;
};

/// The shared memory of a block: first what is on its way to each warp, then the sums of each warp.
template <int rows, int ahead>
union FloatShared {
  FloatRound<rows> rounds[kWarps][ahead];
  WarpSums<rows> sums;
};

template <int rows, int ahead>
__global__ void __launch_bounds__(kBlockSize)
    few_rows_of_floats_kernel(FewRows sizes, Factors<float> factors, NextState<float> next) {
  begin_after_previous();
  auto& shared = *memory_of_block<FloatShared<rows, ahead>>();
  const int thread = static_cast<int>(threadIdx.x), lane = thread % kLanes, warp = thread / kLanes;
  const int columns = sizes.columns(), first_state = sizes.first_state();
  const int first_row = sizes.row_group() * rows;
  const int row_lane = lane / kColumnLanes, column_lane = lane % kColumnLanes;
  // A lane copies one piece of every kRowsOfCopy-th row.
  constexpr int kRowsOfCopy = kLanes / kPieces;
  const int copied_row = lane / kPieces, copied_piece = lane % kPieces;
  const auto first_of = [&](int round) { return (warp + round * kWarps) * kTerms; };
  const auto begin_round = [&](int round, int place) {
    const int wanted = first_of(round) + copied_piece * kPiece;
    const bool is_there = wanted < columns;  // where it is not, zeros are multiplied
    const int column = is_there ? wanted : 0;
    FloatRound<rows>& to = shared.rounds[warp][place];
#pragma unroll
    for (int row = copied_row; row < rows; row += kRowsOfCopy) {
      // A row beyond the end is zeros, and its result is not used.
      const bool is_row = first_row + row < sizes.batch;
      begin_copy_or_zeros(&to.left.at(row, copied_piece), factors.element(sizes, is_row ? first_row + row : 0, column),
                          is_there && is_row);
    }
#pragma unroll
    for (int own = copied_row; own < kColumns; own += kRowsOfCopy) {
      const int gate = own / kStates, state = first_state + own % kStates;
      begin_copy_or_zeros(&to.right.at(own, copied_piece),
                          factors.weights + (gate * sizes.state_size + state) * columns + column, is_there);
    }
  };
#pragma unroll 1
  for (int round = 0; round < ahead; ++round) {
    if (first_of(round) < columns) begin_round(round, round);
    end_group();
  }
  begin_caching<rows>(sizes, next);

  constexpr int kRowsOfLane = rows / kRowLanes;
  float sums[kRowsOfLane][kColumnsOfLane] = {};
#pragma unroll 1
  for (int round = 0, place = 0; first_of(round) < columns; ++round, place = place + 1 < ahead ? place + 1 : 0) {
    wait_for_groups<ahead - 1>();
    __syncwarp();  // the copies of all lanes are there
    FloatRound<rows>& own = shared.rounds[warp][place];
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece) {
      FloatPiece left[kRowsOfLane], right[kColumnsOfLane];
      for (int r = 0; r < kRowsOfLane; ++r) left[r] = own.left.at(r * kRowLanes + row_lane, piece);
      for (int c = 0; c < kColumnsOfLane; ++c) right[c] = own.right.at(c * kColumnLanes + column_lane, piece);
      for (int term = 0; term < kPiece; ++term) {
        for (int r = 0; r < kRowsOfLane; ++r) {
          for (int c = 0; c < kColumnsOfLane; ++c) sums[r][c] += left[r].lane[term] * right[c].lane[term];
        }
      }
    }
    __syncwarp();  // all lanes have read what the next round overwrites
    if (first_of(round + ahead) < columns) begin_round(round + ahead, place);
    end_group();
  }
  wait_for_groups<0>();
  __syncthreads();  // nobody's pieces are needed any more
  for (int r = 0; r < kRowsOfLane; ++r) {
    for (int c = 0; c < kColumnsOfLane; ++c) {
      const int own = c * kColumnLanes + column_lane;
      shared.sums[warp][own / kStates][r * kRowLanes + row_lane][own % kStates] = sums[r][c];
    }
  }
  __syncthreads();
  write_next_state<rows>(sizes, shared.sums, next);
}

/// Calls `body.operator()<rows>()` with the rows of a block: all, or fewer where there are multiprocessors for more
/// blocks. Each of them reads the weights of its states.
template <typename Body>
static void for_rows_of_block(int64_t batch, int64_t state_size, Body body) {
  const auto has_room = [&](int64_t rows) {
    return batch <= rows || state_size / kStates * ((batch + rows - 1) / rows) <= multiprocessors();
  };
  if (has_room(16)) return body.template operator()<16>();
  if (has_room(32)) return body.template operator()<32>();
  body.template operator()<kMostRows>();
}

bool has_memory_for_floats(const LltmSizes& sizes) {
  bool result = false;
  for_rows_of_block(sizes.batch, sizes.state_size, [&]<int rows>() {
    result = most_memory_of_block() >= static_cast<int64_t>(sizeof(FloatShared<rows, kAheadOfLittle>));
  });
  return result;
}

void launch_few_rows_of_floats(const FewRows& sizes, const Factors<float>& factors, const NextState<float>& next,
                               void* stream) {
  for_rows_of_block(sizes.batch, sizes.state_size, [&]<int rows>() {
    const auto launch_as = [&]<int ahead>() {
      launch_early_with_memory("few_rows_of_floats_kernel", few_rows_of_floats_kernel<rows, ahead>,
                               {static_cast<unsigned>(sizes.state_groups() * ((sizes.batch + rows - 1) / rows))},
                               {kBlockSize}, static_cast<int64_t>(sizeof(FloatShared<rows, ahead>)), stream, sizes,
                               factors, next);
    };
    if (most_memory_of_block() >= static_cast<int64_t>(sizeof(FloatShared<rows, kAhead>))) {
      launch_as.template operator()<kAhead>();
    } else {
      launch_as.template operator()<kAheadOfLittle>();
    }
  });
}

}  // namespace OPERATOR_NAMESPACE
#endif
