// LLTM on the CPU: lltm_operator.h with the pointwise part in one pass over rows, which threads share.
#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>

#include <algorithm>

#include "cell.h"

// What the CUDA backends share is also made for kernels that run on CPU tensors, as theirs do when they are emulated.
#define CUDA_EMULATED
#include "lltm_operator.h"

namespace OPERATOR_NAMESPACE {

/// Elements below which a second thread costs more than it saves.
constexpr int64_t kGrain = 8192;

inline int64_t grain(int64_t H) { return std::max<int64_t>(1, kGrain / H); }

// Function multiversioning knows no templates: a function for each dtype. Its resolvers are visible to other libraries,
// whatever the flags say, unless the function is this file's own.
namespace {

#define DEFINE_ROWS(scalar, real)                                                                             \
  FOR_EACH_PROCESSOR void forward_rows(int64_t rows, int64_t H, const scalar* gates, const scalar* old_cell,  \
                                       scalar* new_h, scalar* new_cell) {                                     \
    for (int64_t b = 0; b < rows; ++b)                                                                        \
      forward_row<scalar, real>(gates + b * 3 * H, old_cell + b * H, new_h + b * H, new_cell + b * H, H);     \
  }                                                                                                           \
  FOR_EACH_PROCESSOR void backward_rows(int64_t rows, int64_t H, const scalar* gates, const scalar* old_cell, \
                                        const scalar* grad_h, const scalar* grad_cell, scalar* d_gates,       \
                                        scalar* d_old_cell) {                                                 \
    for (int64_t b = 0; b < rows; ++b)                                                                        \
      backward_row<scalar, real>(gates + b * 3 * H, old_cell + b * H, grad_h + b * H, grad_cell + b * H,      \
                                 d_gates + b * 3 * H, d_old_cell + b * H, H);                                 \
  }

DEFINE_ROWS(float, float)
DEFINE_ROWS(double, double)
DEFINE_ROWS(c10::Half, float)
DEFINE_ROWS(c10::BFloat16, float)

}  // namespace

#undef DEFINE_ROWS

void lltm_pointwise_forward(const Tensor& gates, const Tensor& old_cell, const Tensor& new_h, const Tensor& new_cell) {
  const Tensor dense_gates = gates.contiguous(), dense_old_cell = old_cell.contiguous();
  const int64_t H = old_cell.size(1);
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, gates.scalar_type(), "lltm_forward", [&] {
    const scalar_t *z = dense_gates.const_data_ptr<scalar_t>(), *c = dense_old_cell.const_data_ptr<scalar_t>();
    scalar_t *h = new_h.mutable_data_ptr<scalar_t>(), *n = new_cell.mutable_data_ptr<scalar_t>();
    at::parallel_for(0, old_cell.size(0), grain(H), [&](int64_t begin, int64_t end) {
      forward_rows(end - begin, H, z + begin * 3 * H, c + begin * H, h + begin * H, n + begin * H);
    });
  });
}

void lltm_pointwise_backward(const Tensor& gates, const Tensor& old_cell, const Tensor& grad_h, const Tensor& grad_cell,
                             const Tensor& d_gates, const Tensor& d_old_cell) {
  const Tensor dense_gates = gates.contiguous(), dense_old_cell = old_cell.contiguous();
  const Tensor dense_grad_h = grad_h.contiguous(), dense_grad_cell = grad_cell.contiguous();
  const int64_t H = old_cell.size(1);
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, gates.scalar_type(), "lltm_backward", [&] {
    const scalar_t *z = dense_gates.const_data_ptr<scalar_t>(), *c = dense_old_cell.const_data_ptr<scalar_t>();
    const scalar_t *gh = dense_grad_h.const_data_ptr<scalar_t>(), *gc = dense_grad_cell.const_data_ptr<scalar_t>();
    scalar_t *dz = d_gates.mutable_data_ptr<scalar_t>(), *dc = d_old_cell.mutable_data_ptr<scalar_t>();
    at::parallel_for(0, old_cell.size(0), grain(H), [&](int64_t begin, int64_t end) {
      backward_rows(end - begin, H, z + begin * 3 * H, c + begin * H, gh + begin * H, gc + begin * H,
                    dz + begin * 3 * H, dc + begin * H);
    });
  });
}

}  // namespace OPERATOR_NAMESPACE
