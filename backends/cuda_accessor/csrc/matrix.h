// A tensor of two dimensions as a Matrix, for the kernels.
#pragma once

#include <ATen/core/Tensor.h>

#include "addressing.h"

namespace OPERATOR_NAMESPACE {

inline Matrix<const void> input_matrix(const at::Tensor& tensor) {
  return {tensor.const_data_ptr(), {tensor.size(0), tensor.size(1)}, {tensor.stride(0), tensor.stride(1)}};
}

inline Matrix<void> output_matrix(const at::Tensor& tensor) {
  return {tensor.mutable_data_ptr(), {tensor.size(0), tensor.size(1)}, {tensor.stride(0), tensor.stride(1)}};
}

}  // namespace OPERATOR_NAMESPACE
