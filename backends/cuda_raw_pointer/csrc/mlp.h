// Launchers of the MLP kernels, declared without PyTorch and CUDA: mlp.cu defines them, mlp.cpp calls them.
//
// All pointers are to contiguous arrays of `dtype`: hidden_bias (hidden_size,), the others (batch, hidden_size).
// batch * hidden_size > 0. `stream` is a cudaStream_t.
#pragma once

#include <torch/headeronly/core/ScalarType.h>

#include <cstdint>

namespace OPERATOR_NAMESPACE {

/// On entry `hidden` is the product, on return the values of the hidden units.
void launch_mlp_forward(torch::headeronly::ScalarType dtype, int64_t batch, int64_t hidden_size,
                        const void* hidden_bias, void* hidden, void* stream);

/// `d_hidden` is overwritten with d_z.
void launch_mlp_backward(torch::headeronly::ScalarType dtype, int64_t batch, int64_t hidden_size, const void* hidden,
                         void* d_hidden, void* stream);

}  // namespace OPERATOR_NAMESPACE
