// Products of tiles, emulated, against loops over the same matrices. Their elements are small whole numbers, so each
// sum is exact. Printed is "right", "another result", or why the launch failed, for each of two half types.
//
// The argument "half a warp" leaves out the upper lanes; "exchanged" exchanges two registers of the rows.
#include "tensor_cores.h"

#include <cstdio>
#include <cstring>

namespace operators = OPERATOR_NAMESPACE;

namespace {

float of_row(int row, int term) { return static_cast<float>((row * 5 + term * 3) % 7 - 3); }
float of_column(int term, int column) { return static_cast<float>((term * 2 + column * 5) % 9 - 4); }

template <typename scalar_t>
uint32_t pair(float first, float second) {
  return operators::packed<scalar_t>(static_cast<scalar_t>(first), static_cast<scalar_t>(second));
}

/// found[lane][which]; with what the sums already were, which differs from element to element.
template <typename scalar_t>
void multiply_kernel(float (*found)[4], bool exchanged, bool half_a_warp) {
  const int lane = static_cast<int>(threadIdx.x), g = lane / 4, t = lane % 4;
  if (half_a_warp && lane >= 16) return;
  uint32_t rows[4], columns[2];
  for (int k = 0; k < 4; ++k) {
    const int row = g + k % 2 * 8, term = 2 * t + k / 2 * 8;
    rows[exchanged && k % 3 ? 3 - k : k] = pair<scalar_t>(of_row(row, term), of_row(row, term + 1));
  }
  for (int k = 0; k < 2; ++k) {
    const int term = 2 * t + k * 8;
    columns[k] = pair<scalar_t>(of_column(term, g), of_column(term + 1, g));
  }
  float sums[4];
  for (int k = 0; k < 4; ++k) sums[k] = static_cast<float>(lane * 4 + k);
  operators::multiply_tiles<scalar_t>(sums, rows, columns);
  std::memcpy(found[lane], sums, sizeof(sums));
}

template <typename scalar_t>
void judge(bool exchanged, bool half_a_warp) {
  float found[32][4] = {};
  emulation::launch_with_barriers<float (*)[4], bool, bool>(multiply_kernel<scalar_t>, 1, 32, nullptr, found, exchanged,
                                                            half_a_warp);
  const cudaError_t error = cudaGetLastError();
  bool is_right = true;
  for (int row = 0; row < operators::kTileRows; ++row) {
    for (int column = 0; column < operators::kTileColumns; ++column) {
      const int lane = row % 8 * 4 + column / 2, which = row / 8 * 2 + column % 2;
      float sum = static_cast<float>(lane * 4 + which);
      for (int term = 0; term < operators::kTileTerms; ++term) sum += of_row(row, term) * of_column(term, column);
      is_right = is_right && found[lane][which] == sum;
    }
  }
  std::puts(error != cudaSuccess ? cudaGetErrorString(error) : is_right ? "right" : "another result");
}

}  // namespace

int main(int count, char** arguments) {
  const char* const how = count > 1 ? arguments[1] : "";
  const bool exchanged = std::strcmp(how, "exchanged") == 0, half_a_warp = std::strcmp(how, "half a warp") == 0;
  judge<c10::Half>(exchanged, half_a_warp);
  judge<c10::BFloat16>(exchanged, half_a_warp);
}
