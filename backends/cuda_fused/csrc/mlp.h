// Launchers of the MLP kernels, declared without PyTorch and CUDA: the files mlp*.cu define them, mlp.cpp calls them.
//
// All arrays are contiguous and of `dtype`: input (batch, input_features), hidden_weights (hidden_size,
// input_features), hidden and d_hidden (batch, hidden_size), output_weights (output_size, hidden_size), output and
// grad_output (batch, output_size), each bias as long as its rows. `stream` is a cudaStream_t.
#pragma once

#include <torch/headeronly/core/ScalarType.h>

#include <cstdint>

namespace OPERATOR_NAMESPACE {

using torch::headeronly::ScalarType;

struct MlpSizes {
  int64_t batch, input_features, hidden_size, output_size;
};

// mlp.cu: between products that PyTorch makes.

/// Turns input @ hidden_weights.T into hidden, in place. Neither batch nor hidden_size is 0.
void launch_hidden_forward(ScalarType dtype, const MlpSizes& sizes, const void* hidden_bias, void* hidden,
                           void* stream);

/// The number of parts in which `launch_hidden_backward` adds up rows.
int64_t mlp_parts(ScalarType dtype, const MlpSizes& sizes);

/// Turns d_hidden into d_z, in place, unless it is null, and adds up its rows and those of grad_output. A bias
/// gradient that is null is not wanted. `sums`, which one part alone does not need, is (parts, hidden_size +
/// output_size), in float for half types and in `dtype` otherwise. The batch is not 0, and there is something to do.
void launch_hidden_backward(ScalarType dtype, const MlpSizes& sizes, const void* hidden, const void* grad_output,
                            void* d_hidden, void* sums, void* d_hidden_bias, void* d_output_bias, void* stream);

// mlp_small.cu: the whole forward.

/// Whether the kernel for small networks takes these sizes.
bool is_small(const MlpSizes& sizes);

void launch_small_forward(ScalarType dtype, const MlpSizes& sizes, const void* input, const void* hidden_weights,
                          const void* hidden_bias, const void* output_weights, const void* output_bias, void* hidden,
                          void* output, void* stream);

// mlp_narrow.cu: the pass forward and the second product.

/// Whether the kernel for networks with few outputs takes these sizes.
bool is_narrow(const MlpSizes& sizes);

/// Turns input @ hidden_weights.T into hidden, in place, and computes the output. Nothing is empty but what has
/// input_features columns.
void launch_narrow_output(ScalarType dtype, const MlpSizes& sizes, const void* hidden_bias, const void* output_weights,
                          const void* output_bias, void* hidden, void* output, void* stream);

}  // namespace OPERATOR_NAMESPACE
