// The gradient of LLTM's weights for few rows, of cuda-fused, on an emulated device, against loops in double.
//
// Arguments: float16, bfloat16, float32 or float64; batch, input_features and state_size; by how many elements the
// memory of the input is off what a GPU's is aligned to. It prints "right", what was wrong, or "other products" where
// the host chooses those of PyTorch.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "lltm_few_rows.h"

namespace operators = OPERATOR_NAMESPACE;

namespace {

/// What is beyond the end of all arrays: nothing may use it, or change it in the result.
constexpr float kBeyond = 77;
constexpr int64_t kElementsBeyond = 65536;

template <typename scalar_t>
int run(operators::ScalarType dtype, double unit, const operators::LltmSizes& sizes, int64_t offset) {
  std::mt19937 random{7};
  std::normal_distribution<double> draw(0, 1);
  const auto drawn = [&](int64_t count) {
    std::vector<scalar_t> numbers(static_cast<size_t>(count + kElementsBeyond), kBeyond);
    for (int64_t k = 0; k < count; ++k) numbers[k] = static_cast<float>(draw(random));
    return numbers;
  };
  const int64_t batch = sizes.batch, features = sizes.input_features, state = sizes.state_size;
  const int64_t units = 3 * state, columns = state + features;
  const auto d_gates = drawn(batch * units), h = drawn(batch * state), of_input = drawn(batch * features + offset);
  const scalar_t* const x = of_input.data() + offset;
  if (!operators::has_few_rows_gradient(dtype, sizes, {d_gates.data(), h.data(), x}))
    return std::puts("other products");
  std::vector<scalar_t> found(static_cast<size_t>(units * columns + kElementsBeyond), kBeyond);
  operators::launch_few_rows_gradient(dtype, sizes, d_gates.data(), h.data(), x, found.data(), nullptr);
  for (int64_t unit_of_gates = 0; unit_of_gates < units; ++unit_of_gates) {
    for (int64_t column = 0; column < columns; ++column) {
      double expected = 0, sizes_of_terms = 0;
      for (int64_t row = 0; row < batch; ++row) {
        const double term =
            static_cast<double>(d_gates[row * units + unit_of_gates]) *
            static_cast<double>(column < state ? h[row * state + column] : x[row * features + column - state]);
        expected += term;
        sizes_of_terms += std::abs(term);
      }
      const double error = unit * std::abs(expected) + static_cast<double>(batch) * 0x1p-24 * sizes_of_terms;
      if (!(std::abs(found[unit_of_gates * columns + column] - expected) <= error)) {
        return std::printf("wrong: unit %lld, column %lld\n", static_cast<long long>(unit_of_gates),
                           static_cast<long long>(column));
      }
    }
  }
  for (size_t k = static_cast<size_t>(units * columns); k < found.size(); ++k) {
    if (static_cast<float>(found[k]) != kBeyond) return std::puts("wrong: beyond the end");
  }
  return std::puts("right");
}

}  // namespace

int main(int, char** given) {
  const std::string dtype = given[1];
  const operators::LltmSizes sizes{std::atoll(given[2]), std::atoll(given[3]), std::atoll(given[4])};
  const int64_t offset = std::atoll(given[5]);
  if (dtype == "float16") {
    run<c10::Half>(operators::ScalarType::Half, 0x1p-11, sizes, offset);
  } else if (dtype == "bfloat16") {
    run<c10::BFloat16>(operators::ScalarType::BFloat16, 0x1p-8, sizes, offset);
  } else if (dtype == "float32") {
    run<float>(operators::ScalarType::Float, 0x1p-24, sizes, offset);
  } else {
    run<double>(operators::ScalarType::Double, 0x1p-53, sizes, offset);
  }
}
