// Launchers of the LLTM kernels, declared without PyTorch and CUDA: lltm.cu defines them, lltm.cpp calls them.
//
// All pointers are to contiguous arrays of `dtype`: gates and d_gates (batch, 3*state_size), the others
// (batch, state_size). batch * state_size > 0. `stream` is a cudaStream_t.
#pragma once

#include <torch/headeronly/core/ScalarType.h>

#include <cstdint>

namespace OPERATOR_NAMESPACE {

void launch_lltm_forward(torch::headeronly::ScalarType dtype, int64_t batch, int64_t state_size, const void* gates,
                         const void* old_cell, void* new_h, void* new_cell, void* stream);

void launch_lltm_backward(torch::headeronly::ScalarType dtype, int64_t batch, int64_t state_size, const void* gates,
                          const void* old_cell, const void* grad_h, const void* grad_cell, void* d_gates,
                          void* d_old_cell, void* stream);

}  // namespace OPERATOR_NAMESPACE
