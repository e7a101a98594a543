// What the host of cuda-fused chooses on an emulated device, and whether that device accepts it.
//
// Arguments: its multiprocessors, the KiB of shared memory that a block may ask for, and a question: "sizes", or
// "rows", which runs the backward of LayerNorm, or "regardless", which runs its kernel for rows that are read once
// whether there is memory for it or not.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "emulation.h"
#include "lltm.h"
#include "mlp.h"
#include "rows.h"

namespace operators = OPERATOR_NAMESPACE;
using operators::ScalarType;

namespace {

struct Dtype {
  const char* name;
  ScalarType type;
  int64_t bytes, bytes_of_sums;
};

constexpr Dtype kDtypes[] = {
    {"float64", ScalarType::Double, 8, 8}, {"float32", ScalarType::Float, 4, 4}, {"float16", ScalarType::Half, 2, 4}};

/// More rows than are few on any device.
constexpr int64_t kRows = 130;

/// The largest number for which the condition holds; it holds for 0, and for no number above one for which it does not.
template <typename Condition>
long long largest(Condition condition) {
  int64_t low = 0, high = int64_t{1} << 40;
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (condition(middle) ? low : high) = middle;
  }
  return low;
}

void sizes() {
  std::printf("few rows: %lld\n", largest(operators::is_few));
  std::printf("rows that several blocks share: %lld\n", largest([](int64_t rows) {
                return operators::is_split(ScalarType::Float, std::max<int64_t>(rows, 1), 8196, {});
              }));
  std::printf("small: %lld\n",
              largest([](int64_t state) { return operators::is_small(operators::LltmSizes{16, state, state}); }));
  std::printf("small network: %lld\n",
              largest([](int64_t rows) { return operators::is_small(operators::MlpSizes{rows, 64, 128, 64}); }));
  std::printf("narrow network: %lld\n",
              largest([](int64_t rows) { return operators::is_narrow(operators::MlpSizes{rows, 64, 512, 8}); }));
  for (const Dtype& dtype : kDtypes) {
    std::printf("parts of both bias gradients in %s: %lld\n", dtype.name,
                static_cast<long long>(operators::mlp_parts(dtype.type, {1 << 20, 64, 512, 32})));
    std::printf("parts of a bias gradient in %s: %lld\n", dtype.name,
                static_cast<long long>(operators::lltm_parts(dtype.type, {1 << 16, 512, 512})));
    std::printf("parts of rows in %s: %lld\n", dtype.name,
                static_cast<long long>(operators::row_parts(dtype.type, 1 << 20, 1024)));
  }
}

/// The backward of rows of zeros, of the most columns that registers hold; "right" if all of d_input was written.
void rows(const Dtype& dtype, bool regardless) {
  const int64_t columns = 32768 / dtype.bytes;
  std::vector<unsigned char> zeros(kRows * columns * dtype.bytes), d_input(zeros.size(), 1);
  std::vector<unsigned char> statistics(kRows * dtype.bytes_of_sums);
  const bool fits = operators::fits_backward(dtype.type, columns, {zeros.data(), d_input.data()});
  const bool at_once = fits && (regardless || operators::has_memory_for_rows(dtype.type, kRows, columns));
  const int64_t parts = at_once ? operators::row_parts(dtype.type, kRows, columns) : 0;
  std::vector<unsigned char> sums(2 * parts * columns * dtype.bytes_of_sums, 1);
  std::string said = "right";
  try {
    if (at_once) {
      operators::launch_rows_backward(dtype.type, kRows, columns, zeros.data(), zeros.data(), statistics.data(),
                                      statistics.data(), nullptr, d_input.data(), sums.data(), nullptr);
    } else {
      operators::launch_long_rows_backward(dtype.type, kRows, columns, zeros.data(), zeros.data(), statistics.data(),
                                           statistics.data(), nullptr, d_input.data(), nullptr);
    }
    if (d_input != zeros || sums != std::vector<unsigned char>(sums.size())) said = "not all was written";
  } catch (const std::exception& error) {
    said = error.what();
  }
  std::printf("%s, %s: %s\n", dtype.name, at_once ? "read once" : "read in each pass", said.c_str());
}

}  // namespace

int main(int, char** arguments) {
  emulation::device = {std::atoi(arguments[1]), std::atoi(arguments[2]) * 1024};
  const std::string question = arguments[3];
  if (question == "sizes") sizes();
  for (const Dtype& dtype : kDtypes) {
    if (question != "sizes") rows(dtype, question == "regardless");
  }
  return 0;
}
