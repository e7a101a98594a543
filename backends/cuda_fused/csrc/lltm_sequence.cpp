// LLTM over a sequence in fused kernels: all steps in one where the weights of the state fit the registers of a block
// (lltm_sequence.cu), or of all blocks that the device holds at once (lltm_sequence_spread.cu); otherwise a product and
// a kernel of the cell (lltm.cu) for each step.
#include "lltm_sequence.h"

#include <ATen/ops/zeros.h>

#include "lltm.h"
#include "lltm_sequence_operator.h"
#include "lltm_steps.h"

namespace OPERATOR_NAMESPACE {

static SequenceSizes sizes_of(const Tensor& cells, const Tensor& of_h) {
  return {cells.size(0), cells.size(1), cells.size(2), of_h.stride(0)};
}

/// Memory for the messages of one launch, which no other launch uses.
static Tensor messages_of(const SpreadPlan& plan, const Tensor& like) {
  return at::zeros({plan.message_bytes}, like.options().dtype(at::kByte));
}

// One step by the kernels of the cell. The gates have the bias already, and the sums of d_gates are not needed.

static void cell_of_step(const Tensor& gates, const Tensor& old_cell, const Tensor& new_h, const Tensor& new_cell) {
  const LltmSizes sizes{old_cell.size(0), /*input_features=*/0, old_cell.size(1)};
  launch_lltm_forward(gates.scalar_type(), sizes, gates.mutable_data_ptr(), /*bias=*/nullptr, /*wants_gates=*/true,
                      old_cell.const_data_ptr(), new_h.mutable_data_ptr(), new_cell.mutable_data_ptr(),
                      current_stream(gates));
}

static void cell_vjp_of_step(const Tensor& gates, const Tensor& old_cell, const Tensor& grad_h, const Tensor& grad_cell,
                             const Tensor& d_gates, const Tensor& d_old_cell) {
  const LltmSizes sizes{old_cell.size(0), /*input_features=*/0, old_cell.size(1)};
  launch_lltm_backward(gates.scalar_type(), sizes, gates.const_data_ptr(), old_cell.const_data_ptr(),
                       grad_h.const_data_ptr(), grad_cell.const_data_ptr(), d_gates.mutable_data_ptr(),
                       d_old_cell.mutable_data_ptr(), /*sums=*/nullptr, /*d_bias=*/nullptr, current_stream(gates));
}

void lltm_steps_forward(const Tensor& of_h, const Tensor& h0, const Tensor& c0, const Tensor& gates, const Tensor& h,
                        const Tensor& cells, const Tensor& c_T) {
  const auto dtype = h.scalar_type();
  const SequenceSizes sizes = sizes_of(cells, of_h);
  if (fits_a_block(dtype, sizes.state_size)) {
    launch_sequence_forward(dtype, sizes, of_h.const_data_ptr(), h0.const_data_ptr(), c0.const_data_ptr(),
                            gates.mutable_data_ptr(), h.mutable_data_ptr(), cells.mutable_data_ptr(),
                            c_T.mutable_data_ptr(), current_stream(h));
  } else if (const SpreadPlan plan = plan_spread_forward(dtype, sizes); plan.teams > 0) {
    launch_spread_forward(dtype, sizes, plan, of_h.const_data_ptr(), h0.const_data_ptr(), c0.const_data_ptr(),
                          gates.mutable_data_ptr(), h.mutable_data_ptr(), cells.mutable_data_ptr(),
                          c_T.mutable_data_ptr(), messages_of(plan, h).mutable_data_ptr(), current_stream(h));
  } else {
    forward_step_by_step(of_h, h0, c0, gates, h, cells, c_T, cell_of_step);
  }
}

void lltm_steps_backward(const Tensor& of_h, const Tensor& gates, const Tensor& cells, const Tensor& grad_h,
                         const Tensor& grad_cell, const Tensor& d_gates, const Tensor& d_h0, const Tensor& d_c0) {
  const auto dtype = cells.scalar_type();
  const SequenceSizes sizes = sizes_of(cells, of_h);
  if (fits_a_block(dtype, sizes.state_size)) {
    launch_sequence_backward(dtype, sizes, of_h.const_data_ptr(), gates.const_data_ptr(), cells.const_data_ptr(),
                             grad_h.const_data_ptr(), grad_cell.const_data_ptr(), d_gates.mutable_data_ptr(),
                             d_h0.mutable_data_ptr(), d_c0.mutable_data_ptr(), current_stream(cells));
  } else if (const SpreadPlan plan = plan_spread_backward(dtype, sizes); plan.teams > 0) {
    launch_spread_backward(dtype, sizes, plan, of_h.const_data_ptr(), gates.const_data_ptr(), cells.const_data_ptr(),
                           grad_h.const_data_ptr(), grad_cell.const_data_ptr(), d_gates.mutable_data_ptr(),
                           d_h0.mutable_data_ptr(), d_c0.mutable_data_ptr(),
                           messages_of(plan, cells).mutable_data_ptr(), current_stream(cells));
  } else {
    backward_step_by_step(of_h, gates, cells, grad_h, grad_cell, d_gates, d_h0, d_c0, cell_vjp_of_step);
  }
}

}  // namespace OPERATOR_NAMESPACE
