// Launchers of the LayerNorm kernels, declared without PyTorch's tensors and CUDA: layer_norm.cu defines them,
// layer_norm.cpp calls them.
//
// Matrices of `dtype`: (rows, columns), weight and bias (1, columns) or without data, all with any strides. mean and
// rstd are (1, rows), d_weight and d_bias (parts, columns), in float for half types and in `dtype` otherwise. Nothing
// is empty. `stream` is a cudaStream_t.
#pragma once

#include <torch/headeronly/core/ScalarType.h>

#include "addressing.h"

namespace OPERATOR_NAMESPACE {

void launch_layer_norm_forward(torch::headeronly::ScalarType dtype, const Matrix<const void>& input,
                               const Matrix<const void>& weight, const Matrix<const void>& bias, double eps,
                               const Matrix<void>& output, const Matrix<void>& mean, const Matrix<void>& rstd,
                               void* stream);

void launch_layer_norm_backward(torch::headeronly::ScalarType dtype, const Matrix<const void>& grad_output,
                                const Matrix<const void>& input, const Matrix<const void>& mean,
                                const Matrix<const void>& rstd, const Matrix<const void>& weight,
                                const Matrix<void>& d_input, void* stream);

void launch_layer_norm_columns(torch::headeronly::ScalarType dtype, const Matrix<const void>& grad_output,
                               const Matrix<const void>& input, const Matrix<const void>& mean,
                               const Matrix<const void>& rstd, const Matrix<void>& d_weight, const Matrix<void>& d_bias,
                               void* stream);

}  // namespace OPERATOR_NAMESPACE
