// The errors of spec/noise.py in one pass over the values: the same to the last bit, which the tests compare.
//
// Compiled with -ffp-contract=off: numpy rounds each product before it is added, and so does this.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

// One library for all processors of a home folder that machines share: the program chooses where it runs.
#if defined(__x86_64__) && defined(__gnu_linux__) && __GNUC__ >= 12 && !defined(__clang__)
#define FOR_EACH_PROCESSOR __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define FOR_EACH_PROCESSOR
#endif

namespace {

constexpr uint64_t kFirst = 0xBF58476D1CE4E5B9u, kSecond = 0x94D049BB133111EBu;

inline __attribute__((always_inline)) uint64_t mixed(uint64_t bits) {
  bits = (bits ^ (bits >> 30)) * kFirst;
  bits = (bits ^ (bits >> 27)) * kSecond;
  return bits ^ (bits >> 31);
}

/// A part of one run. What is a template argument is decided outside of the loop.
template <bool placed, bool beside, bool masked>
inline __attribute__((always_inline)) void add_to_part(bool extreme, double* values, size_t count,
                                                       const double* amplitude, const uint8_t* exact,
                                                       const uint64_t* others, const uint64_t* places, uint64_t begin,
                                                       uint64_t key, double beta) {
  for (size_t i = 0; i < count; ++i) {
    uint64_t bits;
    std::memcpy(&bits, &values[i], sizeof bits);
    bits ^= key;
    if constexpr (placed) bits ^= places[i] + begin;
    if constexpr (beside) bits ^= mixed(others[i]);
    bits *= kFirst;
    bits ^= bits >> 32;
    bits *= kSecond;
    const double random = static_cast<double>(static_cast<int64_t>(bits));
    double error = extreme ? std::copysign(1.0, random) : random * 0x1p-63;
    error *= masked && exact[i] ? 0.0 : amplitude[i];
    error += values[i] * beta;
    values[i] += error;
  }
}

}  // namespace

/// `values` has `runs` rows of `columns`. `amplitude` and `exact` have as many, or one row: then their step is 0.
/// `exact` and `others` may be null. An odd run hashes the place of an element, `width` of them at a time.
extern "C" FOR_EACH_PROCESSOR __attribute__((visibility("default"))) void add_errors(
    double* values, size_t runs, size_t columns, const double* amplitude, size_t amplitude_step, const uint8_t* exact,
    size_t exact_step, const uint64_t* others, const uint64_t* keys, const double* signs, double common,
    const uint64_t* places, size_t width, int first_is_odd, int extreme) {
  for (size_t run = 0; run < runs; ++run) {
    double* row = values + run * columns;
    const double* most = amplitude + run * amplitude_step;
    const uint8_t* none = exact ? exact + run * exact_step : nullptr;
    const uint64_t* beside = others ? others + run * columns : nullptr;
    const double beta = common * signs[run];
    const uint64_t key = keys[run];
    if ((run + first_is_odd) % 2) {
      for (size_t at = 0; at < columns; at += width) {
        const size_t count = columns - at < width ? columns - at : width;
        if (beside) {
          add_to_part<true, true, false>(extreme, row + at, count, most + at, nullptr, beside + at, places, at, key,
                                         beta);
        } else {
          add_to_part<true, false, false>(extreme, row + at, count, most + at, nullptr, nullptr, places, at, key, beta);
        }
      }
    } else if (beside) {
      add_to_part<false, true, false>(extreme, row, columns, most, nullptr, beside, nullptr, 0, key, beta);
    } else if (none) {
      add_to_part<false, false, true>(extreme, row, columns, most, none, nullptr, nullptr, 0, key, beta);
    } else {
      add_to_part<false, false, false>(extreme, row, columns, most, nullptr, nullptr, nullptr, 0, key, beta);
    }
  }
}
