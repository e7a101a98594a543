// Launchers of the MLP kernels, declared without PyTorch's tensors and CUDA: mlp.cu defines them, mlp.cpp calls them.
//
// All matrices are (batch, hidden_size), of `dtype`, with any strides. batch * hidden_size > 0. `stream` is a
// cudaStream_t.
#pragma once

#include <torch/headeronly/core/ScalarType.h>

#include "addressing.h"

namespace OPERATOR_NAMESPACE {

/// On entry `hidden` is the product, on return the values of the hidden units. `hidden_bias` is the same in every row:
/// its rows are 0 elements apart.
void launch_mlp_forward(torch::headeronly::ScalarType dtype, const Matrix<const void>& hidden_bias,
                        const Matrix<void>& hidden, void* stream);

/// `d_hidden` is overwritten with d_z.
void launch_mlp_backward(torch::headeronly::ScalarType dtype, const Matrix<const void>& hidden,
                         const Matrix<void>& d_hidden, void* stream);

}  // namespace OPERATOR_NAMESPACE
