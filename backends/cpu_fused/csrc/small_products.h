// Products of few rows with a matrix that fits a processor's cache: each is a sum over rows that are read where they
// lie.
//
//   out[m, n] = start[m, n] + sum over k of a[m, k] b[k, n]        a by any strides; rows of the others are dense
//
// A library packs its operands first, which for few rows takes as long as the product. Here a tile of `out` stays in
// registers, and each step adds to it a row of b times a column of a. Every element is one sum over k in its order,
// wherever it is in a tile.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>

#include "cell.h"

namespace OPERATOR_NAMESPACE {

namespace {

/// One product; `start`, whose rows lie as those of `out` do, is added to it. It may be `out`, or null.
template <typename real>
struct SmallProduct {
  int64_t rows, columns, terms;
  const real* a;
  int64_t a_row, a_term;
  const real* b;
  int64_t b_row;
  const real* start;
  real* out;
  int64_t out_row;
};

/// The largest tile: rows, and bytes of a row. With AVX-512, 16 of 32 registers hold its sums.
constexpr int64_t kTileRows = 8, kTileBytes = 128;

/// `bytes` of consecutive numbers, which need not be aligned.
template <typename real, int bytes>
struct VectorOf {
  typedef real type __attribute__((vector_size(bytes), aligned(alignof(real)), may_alias));
};

/// `rows` rows of `vectors` vectors each, from (m, n) on.
template <typename real, int rows, int bytes, int vectors>
INLINED void tile(const SmallProduct<real>& of, int64_t m, int64_t n) {
  using Vector = typename VectorOf<real, bytes>::type;
  constexpr int64_t kWidth = bytes / sizeof(real);
  const real* a = of.a + m * of.a_row;
  const real* b = of.b + n;
  const int64_t place = m * of.out_row + n;
  Vector sums[rows][vectors] = {};
  for (int64_t k = 0; k < of.terms; ++k) {
    Vector row[vectors];
    for (int v = 0; v < vectors; ++v) row[v] = *reinterpret_cast<const Vector*>(b + k * of.b_row + v * kWidth);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const real factor = a[r * of.a_row + k * of.a_term];
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v) sums[r][v] += factor * row[v];
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) {
      const int64_t at = place + r * of.out_row + v * kWidth;
      if (of.start) sums[r][v] += *reinterpret_cast<const Vector*>(of.start + at);
      *reinterpret_cast<Vector*>(of.out + at) = sums[r][v];
    }
  }
}

/// `rows` rows of up to `kTileBytes` bytes: the widest vectors first, then what is left.
template <typename real, int rows>
INLINED void tile_of_rows(const SmallProduct<real>& of, int64_t m, int64_t n) {
  constexpr int64_t kBytes = sizeof(real);
  const int64_t end = std::min(n + kTileBytes / kBytes, of.columns);
  if (n + kTileBytes / kBytes <= end) return tile<real, rows, 64, 2>(of, m, n);
  for (; n + 64 / kBytes <= end; n += 64 / kBytes) tile<real, rows, 64, 1>(of, m, n);
  for (; n + 32 / kBytes <= end; n += 32 / kBytes) tile<real, rows, 32, 1>(of, m, n);
  for (; n + 16 / kBytes <= end; n += 16 / kBytes) tile<real, rows, 16, 1>(of, m, n);
  for (; n < end; ++n) tile<real, rows, sizeof(real), 1>(of, m, n);
}

/// Tiles `begin` to `end`, counted down the columns of tiles: those of a column read the same rows of b.
template <typename real>
INLINED void tiles(const SmallProduct<real>& of, int64_t begin, int64_t end) {
  const int64_t down = (of.rows + kTileRows - 1) / kTileRows;
  for (int64_t t = begin; t < end; ++t) {
    int64_t m = t % down * kTileRows;
    const int64_t n = t / down * (kTileBytes / sizeof(real)), last = std::min(m + kTileRows, of.rows);
    for (; m + 8 <= last; m += 8) tile_of_rows<real, 8>(of, m, n);
    for (; m + 4 <= last; m += 4) tile_of_rows<real, 4>(of, m, n);
    for (; m + 2 <= last; m += 2) tile_of_rows<real, 2>(of, m, n);
    for (; m < last; ++m) tile_of_rows<real, 1>(of, m, n);
  }
}

#define DEFINE_TILES(real)                                                                       \
  FOR_EACH_PROCESSOR void some_tiles(const SmallProduct<real>& of, int64_t begin, int64_t end) { \
    tiles(of, begin, end);                                                                       \
  }

DEFINE_TILES(float)
DEFINE_TILES(double)

#undef DEFINE_TILES

/// Multiplications below which a second thread costs more time than it saves.
constexpr int64_t kOfThread = int64_t{1} << 19;

template <typename real>
void multiply(const SmallProduct<real>& of) {
  const int64_t down = (of.rows + kTileRows - 1) / kTileRows;
  const int64_t across = (of.columns * int64_t{sizeof(real)} + kTileBytes - 1) / kTileBytes;
  const int64_t of_tile = std::max<int64_t>(1, kTileRows * kTileBytes / sizeof(real) * of.terms);
  at::parallel_for(0, down * across, std::max<int64_t>(1, kOfThread / of_tile),
                   [&](int64_t begin, int64_t end) { some_tiles(of, begin, end); });
}

/// Whether products of `rows` rows with `matrix` are faster here: few rows, and a matrix that stays in a cache.
inline bool is_small(int64_t rows, const at::Tensor& matrix) {
  constexpr int64_t kRows = 128, kBytes = int64_t{1} << 22;
  return rows <= kRows && (matrix.scalar_type() == at::kFloat || matrix.scalar_type() == at::kDouble) &&
         matrix.stride(1) == 1 && static_cast<int64_t>(matrix.nbytes()) <= kBytes;
}

}  // namespace

}  // namespace OPERATOR_NAMESPACE
