// Vectors in the dtype of the arithmetic, for the kernels of LayerNorm.
#pragma once

#include <torch/headeronly/util/BFloat16.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "runtime.h"
#include "vectors.h"

namespace OPERATOR_NAMESPACE {

/// The elements of a vector in the dtype of the arithmetic. A bfloat16 is the upper half of a float: two of them are
/// taken from one word by shifts, since the conversion of a single one costs several instructions.
template <typename real, typename scalar_t, int width>
__device__ Vector<real, width> widened(const Vector<scalar_t, width>& vector) {
  Vector<real, width> result;
  if constexpr (std::is_same_v<scalar_t, c10::BFloat16> && width % 2 == 0) {
    std::uint32_t words[width / 2];
    std::memcpy(words, &vector, sizeof(words));
#pragma unroll
    for (int k = 0; k < width / 2; ++k) {
      const std::uint32_t halves[2] = {words[k] << 16, words[k] & 0xffff0000u};
      std::memcpy(&result.lane[2 * k], halves, sizeof(halves));
    }
  } else {
    for (int lane = 0; lane < width; ++lane) result.lane[lane] = vector.lane[lane];
  }
  return result;
}

/// The vector at `from + column`. `from` may be null unless `is_there`: each element is `otherwise` then.
template <int width, bool is_there = false, typename scalar_t, typename index_t>
__device__ Vector<scalar_t, width> vector_or(const scalar_t* from, index_t column, float otherwise) {
  if (is_there || from != nullptr) return load<width>(from + column);
  Vector<scalar_t, width> result;
  for (int lane = 0; lane < width; ++lane) result.lane[lane] = static_cast<scalar_t>(otherwise);
  return result;
}

/// The vector at `from + column`, widened. `from` may be null unless `is_there`: each element is `otherwise` then.
template <int width, bool is_there = false, typename real, typename scalar_t, typename index_t>
__device__ Vector<real, width> load_or(const scalar_t* from, index_t column, real otherwise) {
  Vector<real, width> result;
  if (is_there || from != nullptr) {
    result = widened<real>(load<width>(from + column));
  } else {
    for (int lane = 0; lane < width; ++lane) result.lane[lane] = otherwise;
  }
  return result;
}

}  // namespace OPERATOR_NAMESPACE
