// The gradient of LLTM's weights in one kernel, for few rows: d_gates^T [old_h, input]. Half types, on tensor cores;
// lltm_few_rows_weights_float.cu has float.
//
// With few rows its time is that of writing the result. A library's product wants [old_h, input] in one piece, which
// takes a kernel more, and memory while the result is there. Here a block copies its columns of all rows to shared
// memory, and each warp has kOwnUnits rows of the result by kOwnColumns columns of it.
//
// A lane has neighbours of a row, where the instruction wants neighbours of a column (tensor_cores.h): halves of two
// registers are exchanged. Which unit or column of the result is which of a tile is chosen so that a lane writes
// kHalves neighbours at once, and four lanes a whole sector of memory or more.
//
// Not on AMD GPUs: tensor_cores.h has no instruction of theirs.
#include <limits>

#include "launch.h"
#include "lltm_few_rows.h"

#ifndef __HIPCC__
#include "copies.h"
#include "tensor_cores.h"
#include "together.h"
#endif

namespace OPERATOR_NAMESPACE {

#ifdef __HIPCC__

bool has_few_rows_gradient(ScalarType, const LltmSizes&, std::initializer_list<const void*>) { return false; }

void launch_few_rows_gradient(ScalarType, const LltmSizes&, const void*, const void*, const void*, void*, void*) {
  STD_TORCH_CHECK(false, "launch_few_rows_gradient: AMD GPUs have none; call has_few_rows_gradient first");
}

#else

/// The part of the result that a warp has, and that a block has. Its warps stand in two columns.
constexpr int kOwnUnits = 32, kOwnColumns = 64, kWarpsAcross = 2;
constexpr int kUnits = kOwnUnits * static_cast<int>(kBlockSize) / kLanes / kWarpsAcross;
constexpr int kColumns = kOwnColumns * kWarpsAcross;
static_assert(kUnits == kColumns);
/// Tiles of a warp, down and across.
constexpr int kUnitTiles = kOwnUnits / kTileRows, kColumnTiles = kOwnColumns / kTileColumns;

/// Some columns of all rows. The padding lets the lanes that read four rows do so from different banks.
template <typename scalar_t>
struct alignas(kVectorBytes) ColumnsOfRows {
  scalar_t values[kMostGradientRows][kColumns + kHalves];
};

/// The first, or the second, neighbours of two rows in one register.
__device__ inline uint32_t firsts(uint32_t upper, uint32_t lower) { return (upper & 0xffffu) | lower << 16; }
__device__ inline uint32_t seconds(uint32_t upper, uint32_t lower) { return upper >> 16 | (lower & 0xffff0000u); }

/// Neighbours of a row, two in each register.
template <int pairs>
struct alignas(4 * pairs) Neighbours {
  uint32_t pair[pairs];
};

template <typename scalar_t>
__global__ void __launch_bounds__(kBlockSize)
    few_rows_gradient_kernel(FewRows sizes, const scalar_t* d_gates, JoinedRows<scalar_t> joined, scalar_t* d_weights) {
  begin_after_previous();
  __shared__ ColumnsOfRows<scalar_t> of_gates, of_inputs;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % kLanes, warp = thread / kLanes;
  const int units = kGates * sizes.state_size, columns = sizes.columns();
  const int across = (columns + kColumns - 1) / kColumns;
  const int first_unit = static_cast<int>(blockIdx.x) / across * kUnits;
  const int first_column = static_cast<int>(blockIdx.x) % across * kColumns;
  const int steps = (sizes.batch + kTileTerms - 1) / kTileTerms;

  // What is not there is zeros; a row of zeros adds nothing, and other zeros are not written.
  constexpr int kVectorsOfRow = kColumns / kHalves;
  for (int item = thread; item < steps * kTileTerms * kVectorsOfRow; item += static_cast<int>(kBlockSize)) {
    const int row = item / kVectorsOfRow, own = item % kVectorsOfRow * kHalves;
    const int unit = first_unit + own, column = first_column + own;
    const bool is_row = row < sizes.batch, is_unit = is_row && unit < units, is_column = is_row && column < columns;
    begin_copy_or_zeros(&of_gates.values[row][own], d_gates + (is_unit ? row * units + unit : 0), is_unit);
    begin_copy_or_zeros(&of_inputs.values[row][own], joined.element(sizes, is_column ? row : 0, is_column ? column : 0),
                        is_column);
  }
  end_group();
  wait_for_groups<0>();
  __syncthreads();

  const int g = lane / 4, t = lane % 4;
  constexpr int kLaneUnits = kOwnUnits / kTileColumns;
  const int own_unit = warp / kWarpsAcross * kOwnUnits + g * kLaneUnits;
  // Columns 2t and 2t+1 of a tile are kHalves neighbours each in the first, and the second, half of those of the warp.
  const int own_column = warp % kWarpsAcross * kOwnColumns;
  const int read_column = own_column + g / 2 * kHalves + g % 2 * kOwnColumns / 2;
  float sums[kUnitTiles][kColumnTiles][4] = {};
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    Neighbours<kLaneUnits / 2> gates[4];
    Neighbours<kHalves / 2> inputs[4];
    for (int k = 0; k < 4; ++k) {
      const int row = step * kTileTerms + 4 * k + t;
      gates[k] = *reinterpret_cast<const Neighbours<kLaneUnits / 2>*>(&of_gates.values[row][own_unit]);
      inputs[k] = *reinterpret_cast<const Neighbours<kHalves / 2>*>(&of_inputs.values[row][read_column]);
    }
    uint32_t rows[kUnitTiles][4];
#pragma unroll
    for (int tile = 0; tile < kUnitTiles; ++tile) {
      for (int half = 0; half < 2; ++half) {
        const uint32_t upper = gates[2 * half].pair[tile], lower = gates[2 * half + 1].pair[tile];
        rows[tile][2 * half] = firsts(upper, lower);
        rows[tile][2 * half + 1] = seconds(upper, lower);
      }
    }
#pragma unroll
    for (int column = 0; column < kColumnTiles; ++column) {
      uint32_t of_column[2];
      for (int half = 0; half < 2; ++half) {
        const uint32_t upper = inputs[2 * half].pair[column / 2], lower = inputs[2 * half + 1].pair[column / 2];
        of_column[half] = column % 2 == 0 ? firsts(upper, lower) : seconds(upper, lower);
      }
      for (int tile = 0; tile < kUnitTiles; ++tile) multiply_tiles<scalar_t>(sums[tile][column], rows[tile], of_column);
    }
  }

#pragma unroll
  for (int own = 0; own < kLaneUnits; ++own) {
    const int unit = first_unit + own_unit + own;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int column = first_column + own_column + half * kOwnColumns / 2 + t * kHalves;
      if (unit >= units || column >= columns) continue;
      Vector<scalar_t, kHalves> piece;
      for (int k = 0; k < kHalves; ++k) piece.lane[k] = static_cast<scalar_t>(sums[own / 2][k][own % 2 * 2 + half]);
      store(d_weights + unit * columns + column, piece);
    }
  }
}

bool has_few_rows_gradient(ScalarType dtype, const LltmSizes& sizes, std::initializer_list<const void*> pointers) {
  const bool is_float = dtype == ScalarType::Float;
  if (!is_float && dtype != ScalarType::Half && dtype != ScalarType::BFloat16) return false;
  if (sizes.batch > (is_float ? kMostGradientRowsOfFloats : kMostGradientRows)) return false;
  // Offsets in the result fit an int.
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max() / 2;
  if (sizes.state_size > kMost || sizes.input_features > kMost) return false;
  if (sizes.state_size + sizes.input_features > kMost / (kGates * sizes.state_size)) return false;
  return is_of_vectors(sizes, pointers) && (is_float || has_tensor_cores());
}

template <typename scalar_t>
static void launch_halves(const FewRows& sizes, const scalar_t* d_gates, const JoinedRows<scalar_t>& joined,
                          scalar_t* d_weights, void* stream) {
  const int down = (kGates * sizes.state_size + kUnits - 1) / kUnits;
  const int across = (sizes.columns() + kColumns - 1) / kColumns;
  launch_blocks_early("few_rows_gradient_kernel", few_rows_gradient_kernel<scalar_t>,
                      {static_cast<unsigned>(down * across)}, {kBlockSize}, stream, sizes, d_gates, joined, d_weights);
}

void launch_few_rows_gradient(ScalarType dtype, const LltmSizes& sizes, const void* d_gates, const void* old_h,
                              const void* input, void* d_weights, void* stream) {
  for_dtype(dtype, [&]<typename scalar_t>() {
    const auto read = [](const void* pointer) { return static_cast<const scalar_t*>(pointer); };
    const JoinedRows<scalar_t> joined{read(old_h), read(input)};
    scalar_t* const written = static_cast<scalar_t*>(d_weights);
    if constexpr (sizeof(scalar_t) == 2) launch_halves(FewRows(sizes), read(d_gates), joined, written, stream);
    if constexpr (sizeof(scalar_t) == 4) {
      launch_few_rows_gradient_of_floats(FewRows(sizes), read(d_gates), joined, written, stream);
    }
  });
}

#endif

}  // namespace OPERATOR_NAMESPACE
