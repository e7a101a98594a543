// Launchers of the LayerNorm kernels, declared without PyTorch and CUDA: layer_norm.cu defines them, layer_norm.cpp
// calls them.
//
// Matrices are contiguous, of (rows, columns) and of `dtype`; weight and bias, of (columns,), may be null. mean and
// rstd are (rows,), in float for half types and in `dtype` otherwise. Nothing is empty. `stream` is a cudaStream_t.
#pragma once

#include <torch/headeronly/core/ScalarType.h>

#include <cstdint>

namespace OPERATOR_NAMESPACE {

void launch_layer_norm_forward(torch::headeronly::ScalarType dtype, int64_t rows, int64_t columns, const void* input,
                               const void* weight, const void* bias, double eps, void* output, void* mean, void* rstd,
                               void* stream);

void launch_layer_norm_backward(torch::headeronly::ScalarType dtype, int64_t rows, int64_t columns,
                                const void* grad_output, const void* input, const void* mean, const void* rstd,
                                const void* weight, void* d_input, void* stream);

/// d_weight and d_bias are (parts, columns), in the dtype of mean.
void launch_layer_norm_columns(torch::headeronly::ScalarType dtype, int64_t rows, int64_t columns, int64_t parts,
                               const void* grad_output, const void* input, const void* mean, const void* rstd,
                               void* d_weight, void* d_bias, void* stream);

}  // namespace OPERATOR_NAMESPACE
