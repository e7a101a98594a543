// Checks of tensor arguments. A message names the argument, what it was and what it should be:
//
//   lltm: weights was [9, 8], but should be (3*state_size, state_size + input_features) = [12, 9],
//   where state_size = 4 from old_h.shape[1], input_features = 5 from input.shape[1]
//
// Sizes are SymInts, so that Meta kernels can use the same checks. No text is made unless a check fails.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <cstring>
#include <initializer_list>
#include <sstream>
#include <string>

namespace OPERATOR_NAMESPACE {

using at::Tensor;

/// A tensor and the shape that it should have; `rule` is the shape in the symbols of spec/.
struct Argument {
  const char* name;
  const Tensor& tensor;
  const char* rule;
  c10::SymDimVector shape;
};

/// A symbol of the rules, its value in this call, and what it was read from.
struct Size {
  const char* symbol;
  c10::SymInt value;
  const char* origin;
};

/// The size of `tensor` in a dimension; 0 where it has no such dimension, which `check_arguments` then reports.
inline c10::SymInt size_of(const Tensor& tensor, int64_t dimension) {
  return dimension < tensor.dim() ? tensor.sym_size(dimension) : c10::SymInt(0);
}

inline std::string origins(const char* rule, std::initializer_list<Size> sizes) {
  std::ostringstream text;
  const char* separator = ", where ";
  for (const auto& [symbol, value, origin] : sizes) {
    if (std::strstr(rule, symbol) != nullptr) {
      text << separator << symbol << " = " << value << " from " << origin;
      separator = ", ";
    }
  }
  return text.str();
}

/// A tensor by its name, before anything is known of its shape.
struct Named {
  const char* name;
  const Tensor& tensor;
};

/// Raises TypeError for None, which the dispatcher passes on as an undefined tensor, and for nested tensors, of which
/// the dispatcher would say only that no kernel takes them. Call it before anything else reads the arguments.
inline void check_plain(const char* op, std::initializer_list<Named> arguments) {
  for (const auto& [name, tensor] : arguments) {
    TORCH_CHECK_TYPE(tensor.defined(), op, ": ", name, " was None, but should be a tensor");
    TORCH_CHECK_TYPE(!tensor.is_nested(), op, ": ", name, " was a nested tensor, but should be a dense one");
  }
}

/// Raises ValueError unless the storage holds every element. A tensor keeps its sizes when its storage is resized or
/// freed, as code that shards parameters does, and a kernel would then read outside of the storage. Tensors with
/// symbolic sizes and tensors that wrap others have no memory of their own.
inline void check_storage(const char* op, const char* name, const Tensor& tensor) {
  if (!tensor.has_storage() || tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides()) return;
  if (tensor.numel() == 0 || tensor.storage().sym_nbytes().is_heap_allocated()) return;
  int64_t last = tensor.storage_offset();
  for (int64_t dimension = 0; dimension < tensor.dim(); ++dimension) {
    last += (tensor.size(dimension) - 1) * tensor.stride(dimension);
  }
  const int64_t needed = (last + 1) * tensor.element_size(), there = tensor.storage().nbytes();
  TORCH_CHECK_VALUE(there >= needed, op, ": ", name, " was a tensor with a storage of ", there,
                    " bytes, but should have one of at least ", needed, ", which its sizes and strides reach to");
}

/// Raises TypeError or ValueError unless all arguments are dense tensors of the expected shapes, with the dtype and the
/// device of the first one. The dtype must be a floating one.
inline void check_arguments(const char* op, std::initializer_list<Argument> arguments,
                            std::initializer_list<Size> sizes) {
  const auto& [first_name, first, first_rule, first_shape] = *arguments.begin();
  const at::ScalarType dtype = first.scalar_type();
  TORCH_CHECK_TYPE(dtype == at::kFloat || dtype == at::kDouble || dtype == at::kHalf || dtype == at::kBFloat16, op,
                   ": ", first_name, " was ", dtype, ", but should be Float, Double, Half or BFloat16");
  for (const auto& [name, tensor, rule, shape] : arguments) {
    TORCH_CHECK_TYPE(tensor.layout() == at::kStrided, op, ": ", name, " was of layout ", tensor.layout(),
                     ", but should be Strided; call to_dense()");
    TORCH_CHECK_TYPE(tensor.scalar_type() == dtype, op, ": ", name, " was ", tensor.scalar_type(), ", but should be ",
                     dtype, ", the dtype of ", first_name);
    TORCH_CHECK_TYPE(tensor.device() == first.device(), op, ": ", name, " was on ", tensor.device(),
                     ", but should be on ", first.device(), ", the device of ", first_name);
    TORCH_CHECK_VALUE(tensor.dim() == static_cast<int64_t>(shape.size()), op, ": ", name, " was of rank ", tensor.dim(),
                      " with shape ", tensor.sym_sizes(), ", but should be of rank ", shape.size(), ": ", rule);
    check_storage(op, name, tensor);
  }
  for (const auto& [name, tensor, rule, shape] : arguments) {
    TORCH_CHECK_VALUE(tensor.sym_sizes() == c10::SymIntArrayRef(shape), op, ": ", name, " was ", tensor.sym_sizes(),
                      ", but should be ", rule, " = ", c10::SymIntArrayRef(shape), origins(rule, sizes));
  }
}

}  // namespace OPERATOR_NAMESPACE
