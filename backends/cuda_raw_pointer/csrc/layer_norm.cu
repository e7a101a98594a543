// LayerNorm over raw pointers: which instance of a kernel is launched, and on which grid.
//
// Reading order:
//    1. spec/layer_norm.py             the mathematics, with the names that are used here
//    2. _cuda/layer_norm_kernels.h     the three kernels, and how their work is laid over threads
//    3. layer_norm.cu                  this file: their launches, which layer_norm.h declares
//    4. _cuda/layer_norm_math.h        the arithmetic of one element, and the sum over a row
//    5. _cuda/vectors.h                loads and stores of 16 bytes
//    6. _cuda/widened_vectors.h        vectors in the dtype of the arithmetic
//    7. _cuda/launch.h                 the instance for a dtype and an index type, the grid, the check of a launch
//    8. layer_norm.cpp                 from tensors to pointers
//    9. _cuda/layer_norm_passes.h      backward as a pass over rows and one over columns
//   10. _cuda/layer_norm_operator.h    what is allocated; tensors of any rank as matrices
//   11. _native/layer_norm_autograd.h  argument checks, differentiable formulae, and the traits of the operator
//   12. _native/registration.h         autograd, autocast, Meta kernels and registration, for every operator
//
// The kernels are shared with cuda-fused, which uses them for rows that its own kernels do not take.
#include "layer_norm.h"

#include "layer_norm_kernels.h"

namespace OPERATOR_NAMESPACE {

void launch_layer_norm_forward(ScalarType dtype, int64_t rows, int64_t columns, const void* input, const void* weight,
                               const void* bias, double eps, void* output, void* mean, void* rstd, void* stream) {
  for_row_instance(dtype, rows, columns, {input, weight, bias, output},
                   [&]<typename scalar_t, typename index_t, int width>(int threads) {
                     using real = compute_t<scalar_t>;
                     launch_with_barriers(
                         "layer_norm_forward_kernel", layer_norm_forward_kernel<scalar_t, index_t, width>, rows,
                         kBlockSize / threads, stream, static_cast<index_t>(rows), static_cast<index_t>(columns),
                         threads, static_cast<const scalar_t*>(input), static_cast<const scalar_t*>(weight),
                         static_cast<const scalar_t*>(bias), static_cast<real>(eps), static_cast<scalar_t*>(output),
                         static_cast<real*>(mean), static_cast<real*>(rstd));
                   });
}

void launch_layer_norm_backward(ScalarType dtype, int64_t rows, int64_t columns, const void* grad_output,
                                const void* input, const void* mean, const void* rstd, const void* weight,
                                void* d_input, void* stream) {
  for_row_instance(dtype, rows, columns, {grad_output, input, weight, d_input},
                   [&]<typename scalar_t, typename index_t, int width>(int threads) {
                     using real = compute_t<scalar_t>;
                     launch_with_barriers(
                         "layer_norm_backward_kernel", layer_norm_backward_kernel<scalar_t, index_t, width>, rows,
                         kBlockSize / threads, stream, static_cast<index_t>(rows), static_cast<index_t>(columns),
                         threads, static_cast<const scalar_t*>(grad_output), static_cast<const scalar_t*>(input),
                         static_cast<const real*>(mean), static_cast<const real*>(rstd),
                         static_cast<const scalar_t*>(weight), static_cast<scalar_t*>(d_input));
                   });
}

void launch_layer_norm_columns(ScalarType dtype, int64_t rows, int64_t columns, int64_t parts, const void* grad_output,
                               const void* input, const void* mean, const void* rstd, void* d_weight, void* d_bias,
                               void* stream) {
  for_dtype(dtype, [&]<typename scalar_t>() {
    using real = compute_t<scalar_t>;
    for_index_type(rows * columns, [&]<typename index_t>() {
      launch("layer_norm_columns_kernel", layer_norm_columns_kernel<scalar_t, index_t>, parts * columns, stream,
             static_cast<index_t>(rows), static_cast<index_t>(columns), static_cast<index_t>(parts),
             static_cast<const scalar_t*>(grad_output), static_cast<const scalar_t*>(input),
             static_cast<const real*>(mean), static_cast<const real*>(rstd), static_cast<real*>(d_weight),
             static_cast<real*>(d_bias));
    });
  });
}

}  // namespace OPERATOR_NAMESPACE
