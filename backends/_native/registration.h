// What every operator of the compiled backends has around the two functions that compute. An operator is three
// operators in torch.ops:
//
//   <name>            the one that users call. It is differentiable, twice too
//   <name>_forward    its outputs, followed by what backward needs besides the inputs
//   <name>_backward   the gradients that are wanted, in the order of the inputs
//
// A header like lltm_autograd.h describes one operator in a struct of traits and ends with
//
//   TORCH_LIBRARY_FRAGMENT(OPERATOR_NAMESPACE, m) { register_operator<LltmTraits>(m); }
//
// The traits are
//
//   name                          "lltm"
//   arguments, outputs            of <name>, as they stand in a schema
//   kept                          the further results of <name>_forward, likewise
//   backward_arguments            of <name>_backward, likewise, without the last one, `wanted`
//   inputs                        the names of the tensor arguments, in their order
//   Signature                     the C++ type of <name>
//   forward, backward             the two functions that compute
//   forward_meta, backward_meta   the same for tensors without data: they return empty tensors
//   autocast                      cast_to_lower or cast_to_float32, as the contract says
//   may_be_replaced               whether a backend may register a kernel for <name> itself
//   save                          keeps for backward the inputs and results of forward that it needs
//   gradients                     the gradients that are wanted: by <name>_backward, or, for create_graph=True, by
//                                 differentiable operations
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "arguments.h"
#include "autocast.h"
#include "autograd.h"

namespace OPERATOR_NAMESPACE {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// ---------------------------------------------------------------------------------------------------------------------
// The three operators, as the dispatcher knows them

inline std::string qualified(const std::string& name) { return C10_STRINGIZE(OPERATOR_NAMESPACE) "::" + name; }

template <typename Traits>
const auto& public_operator() {
  static const auto op = find_operator<typename Traits::Signature>(qualified(Traits::name));
  return op;
}

template <typename Traits>
const auto& forward_operator() {
  using Signature = std::remove_pointer_t<decltype(Traits::forward)>;
  static const auto op = find_operator<Signature>(qualified(Traits::name) + "_forward");
  return op;
}

template <typename Traits>
const auto& backward_operator() {
  using Signature = std::remove_pointer_t<decltype(Traits::backward)>;
  static const auto op = find_operator<Signature>(qualified(Traits::name) + "_backward");
  return op;
}

// ---------------------------------------------------------------------------------------------------------------------
// Arguments and results: a tensor, a tensor that may be missing, or something without a gradient

template <typename Argument>
constexpr bool is_optional_tensor = std::is_same_v<std::remove_cvref_t<Argument>, std::optional<Tensor>>;

template <typename Argument>
constexpr bool is_tensor = std::is_same_v<std::remove_cvref_t<Argument>, Tensor> || is_optional_tensor<Argument>;

/// The tensor of an argument; null where there is none.
template <typename Argument>
const Tensor* tensor_of(const Argument& argument) {
  if constexpr (is_optional_tensor<Argument>) {
    return argument.has_value() ? &*argument : nullptr;
  } else if constexpr (is_tensor<Argument>) {
    return &argument;
  } else {
    return nullptr;
  }
}

/// The outputs of the operator: the first of the results of forward, a tuple or a list of tensors.
template <typename Outputs, typename Made>
Outputs outputs_of(const Made& made) {
  const auto at = [&]<size_t k>() -> const Tensor& {
    if constexpr (std::is_same_v<Made, variable_list>) {
      return made[k];
    } else {
      return std::get<k>(made);
    }
  };
  if constexpr (std::is_same_v<Outputs, Tensor>) {
    return at.template operator()<0>();
  } else {
    return [&]<size_t... k>(std::index_sequence<k...>) {
      return Outputs{at.template operator()<k>()...};
    }(std::make_index_sequence<std::tuple_size_v<Outputs>>());
  }
}

template <typename Outputs>
constexpr size_t count_of = 1;

template <typename... Tensors>
constexpr size_t count_of<std::tuple<Tensors...>> = sizeof...(Tensors);

// ---------------------------------------------------------------------------------------------------------------------
// The operator that users call: one function for each dispatch key

template <typename Traits, typename Signature = typename Traits::Signature>
struct DifferentiableOperator;

template <typename Traits, typename Outputs, typename... Arguments>
struct DifferentiableOperator<Traits, Outputs(Arguments...)> {
  static constexpr size_t kInputs = (size_t{is_tensor<Arguments>} + ...);
  static constexpr bool kHasOptional = (is_optional_tensor<Arguments> || ...);
  using Wanted = WantedOf<kInputs>;

  struct Node : torch::autograd::Function<Node> {
    static variable_list forward(AutogradContext* context, Arguments... arguments) {
      const at::AutoDispatchBelowADInplaceOrView below_autograd;
      const auto made = forward_operator<Traits>().call(arguments...);
      if constexpr (kHasOptional) context->saved_data["present"] = present(arguments...);
      Traits::save(context, made, arguments...);
      return [&]<size_t... k>(std::index_sequence<k...>) {
        return variable_list{std::get<k>(made)...};
      }(std::make_index_sequence<count_of<Outputs>>());
    }

    static variable_list backward(AutogradContext* context, const variable_list& cotangents) {
      const Wanted wanted = wanted_of(context);
      // Before the guards below: in a checkpoint, to unpack is to run forward again, which autograd must follow.
      const variable_list saved = context->get_saved_variables();
      std::vector<Tensor> computed;
      if (at::GradMode::is_enabled()) {  // create_graph=True
        const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
        computed = Traits::gradients(context, saved, cotangents, wanted, /*differentiable=*/true);
      } else {
        const at::AutoDispatchBelowADInplaceOrView below_autograd;
        computed = Traits::gradients(context, saved, cotangents, wanted, /*differentiable=*/false);
      }
      return for_each_argument(in_places(computed, wanted));
    }
  };

  /// Below autograd, for every device: forward without what backward needs.
  static Outputs call(Arguments... arguments) {
    return outputs_of<Outputs>(forward_operator<Traits>().call(arguments...));
  }

  static Outputs autograd(Arguments... arguments) {
    check_inputs(arguments...);
    const auto is_followed = [](const Tensor* tensor) { return tensor != nullptr && is_tracked(*tensor); };
    if ((is_followed(tensor_of(arguments)) || ...)) return outputs_of<Outputs>(Node::apply(arguments...));
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    if constexpr (Traits::may_be_replaced) {
      return public_operator<Traits>().call(arguments...);
    } else {
      return call(arguments...);
    }
  }

  /// Casts the arguments as the contract says, and calls the operator without autocast.
  template <c10::DeviceType device>
  static Outputs autocast(Arguments... arguments) {
    const AutocastOff off = Traits::autocast(device);
    return public_operator<Traits>().call(off.cast(arguments)...);
  }

 private:
  static void check_inputs(Arguments... arguments) {
    size_t next = 0;
    const auto check = [&]<typename Argument>(const Argument& argument) {
      if constexpr (is_tensor<Argument>) {
        const char* const name = Traits::inputs[next++];
        if (const Tensor* tensor = tensor_of(argument)) check_plain(Traits::name, {{name, *tensor}});
      }
    };
    (check(arguments), ...);
  }

  /// A bit for each input that is there.
  static int64_t present(Arguments... arguments) {
    int64_t bits = 0, next = 1;
    const auto add = [&]<typename Argument>(const Argument& argument) {
      if constexpr (is_tensor<Argument>) {
        if (tensor_of(argument) != nullptr) bits |= next;
        next *= 2;
      }
    };
    (add(arguments), ...);
    return bits;
  }

  /// Autograd numbers only the inputs that are there.
  static Wanted wanted_of(AutogradContext* context) {
    int64_t there = -1;
    if constexpr (kHasOptional) there = context->saved_data["present"].toInt();
    Wanted wanted = {};
    for (size_t k = 0, edge = 0; k < kInputs; ++k) {
      if (there >> k & 1) wanted[k] = context->needs_input_grad(edge++);
    }
    return wanted;
  }

  /// The gradients of the inputs, with an undefined one for each argument that is no tensor.
  static variable_list for_each_argument(variable_list gradients) {
    if constexpr (kInputs == sizeof...(Arguments)) {
      return gradients;
    } else {
      size_t next = 0;
      return {(is_tensor<Arguments> ? gradients[next++] : Tensor())...};
    }
  }
};

// ---------------------------------------------------------------------------------------------------------------------
// Registration

template <typename Traits>
void register_operator(torch::Library& m) {
  using Operator = DifferentiableOperator<Traits>;
  using c10::DispatchKey, torch::dispatch;
  const std::string name = Traits::name, forward = name + "_forward", backward = name + "_backward";
  const auto define = [&](const std::string& schema) { m.def(schema.c_str(), {at::Tag::pt2_compliant_tag}); };
  const std::string arguments = std::string("(") + Traits::arguments + ") -> (" + Traits::outputs;
  define(name + arguments + ")");
  define(forward + arguments + ", " + Traits::kept + ")");
  define(backward + "(" + Traits::backward_arguments + ", bool[" + std::to_string(Operator::kInputs) +
         "] wanted) -> Tensor[]");

  // For every device and layout, so that our checks, which name the argument, see a wrong one.
  m.impl(name.c_str(), dispatch(DispatchKey::CompositeExplicitAutograd, &Operator::call));
  m.impl(forward.c_str(), dispatch(DispatchKey::CompositeExplicitAutograd, Traits::forward));
  m.impl(backward.c_str(), dispatch(DispatchKey::CompositeExplicitAutograd, Traits::backward));

  m.impl(name.c_str(), dispatch(DispatchKey::AutocastCPU, &Operator::template autocast<c10::DeviceType::CPU>));
  m.impl(name.c_str(), dispatch(DispatchKey::AutocastCUDA, &Operator::template autocast<c10::DeviceType::CUDA>));

  m.impl(forward.c_str(), dispatch(DispatchKey::Meta, Traits::forward_meta));
  m.impl(backward.c_str(), dispatch(DispatchKey::Meta, Traits::backward_meta));

  // Forward and backward are not differentiable by themselves: backpropagation through them raises.
  m.impl(name.c_str(), dispatch(DispatchKey::Autograd, &Operator::autograd));
  m.impl(forward.c_str(), dispatch(DispatchKey::Autograd, torch::autograd::autogradNotImplementedFallback()));
  m.impl(backward.c_str(), dispatch(DispatchKey::Autograd, torch::autograd::autogradNotImplementedFallback()));
}

}  // namespace OPERATOR_NAMESPACE
