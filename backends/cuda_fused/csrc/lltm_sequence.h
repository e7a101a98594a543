// Launchers of the kernels that make all steps of a sequence, declared without PyTorch and CUDA: lltm_sequence.cu and
// lltm_sequence_spread.cu define them, lltm_sequence.cpp calls them.
//
// All arrays but the weights are contiguous. All are of `dtype`: gates and d_gates (steps, batch, 3*state_size), h and
// cells (steps, batch, state_size), the others (batch, state_size). Weights are those of the state, (3*state_size,
// state_size), with `weight_stride` numbers from the beginning of a row to that of the next. Nothing is empty. `stream`
// is a cudaStream_t.
#pragma once

#include <torch/headeronly/core/ScalarType.h>

#include <cstdint>

namespace OPERATOR_NAMESPACE {

struct SequenceSizes {
  int64_t steps, batch, state_size, weight_stride;
};

// lltm_sequence.cu: a block for each row.

/// Whether the weights fit the registers of a block.
bool fits_a_block(torch::headeronly::ScalarType dtype, int64_t state_size);

/// On entry gates are the part of the input, on return the pre-activations. cells gets the cell before each
/// step, c_T the one after the last.
void launch_sequence_forward(torch::headeronly::ScalarType dtype, const SequenceSizes& sizes, const void* weights,
                             const void* h0, const void* c0, void* gates, void* h, void* cells, void* c_T,
                             void* stream);

void launch_sequence_backward(torch::headeronly::ScalarType dtype, const SequenceSizes& sizes, const void* weights,
                              const void* gates, const void* cells, const void* grad_h, const void* grad_cell,
                              void* d_gates, void* d_h0, void* d_c0, void* stream);

// lltm_sequence_spread.cu: the state spread over blocks that run at once.

/// How a sequence is spread on the current device: teams of blocks, each with rows of its own; how many slices of the
/// state a block has (spread_state.h); and the bytes of the messages between blocks, which must be 0 before the launch.
/// No teams: it cannot be.
struct SpreadPlan {
  int64_t teams, slices, message_bytes;
};

SpreadPlan plan_spread_forward(torch::headeronly::ScalarType dtype, const SequenceSizes& sizes);
SpreadPlan plan_spread_backward(torch::headeronly::ScalarType dtype, const SequenceSizes& sizes);

void launch_spread_forward(torch::headeronly::ScalarType dtype, const SequenceSizes& sizes, const SpreadPlan& plan,
                           const void* weights, const void* h0, const void* c0, void* gates, void* h, void* cells,
                           void* c_T, void* messages, void* stream);

void launch_spread_backward(torch::headeronly::ScalarType dtype, const SequenceSizes& sizes, const SpreadPlan& plan,
                            const void* weights, const void* gates, const void* cells, const void* grad_h,
                            const void* grad_cell, void* d_gates, void* d_h0, void* d_c0, void* messages, void* stream);

}  // namespace OPERATOR_NAMESPACE
