// The kernels of lltm_sequence_spread.cu, emulated, against loops in double.
//
// Arguments: float32, float16 or bfloat16, then steps, batch and state_size, and how many KiB of shared memory a block
// of the device may ask for, unless that is as many as usual. It prints the plans, and then "right", what was wrong, or
// why a launch failed.
#include "lltm_sequence_spread.cu"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace operators = OPERATOR_NAMESPACE;
using operators::ScalarType;

namespace {

/// Rows of weights are this much longer than the state: they are a part of all weights.
constexpr int64_t kInputFeatures = 3;

template <typename scalar_t>
struct Sequence {
  using Numbers = std::vector<scalar_t>;

  operators::SequenceSizes sizes;
  int64_t steps = sizes.steps, batch = sizes.batch, units = sizes.state_size, stride = sizes.weight_stride;
  double unit = sizeof(scalar_t) == 4 ? 0x1p-24 : std::is_same_v<scalar_t, c10::Half> ? 0x1p-11 : 0x1p-8;
  std::mt19937 random{7};
  std::string wrong;

  Numbers drawn(int64_t count, double scale) {
    std::uniform_real_distribution<double> draw(-scale, scale);
    Numbers numbers(static_cast<size_t>(count));
    for (scalar_t& number : numbers) number = static_cast<scalar_t>(static_cast<float>(draw(random)));
    return numbers;
  }

  /// Each step may add some roundings of the dtype.
  void hold(const char* name, scalar_t found, double expected) {
    const double allowed = 8 * static_cast<double>(steps) * unit * std::max(1.0, std::abs(expected));
    const bool is_right = std::abs(number(found) - expected) <= allowed;
    if (!is_right && wrong.empty()) wrong = name;
  }

  static double number(scalar_t value) { return static_cast<double>(static_cast<float>(value)); }
  static double sigmoid(double z) { return 1 / (1 + std::exp(-z)); }

  void run(ScalarType dtype) {
    const auto forward = operators::plan_spread_forward(dtype, sizes);
    const auto backward = operators::plan_spread_backward(dtype, sizes);
    std::printf("forward: teams %d, slices %d\n", static_cast<int>(forward.teams), static_cast<int>(forward.slices));
    std::printf("backward: teams %d, slices %d\n", static_cast<int>(backward.teams), static_cast<int>(backward.slices));
    if (forward.teams == 0 || backward.teams == 0) return;
    const int64_t of_step = batch * units;
    const Numbers weights = drawn(3 * units * stride, 1 / std::sqrt(static_cast<double>(units)));
    const Numbers h0 = drawn(of_step, 1), c0 = drawn(of_step, 1), from_input = drawn(steps * 3 * of_step, 1);
    Numbers gates = from_input, h(steps * of_step), cells(h), c_T(of_step);
    std::vector<unsigned char> messages(forward.message_bytes);
    operators::launch_spread_forward(dtype, sizes, forward, weights.data(), h0.data(), c0.data(), gates.data(),
                                     h.data(), cells.data(), c_T.data(), messages.data(), nullptr);
    check_forward(weights, h0, c0, from_input, gates, h, cells, c_T);
    const Numbers grad_h = drawn(steps * of_step, 1), grad_cell = drawn(of_step, 1);
    Numbers d_gates(steps * 3 * of_step), d_h0(of_step), d_c0(of_step);
    messages.assign(backward.message_bytes, 0);
    operators::launch_spread_backward(dtype, sizes, backward, weights.data(), gates.data(), cells.data(), grad_h.data(),
                                      grad_cell.data(), d_gates.data(), d_h0.data(), d_c0.data(), messages.data(),
                                      nullptr);
    check_backward(weights, gates, cells, grad_h, grad_cell, d_gates, d_h0, d_c0);
    std::puts(wrong.empty() ? "right" : ("wrong: " + wrong).c_str());
  }

  /// Each step is checked from what was found for the one before it.
  void check_forward(const Numbers& weights, const Numbers& h0, const Numbers& c0, const Numbers& from_input,
                     const Numbers& gates, const Numbers& h, const Numbers& cells, const Numbers& c_T) {
    const int64_t of_step = batch * units;
    for (int64_t at = 0; at < steps * of_step; ++at) {
      const int64_t step = at / of_step, row = at / units % batch, own = at % units;
      const scalar_t* const old_h = step > 0 ? &h[(step - 1) * of_step] : h0.data();
      double z[3];
      for (int64_t gate = 0; gate < 3; ++gate) {
        const int64_t place = (step * batch + row) * 3 * units + gate * units + own;
        double sum = number(from_input[place]);
        for (int64_t k = 0; k < units; ++k)
          sum += number(weights[(gate * units + own) * stride + k]) * number(old_h[row * units + k]);
        hold("gates", gates[place], sum);
        z[gate] = number(gates[place]);
      }
      const double new_cell = number(cells[at]) + (z[2] > 0 ? z[2] : std::expm1(z[2])) * sigmoid(z[0]);
      hold("h", h[at], std::tanh(new_cell) * sigmoid(z[1]));
      if (step == 0) hold("first cells", cells[at], number(c0[at]));
      hold("cells", step + 1 < steps ? cells[at + of_step] : c_T[at % of_step], new_cell);
    }
  }

  void check_backward(const Numbers& weights, const Numbers& gates, const Numbers& cells, const Numbers& grad_h,
                      const Numbers& grad_cell, const Numbers& d_gates, const Numbers& d_h0, const Numbers& d_c0) {
    const int64_t of_step = batch * units;
    std::vector<double> d_cell(of_step), d_h(of_step);
    for (int64_t at = 0; at < of_step; ++at) d_cell[at] = number(grad_cell[at]);
    for (int64_t step = steps - 1; step >= 0; --step) {
      for (int64_t at = 0; at < of_step; ++at) {
        const int64_t place = (step * batch + at / units) * 3 * units + at % units;
        const double z = number(gates[place + 2 * units]), i = sigmoid(number(gates[place]));
        const double o = sigmoid(number(gates[place + units])), k = z > 0 ? z : std::expm1(z);
        const double tanh_cell = std::tanh(number(cells[step * of_step + at]) + k * i);
        const double g = number(grad_h[step * of_step + at]) + d_h[at];
        d_cell[at] += g * o * (1 - tanh_cell * tanh_cell);
        hold("d_gates", d_gates[place], d_cell[at] * k * i * (1 - i));
        hold("d_gates", d_gates[place + units], g * tanh_cell * o * (1 - o));
        hold("d_gates", d_gates[place + 2 * units], d_cell[at] * i * std::exp(std::min(z, 0.0)));
      }
      for (int64_t at = 0; at < of_step; ++at) {
        d_h[at] = 0;
        for (int64_t k = 0; k < 3 * units; ++k)
          d_h[at] +=
              number(d_gates[(step * batch + at / units) * 3 * units + k]) * number(weights[k * stride + at % units]);
      }
    }
    for (int64_t at = 0; at < of_step; ++at) {
      hold("d_h0", d_h0[at], d_h[at]);
      hold("d_c0", d_c0[at], d_cell[at]);
    }
  }
};

}  // namespace

int main(int count, char** arguments) {
  if (count > 5) emulation::device.memory_of_block = std::atoi(arguments[5]) * 1024;
  const std::string name = arguments[1];
  const int64_t steps = std::atoi(arguments[2]), batch = std::atoi(arguments[3]), units = std::atoi(arguments[4]);
  const operators::SequenceSizes sizes{steps, batch, units, units + kInputFeatures};
  try {
    if (name == "float32") Sequence<float>{sizes}.run(ScalarType::Float);
    if (name == "float16") Sequence<c10::Half>{sizes}.run(ScalarType::Half);
    if (name == "bfloat16") Sequence<c10::BFloat16>{sizes}.run(ScalarType::BFloat16);
  } catch (const std::exception& error) {
    std::puts(error.what());
  }
}
