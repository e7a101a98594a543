// LayerNorm of cuda-fused on an emulated device: rows that several blocks share, and rows that a block holds, against
// loops in double.
//
// Arguments: multiprocessors of the device; float64, float32, float16 or bfloat16; rows; columns; and the gradients
// that are wanted, of "iwb". "-" wants none and passes no weight and bias. It prints how the rows are read, and then
// "right", what was wrong, or why a launch failed.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <random>
#include <string>
#include <vector>

#include "rows.cu"
#include "split_rows.cu"
#include "split_rows_backward.cu"

namespace operators = OPERATOR_NAMESPACE;
using operators::ScalarType;

namespace {

/// Rows drift, so that the slices of a row have other means than the row.
constexpr double kDrift = 4, kEps = 1e-5;

template <typename scalar_t>
struct Rows {
  using real = operators::compute_t<scalar_t>;
  using Numbers = std::vector<scalar_t>;

  int64_t rows, columns;
  std::string wanted;
  bool is_affine = wanted != "-";
  double unit = sizeof(scalar_t) == 8 ? 0x1p-53 : sizeof(scalar_t) == 4 ? 0x1p-24 : 0x1p-8;
  double unit_of_real = sizeof(real) == 8 ? 0x1p-53 : 0x1p-24;
  std::mt19937 random{7};
  std::string wrong;
  std::vector<double> mean_of = std::vector<double>(rows), rstd_of = std::vector<double>(rows);

  static double number(scalar_t value) { return static_cast<double>(value); }

  Numbers drawn(int64_t count, double centre) {
    std::normal_distribution<double> draw(centre, 1);
    Numbers numbers(static_cast<size_t>(count));
    for (scalar_t& value : numbers) value = static_cast<scalar_t>(static_cast<real>(draw(random)));
    return numbers;
  }

  /// `size` is what is added up to the number, without signs.
  void hold(const char* name, double found, double expected, double size, double roundings) {
    const double allowed = 4 * unit * std::abs(expected) + roundings * unit_of_real * size;
    if (!(std::abs(found - expected) <= allowed) && wrong.empty()) wrong = name;
  }

  void run(ScalarType dtype) {
    Numbers x = drawn(rows * columns, 0.5), w = drawn(columns, 1), b = drawn(columns, 0), y(x.size());
    for (int64_t at = 0; at < rows * columns; ++at) {
      const double drift = kDrift * static_cast<double>(at % columns) / static_cast<double>(columns);
      x[at] = static_cast<scalar_t>(static_cast<real>(number(x[at]) + drift));
    }
    std::vector<real> mean(rows), rstd(rows);
    Numbers alone(y.size());
    const void *const of_w = is_affine ? w.data() : nullptr, *const of_b = is_affine ? b.data() : nullptr;
    if (operators::fits_forward(dtype, columns, {x.data(), of_w, of_b, y.data()})) {
      std::puts("forward: a block holds rows");
      operators::launch_rows_forward(dtype, rows, columns, x.data(), of_w, of_b, kEps, y.data(), mean.data(),
                                     rstd.data(), nullptr);
      operators::launch_rows_forward(dtype, rows, columns, x.data(), of_w, of_b, kEps, alone.data(), nullptr, nullptr,
                                     nullptr);
    } else if (operators::is_split(dtype, rows, columns, {x.data(), of_w, of_b, y.data()})) {
      std::vector<real> numbers(
          operators::split_forward_numbers(dtype, rows, columns, {x.data(), of_w, of_b, y.data()}), real(NAN));
      std::printf("forward: %d slices\n", static_cast<int>(numbers.size() / 2 / rows));
      operators::launch_split_forward(dtype, rows, columns, x.data(), of_w, of_b, kEps, y.data(), mean.data(),
                                      rstd.data(), numbers.data(), nullptr);
      operators::launch_split_forward(dtype, rows, columns, x.data(), of_w, of_b, kEps, alone.data(), nullptr, nullptr,
                                      numbers.data(), nullptr);
    } else {
      std::puts("forward: neither");
      return;
    }
    check_forward(x, w, b, y, mean, rstd);
    const bool is_same =
        std::equal(y.begin(), y.end(), alone.begin(), [](auto a, auto b) { return number(a) == number(b); });
    if (!is_same && wrong.empty()) wrong = "output without mean and rstd";
    if (is_affine && !operators::fits_forward(dtype, columns, {x.data()})) backward(dtype, x, w, mean, rstd);
    std::puts(wrong.empty() ? "right" : ("wrong: " + wrong).c_str());
  }

  void check_forward(const Numbers& x, const Numbers& w, const Numbers& b, const Numbers& y,
                     const std::vector<real>& mean, const std::vector<real>& rstd) {
    for (int64_t row = 0; row < rows; ++row) {
      long double sum = 0, squares = 0;
      for (int64_t k = 0; k < columns; ++k) sum += number(x[row * columns + k]);
      const double m = static_cast<double>(sum / columns);
      for (int64_t k = 0; k < columns; ++k) squares += std::pow(number(x[row * columns + k]) - m, 2);
      const double r = 1 / std::sqrt(static_cast<double>(squares / columns) + kEps);
      mean_of[row] = m;
      rstd_of[row] = r;
      hold("mean", mean[row], m, kDrift, 8);
      hold("rstd", rstd[row], r, r, 16);
      for (int64_t k = 0; k < columns; ++k) {
        const double scale = is_affine ? number(w[k]) : 1, shift = is_affine ? number(b[k]) : 0;
        const double xhat = (number(x[row * columns + k]) - m) * r;
        hold("output", number(y[row * columns + k]), xhat * scale + shift, 4 + std::abs(shift), 32);
      }
    }
  }

  void backward(ScalarType dtype, const Numbers& x, const Numbers& w, const std::vector<real>& mean,
                const std::vector<real>& rstd) {
    const Numbers g = drawn(rows * columns, 0.25);
    Numbers d_input(x.size()), d_weight(columns), d_bias(columns);
    const auto place = [&](char name, Numbers& of) {
      return wanted.find(name) == std::string::npos ? nullptr : static_cast<void*>(of.data());
    };
    void *const to_x = place('i', d_input), *const to_w = place('w', d_weight), *const to_b = place('b', d_bias);
    const int64_t count =
        operators::split_backward_numbers(dtype, rows, columns, {g.data(), x.data(), w.data(), to_x, to_w, to_b});
    std::printf("backward: %lld numbers\n", static_cast<long long>(count));
    std::vector<real> numbers(count, real(NAN));
    operators::launch_split_backward(dtype, rows, columns, g.data(), x.data(), mean.data(), rstd.data(), w.data(), to_x,
                                     to_w, to_b, numbers.data(), nullptr);
    check_backward(g, x, w, d_input, d_weight, d_bias);
  }

  void check_backward(const Numbers& g, const Numbers& x, const Numbers& w, const Numbers& d_input,
                      const Numbers& d_weight, const Numbers& d_bias) {
    std::vector<double> of_weight(columns), of_bias(columns);
    for (int64_t row = 0; row < rows; ++row) {
      long double mean_h = 0, mean_h_xhat = 0;
      const auto xhat = [&](int64_t k) { return (number(x[row * columns + k]) - mean_of[row]) * rstd_of[row]; };
      const auto h = [&](int64_t k) { return number(g[row * columns + k]) * number(w[k]); };
      for (int64_t k = 0; k < columns; ++k) {
        mean_h += h(k) / columns;
        mean_h_xhat += h(k) * xhat(k) / columns;
        of_weight[k] += number(g[row * columns + k]) * xhat(k);
        of_bias[k] += number(g[row * columns + k]);
      }
      for (int64_t k = 0; k < columns && wanted.find('i') != std::string::npos; ++k) {
        const double expected = rstd_of[row] * static_cast<double>(h(k) - mean_h - xhat(k) * mean_h_xhat);
        hold("d_input", number(d_input[row * columns + k]), expected, 8, 32);
      }
    }
    for (int64_t k = 0; k < columns; ++k) {
      const double size = 8 * static_cast<double>(rows);
      if (wanted.find('w') != std::string::npos) hold("d_weight", number(d_weight[k]), of_weight[k], size, 8);
      if (wanted.find('b') != std::string::npos) hold("d_bias", number(d_bias[k]), of_bias[k], size, 8);
    }
  }
};

template <typename scalar_t>
void run(ScalarType dtype, char** arguments) {
  Rows<scalar_t>{std::atoll(arguments[3]), std::atoll(arguments[4]), arguments[5]}.run(dtype);
}

}  // namespace

int main(int, char** arguments) {
  emulation::device.multiprocessors = std::atoi(arguments[1]);
  const std::string dtype = arguments[2];
  try {
    if (dtype == "float64") run<double>(ScalarType::Double, arguments);
    if (dtype == "float32") run<float>(ScalarType::Float, arguments);
    if (dtype == "float16") run<c10::Half>(ScalarType::Half, arguments);
    if (dtype == "bfloat16") run<c10::BFloat16>(ScalarType::BFloat16, arguments);
  } catch (const std::exception& error) {
    std::puts(error.what());
  }
  return 0;
}
