// The forward of LLTM for few rows, of cuda-fused, on an emulated device, against loops in double.
//
// Arguments: float16, bfloat16 or float32; batch, input_features and state_size; whether the gates are wanted, 0 or 1;
// the KiB of shared memory that a block may ask for, and the multiprocessors of the device. It prints "right", what was
// wrong, or "other products" where the host chooses those of PyTorch.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "lltm_few_rows.h"

namespace operators = OPERATOR_NAMESPACE;

namespace {

/// What the functions are off by, of numbers up to a few units: those of half types (functions.h), and others.
template <typename scalar_t>
constexpr double kFunctions = sizeof(scalar_t) == 2 ? 0x1p-18 : 0x1p-21;
/// Written in some rows beyond the end of each result; nothing may change it.
constexpr float kBeyond = 77;
constexpr int64_t kRowsBeyond = 64;

double sigmoid(double z) { return 1 / (1 + std::exp(-z)); }
double elu(double z) { return z > 0 ? z : std::expm1(z); }

template <typename scalar_t>
struct Cell {
  using Numbers = std::vector<scalar_t>;

  operators::LltmSizes sizes;
  double unit;
  std::mt19937 random{7};
  std::string wrong;

  /// The vector's memory is aligned as a GPU's is: to more than 16 bytes.
  Numbers drawn(int64_t count, double scale) {
    std::normal_distribution<double> draw(0, scale);
    Numbers numbers(static_cast<size_t>(count));
    for (scalar_t& value : numbers) value = static_cast<float>(draw(random));
    return numbers;
  }

  void hold(const char* name, float found, double expected, double more) {
    if (!(std::abs(found - expected) <= unit * std::abs(expected) + more) && wrong.empty()) wrong = name;
  }

  int run(operators::ScalarType dtype, bool wants_gates) {
    const int64_t batch = sizes.batch, features = sizes.input_features, state = sizes.state_size;
    const int64_t columns = state + features;
    const Numbers x = drawn(batch * features, 1), h = drawn(batch * state, 1), c = drawn(batch * state, 1);
    const Numbers w = drawn(3 * state * columns, 1 / std::sqrt(static_cast<double>(columns))), b = drawn(3 * state, 1);
    if (!operators::has_few_rows(dtype, sizes, {x.data(), w.data(), h.data()})) return std::puts("other products");
    Numbers new_h((batch + kRowsBeyond) * state, kBeyond), new_cell(new_h), gates(3 * new_h.size(), kBeyond);
    operators::launch_few_rows_forward(dtype, sizes, x.data(), w.data(), b.data(), h.data(), c.data(), new_h.data(),
                                       new_cell.data(), wants_gates ? gates.data() : nullptr, nullptr);
    for (int64_t row = 0; row < batch; ++row) {
      for (int64_t unit_of_state = 0; unit_of_state < state; ++unit_of_state) {
        double z[3], error = kFunctions<scalar_t>;
        for (int64_t gate = 0; gate < 3; ++gate) {
          const int64_t of_weights = (gate * state + unit_of_state) * columns;
          double sizes_of_terms = std::abs(b[gate * state + unit_of_state]);
          z[gate] = b[gate * state + unit_of_state];
          for (int64_t k = 0; k < columns; ++k) {
            const double term = static_cast<double>(k < state ? h[row * state + k] : x[row * features + k - state]) *
                                static_cast<double>(w[of_weights + k]);
            z[gate] += term;
            sizes_of_terms += std::abs(term);
          }
          const double of_sum = static_cast<double>(columns) * 0x1p-24 * sizes_of_terms;
          error += 2 * of_sum;
          if (wants_gates) hold("gates", gates[(row * 3 + gate) * state + unit_of_state], z[gate], of_sum);
        }
        const double cell = c[row * state + unit_of_state] + elu(z[2]) * sigmoid(z[0]);
        error *= 1 + std::abs(z[2]);
        hold("new_cell", new_cell[row * state + unit_of_state], cell, error);
        hold("new_h", new_h[row * state + unit_of_state], std::tanh(cell) * sigmoid(z[1]), error);
      }
    }
    for (const Numbers* result : {&new_h, &new_cell, &gates}) {
      const auto first = result->begin() + static_cast<int64_t>(result->size()) / (batch + kRowsBeyond) * batch;
      if (std::count(first, result->end(), static_cast<scalar_t>(kBeyond)) != result->end() - first) {
        wrong = "rows beyond the end";
      }
    }
    return std::puts(wrong.empty() ? "right" : ("wrong: " + wrong).c_str());
  }
};

}  // namespace

int main(int, char** given) {
  const std::string dtype = given[1];
  const operators::LltmSizes sizes{std::atoll(given[2]), std::atoll(given[3]), std::atoll(given[4])};
  const bool wants_gates = std::atoi(given[5]) != 0;
  emulation::device.memory_of_block = std::atoi(given[6]) * 1024;
  emulation::device.multiprocessors = std::atoi(given[7]);
  if (dtype == "float16") {
    Cell<c10::Half>{sizes, 0x1p-11}.run(operators::ScalarType::Half, wants_gates);
  } else if (dtype == "bfloat16") {
    Cell<c10::BFloat16>{sizes, 0x1p-8}.run(operators::ScalarType::BFloat16, wants_gates);
  } else {
    Cell<float>{sizes, 0x1p-24}.run(operators::ScalarType::Float, wants_gates);
  }
}
