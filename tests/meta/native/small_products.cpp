// cpu-fused's small products with the tiles of each processor, beside three loops: shapes that end within a tile,
// strides of a, padded rows, and a start. Prints what it tried.
#include <cmath>
#include <cstdio>
#include <vector>

#include "small_products.h"

namespace {

using namespace OPERATOR_NAMESPACE;

template <typename real>
using Tiles = void (*)(const SmallProduct<real>&, int64_t, int64_t);

/// Whether the tiles compute what three loops do, and write nothing else.
template <typename real>
bool is_right(Tiles<real> tiles, TileShape shape, int64_t M, int64_t N, int64_t K, bool transposed, bool with_start) {
  const int64_t b_row = N + 3, out_row = N + 5, a_row = transposed ? 1 : K + 2, a_term = transposed ? M + 2 : 1;
  std::vector<real> a(M * K + 2 * (M + K) + 4), b(K * b_row + 1), start(M * out_row + 1), out(M * out_row + 1, real(7));
  int64_t seed = 1;
  for (auto* all : {&a, &b, &start})
    for (real& x : *all) x = real((seed = seed * 1103515245 + 12345 & 0x7fffffff) % 17 - 8);
  const int64_t width = 2 * shape.bytes / sizeof(real);
  tiles({M, N, K, a.data(), a_row, a_term, b.data(), b_row, with_start ? start.data() : nullptr, out.data(), out_row},
        0, (M + shape.rows - 1) / shape.rows * ((N + width - 1) / width));
  for (int64_t m = 0; m < M; ++m)
    for (int64_t n = 0; n < out_row; ++n) {
      real sum = n < N ? (with_start ? start[m * out_row + n] : real(0)) : real(7);
      for (int64_t k = 0; n < N && k < K; ++k) sum += a[m * a_row + k * a_term] * b[k * b_row + n];
      if (out[m * out_row + n] != sum) {  // whole numbers: no sum is rounded
        std::printf("%ld x %ld x %ld at (%ld, %ld)\n", long(M), long(N), long(K), long(m), long(n));
        return false;
      }
    }
  return true;
}

template <typename real>
bool all_are_right(Tiles<real> tiles, TileShape shape) {
  for (const int64_t M : {1, 2, 3, 4, 7, 8, 9, 16, 19})
    for (const int64_t N : {1, 2, 3, 4, 5, 8, 15, 16, 31, 32, 33, 47, 63, 70})
      for (const int64_t K : {0, 1, 2, 33})
        for (const bool transposed : {false, true})
          for (const bool with_start : {false, true})
            if (!is_right(tiles, shape, M, N, K, transposed, with_start)) return false;
  return true;
}

}  // namespace

int main() {
  if (shape_of_tiles().rows >= kOfAvx2.rows) {
    if (!all_are_right<float>(tiles_of_avx2, kOfAvx2) || !all_are_right<double>(tiles_of_avx2, kOfAvx2)) return 1;
    std::puts("AVX2");
  }
  if (shape_of_tiles().rows >= kOfAvx512.rows) {
    if (!all_are_right<float>(tiles_of_avx512, kOfAvx512) || !all_are_right<double>(tiles_of_avx512, kOfAvx512))
      return 1;
    std::puts("AVX-512");
  }
}
