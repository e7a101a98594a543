// Products of a warp on tensor cores, and their emulation: 16 rows by 16 terms by 8 columns, of half types, in float.
//
// The parts of the matrices that a lane has are those of mma.sync.m16n8k16 in NVIDIA's PTX ISA. With g = lane / 4 and
// t = lane % 4, each register has two neighbours, the first in its lower half:
//
//   rows, 16x16      [0]: row g, terms 2t and 2t+1    [1]: the same of row g+8    [2], [3]: as [0], [1], terms 8 higher
//   columns, 16x8    [0]: column g, terms 2t and 2t+1    [1]: terms 8 higher
//   sums, 16x8       [0], [1]: row g, columns 2t and 2t+1    [2], [3]: the same of row g+8
#pragma once

#include <torch/headeronly/util/BFloat16.h>
#include <torch/headeronly/util/Half.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "runtime.h"

namespace OPERATOR_NAMESPACE {

constexpr int kTileRows = 16, kTileTerms = 16, kTileColumns = 8;

/// Two neighbours of a half type in a register.
template <typename scalar_t>
__host__ __device__ uint32_t packed(scalar_t first, scalar_t second) {
  static_assert(sizeof(scalar_t) == 2);
  return static_cast<uint32_t>(first.x) | static_cast<uint32_t>(second.x) << 16;
}

#ifdef CUDA_EMULATED

template <typename scalar_t>
float unpacked(uint32_t pair, int which) {
  scalar_t value;
  value.x = static_cast<decltype(value.x)>(pair >> (16 * which));
  return static_cast<float>(value);
}

/// sums += rows * columns. All lanes of the warp take part.
template <typename scalar_t>
void multiply_tiles(float (&sums)[4], const uint32_t (&rows)[4], const uint32_t (&columns)[2]) {
  struct Operands {
    const uint32_t *rows, *columns;
  };
  const Operands own{rows, columns};
  emulation::Fibres& fibres = emulation::fibres();
  // Each lane brings the address of what it has, and goes on when all have read it.
  fibres.exchange("mma.sync", 0xffffffffu, &own, fibres.lane());
  const int g = static_cast<int>(fibres.lane()) / 4, t = static_cast<int>(fibres.lane()) % 4;
  for (int which = 0; which < 4; ++which) {
    const int row = g + which / 2 * 8, column = 2 * t + which % 2;
    for (int term = 0; term < kTileTerms; ++term) {
      const auto lane_with = [&](int major) { return static_cast<unsigned>(major % 8 * 4 + term % 8 / 2); };
      const auto* of_row = fibres.brought_by<const Operands*>(lane_with(row));
      const auto* of_column = fibres.brought_by<const Operands*>(lane_with(column));
      sums[which] += unpacked<scalar_t>(of_row->rows[row / 8 + term / 8 * 2], term % 2) *
                     unpacked<scalar_t>(of_column->columns[term / 8], term % 2);
    }
  }
  __syncwarp();
}

#else

/// sums += rows * columns. All lanes of the warp take part.
template <typename scalar_t>
__device__ void multiply_tiles(float (&sums)[4], const uint32_t (&rows)[4], const uint32_t (&columns)[2]) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  if constexpr (std::is_same_v<scalar_t, c10::BFloat16>) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(rows[0]), "r"(rows[1]), "r"(rows[2]), "r"(rows[3]), "r"(columns[0]), "r"(columns[1]));
  } else {
    static_assert(std::is_same_v<scalar_t, c10::Half>);
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(rows[0]), "r"(rows[1]), "r"(rows[2]), "r"(rows[3]), "r"(columns[0]), "r"(columns[1]));
  }
#else
  __trap();  // the host launches no kernel that comes here on a GPU without these instructions
#endif
}

#endif

}  // namespace OPERATOR_NAMESPACE
