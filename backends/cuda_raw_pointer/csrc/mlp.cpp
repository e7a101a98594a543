// MLP over raw pointers: mlp_operator.h with the kernels of mlp.cu.
//
// The kernels take no strides, so what is not contiguous is copied first.
#include "mlp.h"

#include "mlp_operator.h"

namespace OPERATOR_NAMESPACE {

void mlp_pointwise_forward(const Tensor& product, const Tensor& hidden_bias) {
  const Tensor dense_bias = hidden_bias.contiguous();
  launch_mlp_forward(product.scalar_type(), product.size(0), product.size(1), dense_bias.const_data_ptr(),
                     product.mutable_data_ptr(), current_stream(product));
}

void mlp_pointwise_backward(const Tensor& d_hidden, const Tensor& hidden) {
  const Tensor dense_hidden = hidden.contiguous();
  launch_mlp_backward(d_hidden.scalar_type(), d_hidden.size(0), d_hidden.size(1), dense_hidden.const_data_ptr(),
                      d_hidden.mutable_data_ptr(), current_stream(d_hidden));
}

}  // namespace OPERATOR_NAMESPACE
