// Products of few rows with a matrix that fits a processor's cache: each is a sum over rows that are read where they
// lie.
//
//   out[m, n] = start[m, n] + sum over k of a[m, k] b[k, n]        a by any strides; rows of the others are dense
//
// A library packs its operands first, which for few rows takes as long as the product. Here a tile of `out` stays in
// registers, and each step adds to it a row of b times a column of a. Every element is one sum over k in its order,
// wherever it is in a tile.
//
// For processors with AVX-512 or AVX2. A compiler splits vectors that are wider than the processor's by way of memory,
// which takes thirty times as long, so each has tiles of its own. On all others `is_small` is false.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>

#include "vector_math.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define HAS_TILES true
#define FOR_AVX512 __attribute__((target("arch=x86-64-v4")))
#define FOR_AVX2 __attribute__((target("arch=x86-64-v3")))
#else
#define HAS_TILES false
#define FOR_AVX512
#define FOR_AVX2
#endif

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

/// Rows of a tile, and bytes of a vector: a row of a tile is two vectors. Its sums take half of the registers.
struct TileShape {
  int64_t rows, bytes;
};
constexpr TileShape kOfAvx512 = {8, 64}, kOfAvx2 = {4, 32}, kNone = {0, 0};

inline TileShape shape_of_tiles() {
#if HAS_TILES
  static const TileShape found = __builtin_cpu_supports("x86-64-v4")   ? kOfAvx512
                                 : __builtin_cpu_supports("x86-64-v3") ? kOfAvx2
                                                                       : kNone;
  return found;
#else
  return kNone;
#endif
}

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

/// `rows` rows, up to two vectors of `bytes` wide: the widest vectors first, then what is left.
template <typename real, int rows, int bytes>
INLINED void tile_of_rows(const SmallProduct<real>& of, int64_t m, int64_t n, int64_t end) {
  constexpr int64_t kWidth = bytes / sizeof(real);
  if (n + 2 * kWidth <= end) return tile<real, rows, bytes, 2>(of, m, n);
  for (; n + kWidth <= end; n += kWidth) tile<real, rows, bytes, 1>(of, m, n);
  if constexpr (bytes / 2 > sizeof(real)) {
    tile_of_rows<real, rows, bytes / 2>(of, m, n, end);
  } else {
    for (; n < end; ++n) tile<real, rows, sizeof(real), 1>(of, m, n);
  }
}

/// Tiles `begin` to `end`, counted down the columns of tiles: those of a column read the same rows of b.
template <typename real, int rows, int bytes>
INLINED void tiles(const SmallProduct<real>& of, int64_t begin, int64_t end) {
  const int64_t down = (of.rows + rows - 1) / rows, across = 2 * bytes / sizeof(real);
  for (int64_t t = begin; t < end; ++t) {
    int64_t m = t % down * rows;
    const int64_t n = t / down * across, last = std::min(m + rows, of.rows), right = std::min(n + across, of.columns);
    for (; m + rows <= last; m += rows) tile_of_rows<real, rows, bytes>(of, m, n, right);
    for (; m + 4 <= last; m += 4) tile_of_rows<real, 4, bytes>(of, m, n, right);
    for (; m + 2 <= last; m += 2) tile_of_rows<real, 2, bytes>(of, m, n, right);
    if (m < last) tile_of_rows<real, 1, bytes>(of, m, n, right);
  }
}

#define DEFINE_TILES(real)                                                                    \
  FOR_AVX512 void tiles_of_avx512(const SmallProduct<real>& of, int64_t begin, int64_t end) { \
    tiles<real, kOfAvx512.rows, kOfAvx512.bytes>(of, begin, end);                             \
  }                                                                                           \
  FOR_AVX2 void tiles_of_avx2(const SmallProduct<real>& of, int64_t begin, int64_t end) {     \
    tiles<real, kOfAvx2.rows, kOfAvx2.bytes>(of, begin, end);                                 \
  }

DEFINE_TILES(float)
DEFINE_TILES(double)

#undef DEFINE_TILES

/// Multiplications below which a second thread costs more time than it saves.
constexpr int64_t kOfThread = int64_t{1} << 19;

template <typename real>
void multiply(const SmallProduct<real>& of) {
  const TileShape shape = shape_of_tiles();
  const int64_t width = 2 * shape.bytes / static_cast<int64_t>(sizeof(real));
  const int64_t down = (of.rows + shape.rows - 1) / shape.rows, across = (of.columns + width - 1) / width;
  const int64_t of_tile = std::max<int64_t>(1, shape.rows * width * of.terms);
  at::parallel_for(0, down * across, std::max<int64_t>(1, kOfThread / of_tile), [&](int64_t begin, int64_t end) {
    shape.rows == kOfAvx512.rows ? tiles_of_avx512(of, begin, end) : tiles_of_avx2(of, begin, end);
  });
}

/// Whether products of `rows` rows with `matrix` are faster here: few rows, and a matrix that stays in a cache.
inline bool is_small(int64_t rows, const at::Tensor& matrix) {
  constexpr int64_t kRows = 128, kBytes = int64_t{1} << 22;
  return shape_of_tiles().rows > 0 && rows <= kRows &&
         (matrix.scalar_type() == at::kFloat || matrix.scalar_type() == at::kDouble) && matrix.stride(1) == 1 &&
         static_cast<int64_t>(matrix.nbytes()) <= kBytes;
}

}  // namespace

}  // namespace OPERATOR_NAMESPACE
