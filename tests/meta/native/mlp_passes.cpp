// The kernels of MLP, of cuda-fused, on an emulated device, against loops over whole numbers, which all dtypes hold.
//
// Arguments: "small", "narrow", "forward" or "backward"; float32, float64 or bfloat16; batch, input_features,
// hidden_size and output_size; and the multiprocessors of the device. It prints the number of parts of a backward, then
// "right" or what was wrong.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "mlp.cu"
#include "mlp_narrow.cu"
#include "mlp_small.cu"

namespace operators = OPERATOR_NAMESPACE;

namespace {

/// Written in some places beyond the end of each result; nothing may change it.
constexpr float kBeyond = 77;
constexpr int64_t kPlacesBeyond = 640;

template <typename scalar_t>
struct Network {
  using Numbers = std::vector<scalar_t>;

  operators::ScalarType dtype;
  operators::MlpSizes sizes;
  std::mt19937 random{7};
  std::string wrong;

  /// -1, 0 or 1, mostly 0, so that sums of many remain small. Memory is aligned as a GPU's is.
  Numbers drawn(int64_t count) {
    std::uniform_int_distribution<int> draw(-6, 6);
    Numbers numbers(static_cast<size_t>(count));
    for (scalar_t& value : numbers) {
      const int number = draw(random);
      value = static_cast<float>(number > 1 || number < -1 ? 0 : number);
    }
    return numbers;
  }

  static Numbers place_for(int64_t count) { return Numbers(static_cast<size_t>(count + kPlacesBeyond), kBeyond); }

  void hold(const std::string& name, const Numbers& found, const std::vector<double>& expected) {
    for (size_t k = 0; k < found.size() && wrong.empty(); ++k) {
      const bool is_there = k < expected.size();
      if (static_cast<double>(found[k]) != (is_there ? expected[k] : kBeyond)) {
        wrong = is_there ? name : name + " beyond its end";
      }
    }
  }

  /// rows @ weights.T + bias
  std::vector<double> layer(const Numbers& rows, const Numbers& weights, const Numbers& bias, int64_t features) const {
    std::vector<double> result;
    for (int64_t row = 0; row < sizes.batch; ++row) {
      for (size_t unit = 0; unit < bias.size(); ++unit) {
        double sum = bias[unit];
        for (int64_t k = 0; k < features; ++k) {
          sum += static_cast<double>(rows[row * features + k]) * static_cast<double>(weights[unit * features + k]);
        }
        result.push_back(sum);
      }
    }
    return result;
  }

  static std::vector<double> relu(std::vector<double> values) {
    for (double& value : values) value = std::max(value, 0.0);
    return values;
  }

  /// relu(product + bias), row by row.
  static std::vector<double> activated(const Numbers& product, const Numbers& bias) {
    std::vector<double> values(product.begin(), product.end());
    for (size_t k = 0; k < values.size(); ++k) values[k] += static_cast<double>(bias[k % bias.size()]);
    return relu(values);
  }

  void small() {
    const int64_t features = sizes.input_features, units = sizes.hidden_size, outputs = sizes.output_size;
    const Numbers x = drawn(sizes.batch * features), w = drawn(units * features), b = drawn(units);
    const Numbers out_w = drawn(outputs * units), out_b = drawn(outputs);
    Numbers hidden = place_for(sizes.batch * units), output = place_for(sizes.batch * outputs);
    operators::launch_small_forward(dtype, sizes, x.data(), w.data(), b.data(), out_w.data(), out_b.data(),
                                    hidden.data(), output.data(), nullptr);
    hold("hidden", hidden, relu(layer(x, w, b, features)));
    hidden.resize(sizes.batch * units);
    hold("output", output, layer(hidden, out_w, out_b, units));
  }

  void forward() {
    const int64_t units = sizes.hidden_size;
    const Numbers b = drawn(units), product = drawn(sizes.batch * units);
    Numbers hidden = place_for(sizes.batch * units);
    std::copy(product.begin(), product.end(), hidden.begin());
    operators::launch_hidden_forward(dtype, sizes, b.data(), hidden.data(), nullptr);
    hold("hidden", hidden, activated(product, b));
  }

  void narrow() {
    const int64_t units = sizes.hidden_size, outputs = sizes.output_size;
    if (!operators::is_narrow(sizes)) wrong = "not narrow";
    const Numbers b = drawn(units), product = drawn(sizes.batch * units);
    const Numbers out_w = drawn(outputs * units), out_b = drawn(outputs);
    Numbers hidden = place_for(sizes.batch * units), output = place_for(sizes.batch * outputs);
    std::copy(product.begin(), product.end(), hidden.begin());
    operators::launch_narrow_output(dtype, sizes, b.data(), out_w.data(), out_b.data(), hidden.data(), output.data(),
                                    nullptr);
    hold("hidden", hidden, activated(product, b));
    hidden.resize(sizes.batch * units);
    hold("output", output, layer(hidden, out_w, out_b, units));
  }

  void backward() {
    const int64_t units = sizes.hidden_size, outputs = sizes.output_size, parts = operators::mlp_parts(dtype, sizes);
    const Numbers hidden = drawn(sizes.batch * units), g = drawn(sizes.batch * outputs);
    const Numbers d_hidden = drawn(sizes.batch * units);
    Numbers d_z = place_for(sizes.batch * units), d_bias = place_for(units), d_out_bias = place_for(outputs);
    std::copy(d_hidden.begin(), d_hidden.end(), d_z.begin());
    std::vector<double> sums(static_cast<size_t>(parts * (units + outputs))), of_units(units), of_outputs(outputs);
    std::vector<double> expected(d_hidden.begin(), d_hidden.end());
    for (size_t k = 0; k < expected.size(); ++k) {
      if (!(static_cast<double>(hidden[k]) > 0)) expected[k] = 0;
      of_units[k % units] += expected[k];
    }
    for (size_t k = 0; k < g.size(); ++k) of_outputs[k % outputs] += static_cast<double>(g[k]);
    operators::launch_hidden_backward(dtype, sizes, hidden.data(), g.data(), d_z.data(), sums.data(), d_bias.data(),
                                      d_out_bias.data(), nullptr);
    hold("d_z", d_z, expected);
    hold("gradient of hidden_bias", d_bias, of_units);
    hold("gradient of output_bias", d_out_bias, of_outputs);
    std::printf("%lld ", static_cast<long long>(parts));
  }

  void run(const std::string& what) {
    what == "small" ? small() : what == "narrow" ? narrow() : what == "forward" ? forward() : backward();
    std::puts(wrong.empty() ? "right" : ("wrong: " + wrong).c_str());
  }
};

}  // namespace

int main(int, char** given) {
  const std::string what = given[1], dtype = given[2];
  const auto number = [&](int k) { return static_cast<int64_t>(std::atoll(given[k])); };
  const operators::MlpSizes sizes{number(3), number(4), number(5), number(6)};
  emulation::device.multiprocessors = std::atoi(given[7]);
  if (dtype == "float32") {
    Network<float>{operators::ScalarType::Float, sizes}.run(what);
  } else if (dtype == "float64") {
    Network<double>{operators::ScalarType::Double, sizes}.run(what);
  } else {
    Network<c10::BFloat16>{operators::ScalarType::BFloat16, sizes}.run(what);
  }
}
