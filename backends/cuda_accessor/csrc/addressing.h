// Matrices with strides, read and written through PyTorch's packed accessors: `matrix[row][column]` for any layout,
// transposed, sliced or expanded (stride 0). Nothing has to be copied first.
#pragma once

#include <algorithm>  // TensorAccessor.h uses std::copy without it
#include <array>
#include <cstdint>

#include <torch/headeronly/core/TensorAccessor.h>

namespace OPERATOR_NAMESPACE {

/// A matrix without its dtype, which is passed separately. `data_t` is void, or const void for an input.
template <typename data_t>
struct Matrix {
  data_t* data;
  std::array<int64_t, 2> sizes, strides;

  /// Offset of the last element. Strides are not negative, so no index into a matrix that is not empty exceeds it.
  int64_t largest_offset() const { return (sizes[0] - 1) * strides[0] + (sizes[1] - 1) * strides[1]; }
};

/// The largest of the number of elements and the offsets into any of the matrices.
template <typename... Matrices>
int64_t largest_index(int64_t elements, const Matrices&... matrices) {
  return std::max({elements, matrices.largest_offset()...});
}

template <typename scalar_t, typename index_t>
using Accessor =
    torch::headeronly::HeaderOnlyGenericPackedTensorAccessor<scalar_t, 2, torch::headeronly::DefaultPtrTraits, index_t>;

/// `scalar_t` is const for an input.
template <typename scalar_t, typename index_t, typename data_t>
Accessor<scalar_t, index_t> accessor(const Matrix<data_t>& matrix) {
  return {static_cast<scalar_t*>(matrix.data), matrix.sizes.data(), matrix.strides.data()};
}

}  // namespace OPERATOR_NAMESPACE
