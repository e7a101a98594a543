// Launchers of the LLTM kernels, declared without PyTorch and CUDA: the files lltm*.cu define them, lltm.cpp calls
// them.
//
// All arrays are contiguous and of `dtype`, gates and d_gates (batch, 3*state_size), weights (3*state_size, state_size
// + input_features), input (batch, input_features), the others (batch, state_size). Nothing is empty but what has
// input_features columns. `stream` is a cudaStream_t.
#pragma once

#include <torch/headeronly/core/ScalarType.h>

#include <cstdint>
#include <initializer_list>

namespace OPERATOR_NAMESPACE {

using torch::headeronly::ScalarType;

struct LltmSizes {
  int64_t batch, input_features, state_size;
};

// lltm.cu: around products that PyTorch makes.

/// whole = [left, right], row by row.
void launch_join(ScalarType dtype, int64_t rows, int64_t left_columns, int64_t right_columns, const void* left,
                 const void* right, void* whole, void* stream);

/// [left, right] = whole, row by row.
void launch_split(ScalarType dtype, int64_t rows, int64_t left_columns, int64_t right_columns, const void* whole,
                  void* left, void* right, void* stream);

/// Where bias is not null, the gates come without it, and the kernel adds it to them if they are wanted.
void launch_lltm_forward(ScalarType dtype, const LltmSizes& sizes, void* gates, const void* bias, bool wants_gates,
                         const void* old_cell, void* new_h, void* new_cell, void* stream);

/// The number of parts in which `launch_lltm_backward` adds up the rows of d_gates.
int64_t lltm_parts(ScalarType dtype, const LltmSizes& sizes);

/// d_bias, the sum of the rows of d_gates, is not wanted if it is null. `sums`, which one part alone does not need, is
/// (parts, 3*state_size), in float for half types and in `dtype` otherwise.
void launch_lltm_backward(ScalarType dtype, const LltmSizes& sizes, const void* gates, const void* old_cell,
                          const void* grad_h, const void* grad_cell, void* d_gates, void* d_old_cell, void* sums,
                          void* d_bias, void* stream);

// lltm_small.cu: the whole cell, including its products.

/// Whether the kernel for the forward of small cells takes these sizes, and whether that for their backward does.
bool is_small(const LltmSizes& sizes);
bool is_small_backward(const LltmSizes& sizes);

/// Gates that are null are not wanted.
void launch_small_forward(ScalarType dtype, const LltmSizes& sizes, const void* input, const void* weights,
                          const void* bias, const void* old_h, const void* old_cell, void* new_h, void* new_cell,
                          void* gates, void* stream);

/// Gradients that are null are not wanted.
struct LltmGradients {
  void *d_input, *d_weights, *d_bias, *d_old_h, *d_old_cell;
};

void launch_small_backward(ScalarType dtype, const LltmSizes& sizes, const void* grad_h, const void* grad_cell,
                           const void* gates, const void* input, const void* weights, const void* old_h,
                           const void* old_cell, const LltmGradients& gradients, void* stream);

// lltm_few_rows.cu and lltm_few_rows_float.cu: the whole forward, for half types and float.

/// Whether the kernel for few rows takes these sizes, and pointers to contiguous input, weights and old_h, on the
/// current device.
bool has_few_rows(ScalarType dtype, const LltmSizes& sizes, std::initializer_list<const void*> pointers);

/// Gates that are null are not wanted.
void launch_few_rows_forward(ScalarType dtype, const LltmSizes& sizes, const void* input, const void* weights,
                             const void* bias, const void* old_h, const void* old_cell, void* new_h, void* new_cell,
                             void* gates, void* stream);

// lltm_few_rows_weights.cu, lltm_few_rows_weights_float.cu: the gradient of the weights.

/// Whether the kernel for few rows takes these sizes, and these pointers to d_gates, old_h and input, on the current
/// device.
bool has_few_rows_gradient(ScalarType dtype, const LltmSizes& sizes, std::initializer_list<const void*> pointers);

void launch_few_rows_gradient(ScalarType dtype, const LltmSizes& sizes, const void* d_gates, const void* old_h,
                              const void* input, void* d_weights, void* stream);

}  // namespace OPERATOR_NAMESPACE
