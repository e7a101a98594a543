// MLP over packed accessors: mlp_operator.h with the kernels of mlp.cu.
//
// The kernels take any strides, so nothing is copied; the bias is expanded to a row for each of the batch.
#include "mlp.h"

#include "matrix.h"
#include "mlp_operator.h"

namespace OPERATOR_NAMESPACE {

void mlp_pointwise_forward(const Tensor& product, const Tensor& hidden_bias) {
  launch_mlp_forward(product.scalar_type(), input_matrix(hidden_bias.expand_as(product)), output_matrix(product),
                     current_stream(product));
}

void mlp_pointwise_backward(const Tensor& d_hidden, const Tensor& hidden) {
  launch_mlp_backward(d_hidden.scalar_type(), input_matrix(hidden), output_matrix(d_hidden), current_stream(d_hidden));
}

}  // namespace OPERATOR_NAMESPACE
