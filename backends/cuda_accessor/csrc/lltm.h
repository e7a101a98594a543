// Launchers of the LLTM kernels, declared without PyTorch's tensors and CUDA: lltm.cu defines them, lltm.cpp calls
// them.
//
// All matrices are of `dtype`: gates and d_gates (batch, 3*state_size), the others (batch, state_size), with any
// strides. batch * state_size > 0. `stream` is a cudaStream_t.
#pragma once

#include <torch/headeronly/core/ScalarType.h>

#include "addressing.h"

namespace OPERATOR_NAMESPACE {

void launch_lltm_forward(torch::headeronly::ScalarType dtype, const Matrix<const void>& gates,
                         const Matrix<const void>& old_cell, const Matrix<void>& new_h, const Matrix<void>& new_cell,
                         void* stream);

void launch_lltm_backward(torch::headeronly::ScalarType dtype, const Matrix<const void>& gates,
                          const Matrix<const void>& old_cell, const Matrix<const void>& grad_h,
                          const Matrix<const void>& grad_cell, const Matrix<void>& d_gates,
                          const Matrix<void>& d_old_cell, void* stream);

}  // namespace OPERATOR_NAMESPACE
