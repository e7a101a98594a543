// Launchers of the MLP kernels, free of PyTorch and of CUDA: mlp.cu defines them, mlp.cpp calls them.
//
// All pointers are to contiguous arrays of `dtype`: hidden_bias (hidden_size,), the others (batch, hidden_size).
// batch * hidden_size > 0. `stream` is a cudaStream_t.
#pragma once

#include <torch/headeronly/core/ScalarType.h>

#include <cstdint>

namespace OPERATOR_NAMESPACE {

/// `hidden` holds the product, and then what the hidden units make of it.
void launch_mlp_forward(torch::headeronly::ScalarType dtype, int64_t batch, int64_t hidden_size,
                        const void* hidden_bias, void* hidden, void* stream);

/// `d_hidden` is overwritten with d_z.
void launch_mlp_backward(torch::headeronly::ScalarType dtype, int64_t batch, int64_t hidden_size, const void* hidden,
                         void* d_hidden, void* stream);

}  // namespace OPERATOR_NAMESPACE
