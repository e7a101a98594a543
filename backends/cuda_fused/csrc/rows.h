// Launchers of the LayerNorm kernels, declared without PyTorch and CUDA: rows.cu, rows_backward.cu,
// few_rows_backward.cu, split_rows.cu, split_rows_backward.cu and long_rows.cu define them, layer_norm.cpp calls them.
//
// Matrices are contiguous, of (rows, columns) and of `dtype`; weight, bias and their gradients, of (columns,), may be
// null. mean and rstd are (rows,), in float for half types and in `dtype` otherwise; `launch_rows_forward` and
// `launch_split_forward` may get null for both. Nothing is empty. `stream` is a cudaStream_t.
#pragma once

#include <torch/headeronly/core/ScalarType.h>

#include <cstdint>
#include <initializer_list>

namespace OPERATOR_NAMESPACE {

// rows.cu, rows_backward.cu and few_rows_backward.cu: rows that are read once.

/// Whether a row fits the registers of a block, forward and backward, if all of the matrices begin at these addresses.
bool fits_forward(torch::headeronly::ScalarType dtype, int64_t columns, std::initializer_list<const void*> pointers);
bool fits_backward(torch::headeronly::ScalarType dtype, int64_t columns, std::initializer_list<const void*> pointers);

void launch_rows_forward(torch::headeronly::ScalarType dtype, int64_t rows, int64_t columns, const void* input,
                         const void* weight, const void* bias, double eps, void* output, void* mean, void* rstd,
                         void* stream);

/// Whether `launch_few_rows_backward` takes that many rows.
bool is_few(int64_t rows);

/// d_input, d_weight and d_bias, each of which may be null, but not all of them.
void launch_few_rows_backward(torch::headeronly::ScalarType dtype, int64_t rows, int64_t columns,
                              const void* grad_output, const void* input, const void* mean, const void* rstd,
                              const void* weight, void* d_input, void* d_weight, void* d_bias, void* stream);

/// Whether the current device has the shared memory that a block of `launch_rows_backward` asks for.
bool has_memory_for_rows(torch::headeronly::ScalarType dtype, int64_t rows, int64_t columns);

/// The number of parts in which `launch_rows_backward` adds up the rows.
int64_t row_parts(torch::headeronly::ScalarType dtype, int64_t rows, int64_t columns);

/// d_input and sums may be null. sums, (2, parts, columns) in the dtype of mean, gets for each part the sums of
/// grad_output * xhat, then those of grad_output.
void launch_rows_backward(torch::headeronly::ScalarType dtype, int64_t rows, int64_t columns, const void* grad_output,
                          const void* input, const void* mean, const void* rstd, const void* weight, void* d_input,
                          void* sums, void* stream);

/// d_weight and d_bias, each of which may be null, from the sums of launch_rows_backward.
void launch_totals(torch::headeronly::ScalarType dtype, int64_t parts, int64_t columns, const void* sums,
                   void* d_weight, void* d_bias, void* stream);

// split_rows.cu and split_rows_backward.cu: few rows that are longer than a block holds, at any address.

/// Whether several blocks share a row: if it is so long, and each of its blocks has a multiprocessor. All of the
/// matrices begin at these addresses.
bool is_split(torch::headeronly::ScalarType dtype, int64_t rows, int64_t columns,
              std::initializer_list<const void*> pointers);

/// How many numbers in the dtype of mean the kernels leave each other; `pointers` are those of the launch.
int64_t split_forward_numbers(torch::headeronly::ScalarType dtype, int64_t rows, int64_t columns,
                              std::initializer_list<const void*> pointers);
int64_t split_backward_numbers(torch::headeronly::ScalarType dtype, int64_t rows, int64_t columns,
                               std::initializer_list<const void*> pointers);

void launch_split_forward(torch::headeronly::ScalarType dtype, int64_t rows, int64_t columns, const void* input,
                          const void* weight, const void* bias, double eps, void* output, void* mean, void* rstd,
                          void* numbers, void* stream);

/// d_input, d_weight and d_bias, each of which may be null, but not all of them.
void launch_split_backward(torch::headeronly::ScalarType dtype, int64_t rows, int64_t columns, const void* grad_output,
                           const void* input, const void* mean, const void* rstd, const void* weight, void* d_input,
                           void* d_weight, void* d_bias, void* numbers, void* stream);

// long_rows.cu: rows of any length, at any address.

void launch_long_rows_forward(torch::headeronly::ScalarType dtype, int64_t rows, int64_t columns, const void* input,
                              const void* weight, const void* bias, double eps, void* output, void* mean, void* rstd,
                              void* stream);

void launch_long_rows_backward(torch::headeronly::ScalarType dtype, int64_t rows, int64_t columns,
                               const void* grad_output, const void* input, const void* mean, const void* rstd,
                               const void* weight, void* d_input, void* stream);

/// The number of parts in which `launch_columns` adds up the rows: enough to fill a GPU.
int64_t column_parts(torch::headeronly::ScalarType dtype, int64_t rows, int64_t columns);

/// sums as in launch_rows_backward.
void launch_columns(torch::headeronly::ScalarType dtype, int64_t rows, int64_t columns, int64_t parts,
                    const void* grad_output, const void* input, const void* mean, const void* rstd, void* sums,
                    void* stream);

}  // namespace OPERATOR_NAMESPACE
