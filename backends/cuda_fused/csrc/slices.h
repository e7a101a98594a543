// Rows that several blocks share: a row is cut into slices, and a block has one of them. What two kernels leave each
// other in memory are numbers of each slice.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "launch.h"
#include "multiprocessors.h"
#include "row_sums.h"
#include "runtime.h"
#include "vectors.h"

namespace OPERATOR_NAMESPACE {

/// Blocks for each multiprocessor up to which a thread has one vector, and with more of them; and beyond which a slice
/// becomes longer, since each block reads the numbers of all slices of its row.
constexpr int64_t kBlocksOfOneVector = 4, kMostBlocks = 16;
/// Vectors of a thread where one would make too many blocks.
constexpr int kHeldOfSlice = 4;

/// How rows are cut: each has `count` slices, which follow one another, of `whole` elements. A block works on `chunk`
/// elements of a slice at a time. The last slice and its last chunk may be shorter.
struct Slices {
  int64_t columns, chunk, whole;
  int count;

  __host__ __device__ int64_t begin(int slice) const { return slice * whole; }

  __host__ __device__ int64_t end(int slice) const { return slice + 1 < count ? begin(slice + 1) : columns; }

  /// Where the numbers of a slice are among those of all slices of all rows.
  __device__ int64_t index(int64_t row, int slice) const { return row * count + slice; }
};

/// Slices for blocks of kBlockSize threads of `vector` elements each; `rows` blocks have the same slice.
inline Slices slices_of(int64_t rows, int64_t columns, int64_t vector) {
  const int64_t chunk = kBlockSize * vector, chunks = (columns + chunk - 1) / chunk;
  const int64_t most = std::max<int64_t>(kMostBlocks * multiprocessors() / rows, 1);
  const int64_t rounds = (chunks + most - 1) / most;
  return {columns, chunk, rounds * chunk, static_cast<int>((chunks + rounds - 1) / rounds)};
}

/// Calls `body.operator()<scalar_t, width, held>(slices)` for a matrix whose blocks have a slice of one row: the grid
/// is (slices, rows).
template <typename Body>
void for_slices(ScalarType dtype, int64_t rows, int64_t columns, std::initializer_list<const void*> pointers,
                Body body) {
  for_dtype(dtype, [&]<typename scalar_t>() {
    for_vector_width<scalar_t>(columns, pointers, [&]<int width>() {
      const int64_t blocks = rows * ((columns + kBlockSize * width - 1) / (kBlockSize * width));
      if (blocks <= kBlocksOfOneVector * multiprocessors()) {
        body.template operator()<scalar_t, width, 1>(slices_of(rows, columns, width));
      } else {
        body.template operator()<scalar_t, width, kHeldOfSlice>(slices_of(rows, columns, kHeldOfSlice * width));
      }
    });
  });
}

/// The place of vector `k` of this thread in a chunk that begins at column `begin`, and whether it lies in the row.
/// Beyond the end, the place is that of the last vector, so that no load depends on a condition.
template <int width>
struct PlaceInChunk {
  int64_t column;
  bool is_there;

  __device__ PlaceInChunk(const Slices& slices, int64_t begin, int k) {
    const int64_t wanted = begin + (k * kBlockSize + static_cast<int64_t>(threadIdx.x)) * width;
    is_there = wanted < slices.columns;
    column = is_there ? wanted : slices.columns - width;
  }
};

/// `value(0) + value(1) + ...` over all slices of a row: each lane of a warp adds up every kLanes-th, then the lanes
/// add up theirs, in the same order each time. All threads of the block call it; each warp finds the same.
template <typename real, typename Value>
__device__ real sum_over_slices(int count, Value value) {
  real sum = 0;
#pragma unroll 2
  for (int slice = static_cast<int>(threadIdx.x) % kLanes; slice < count; slice += kLanes) sum += value(slice);
  return sum_over_lanes(sum, kLanes);
}

}  // namespace OPERATOR_NAMESPACE
