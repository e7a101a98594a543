// MLP in fused kernels: one for the whole forward where it is small (mlp_small.cu), one for all that follows the first
// product where there are few outputs (mlp_narrow.cu), otherwise PyTorch's products with one pass between them;
// backward with one pass that also makes the gradients of both biases (mlp.cu).
//
// The kernels take no strides, so what is not contiguous is copied first.
#include "mlp.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <c10/core/DeviceGuard.h>

#include "mlp_autograd.h"
#include "operator.h"

namespace OPERATOR_NAMESPACE {

static MlpSizes sizes_of(const Tensor& input, const Tensor& hidden_weights, const Tensor& output_weights) {
  return {input.size(0), input.size(1), hidden_weights.size(0), output_weights.size(0)};
}

std::tuple<Tensor, Tensor> mlp_forward(const Tensor& input, const Tensor& hidden_weights, const Tensor& hidden_bias,
                                       const Tensor& output_weights, const Tensor& output_bias) {
  mlp_check_forward_arguments(input, hidden_weights, hidden_bias, output_weights, output_bias);
  check_device("mlp", input);
  const c10::DeviceGuard on_device(input.device());
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const MlpSizes sizes = sizes_of(input, hidden_weights, output_weights);
  const at::ScalarType dtype = input.scalar_type();
  const Tensor x = input.contiguous(), bias = hidden_bias.contiguous();
  if (sizes.batch > 0 && is_small(sizes)) {
    const Tensor w = hidden_weights.contiguous(), out_w = output_weights.contiguous();
    const Tensor out_bias = output_bias.contiguous();
    const Tensor hidden = at::empty({sizes.batch, sizes.hidden_size}, x.options());
    const Tensor output = at::empty({sizes.batch, sizes.output_size}, x.options());
    launch_small_forward(dtype, sizes, x.const_data_ptr(), w.const_data_ptr(), bias.const_data_ptr(),
                         out_w.const_data_ptr(), out_bias.const_data_ptr(), hidden.mutable_data_ptr(),
                         output.mutable_data_ptr(), current_stream(x));
    return {output, hidden};
  }
  const Tensor hidden = x.mm(hidden_weights.t());
  if (hidden.numel() > 0 && is_narrow(sizes)) {
    const Tensor out_w = output_weights.contiguous(), out_bias = output_bias.contiguous();
    const Tensor output = at::empty({sizes.batch, sizes.output_size}, x.options());
    launch_narrow_output(dtype, sizes, bias.const_data_ptr(), out_w.const_data_ptr(), out_bias.const_data_ptr(),
                         hidden.mutable_data_ptr(), output.mutable_data_ptr(), current_stream(x));
    return {output, hidden};
  }
  if (hidden.numel() > 0) {
    launch_hidden_forward(dtype, sizes, bias.const_data_ptr(), hidden.mutable_data_ptr(), current_stream(x));
  }
  return {at::addmm(output_bias, hidden, output_weights.t()), hidden};
}

/// The gradients of both biases, and d_z in place of d_hidden. Each is undefined unless it is wanted.
static std::pair<Tensor, Tensor> pass_backward(const MlpSizes& sizes, const Tensor& grad_output, const Tensor& hidden,
                                               const Tensor& d_hidden, MlpWanted wanted) {
  const at::ScalarType dtype = hidden.scalar_type();
  Tensor d_hidden_bias, d_output_bias, sums;
  if (wanted[MlpInput::hidden_bias]) d_hidden_bias = at::empty({sizes.hidden_size}, hidden.options());
  if (wanted[MlpInput::output_bias]) d_output_bias = at::empty({sizes.output_size}, hidden.options());
  const int64_t parts = mlp_parts(dtype, sizes);
  if (parts > 1 && (d_hidden_bias.defined() || d_output_bias.defined())) {
    const auto options = hidden.options().dtype(dtype == at::kDouble ? at::kDouble : at::kFloat);
    sums = at::empty({parts, sizes.hidden_size + sizes.output_size}, options);
  }
  const Tensor value = hidden.contiguous(), gradient = grad_output.contiguous();
  const auto place = [](const Tensor& tensor) { return tensor.defined() ? tensor.mutable_data_ptr() : nullptr; };
  launch_hidden_backward(dtype, sizes, value.const_data_ptr(), gradient.const_data_ptr(), place(d_hidden), place(sums),
                         place(d_hidden_bias), place(d_output_bias), current_stream(hidden));
  return {d_hidden_bias, d_output_bias};
}

std::vector<Tensor> mlp_backward(const Tensor& grad_output, const Tensor& hidden, const Tensor& input,
                                 const Tensor& hidden_weights, const Tensor& output_weights, MlpWanted wanted) {
  mlp_check_backward_arguments(grad_output, hidden, input, hidden_weights, output_weights);
  check_device("mlp", input);
  const c10::DeviceGuard on_device(input.device());
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const MlpSizes sizes = sizes_of(input, hidden_weights, output_weights);
  // A cotangent that repeats one value is made dense once, for the products too.
  const Tensor g = grad_output.contiguous();
  Tensor d_z;
  if (mlp_wants_hidden(wanted)) d_z = g.mm(output_weights);
  const bool is_empty = sizes.batch == 0 || sizes.hidden_size == 0 || sizes.output_size == 0;
  if (is_empty || (!d_z.defined() && !wanted[MlpInput::output_bias])) {  // PyTorch computes products of empty tensors
    return mlp_wanted_gradients(g, d_z, hidden, input, hidden_weights, wanted);
  }
  const auto [d_hidden_bias, d_output_bias] = pass_backward(sizes, g, hidden, d_z, wanted);
  std::vector<Tensor> gradients;
  if (wanted[MlpInput::input]) gradients.push_back(d_z.mm(hidden_weights));
  if (wanted[MlpInput::hidden_weights]) gradients.push_back(d_z.t().mm(input));
  if (wanted[MlpInput::hidden_bias]) gradients.push_back(d_hidden_bias);
  if (wanted[MlpInput::output_weights]) gradients.push_back(g.t().mm(hidden));
  if (wanted[MlpInput::output_bias]) gradients.push_back(d_output_bias);
  return gradients;
}

}  // namespace OPERATOR_NAMESPACE
