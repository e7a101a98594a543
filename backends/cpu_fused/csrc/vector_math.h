// exp, tanh and expm1 without branches or calls, so that a compiler turns a loop over them into vector instructions.
//
// After Cephes (S. L. Moshier, "Methods and Programs for Mathematical Functions"). The error is at most 2.5 units in
// the last place. NaN and infinities give the right results.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#define INLINED inline __attribute__((always_inline))

namespace OPERATOR_NAMESPACE {

/// e^x: inf above 88.37, where float ends at 88.72; 0 below -87.33, where its normal numbers end.
INLINED float vector_exp(float x) {
  constexpr float kHigh = 88.3762626f, kLow = -87.3365478f;
  float bounded = x > kHigh ? kHigh : x;
  bounded = bounded < kLow ? kLow : bounded;
  // x = n ln 2 + r. Adding 1.5 * 2^23 leaves no bits for a fraction, so that the sum is rounded to a whole number.
  constexpr float kRound = 12582912.f;
  const float rounded = bounded * 1.44269504088896341f + kRound;
  const float n = rounded - kRound;
  float r = bounded - n * 0.693359375f;
  r = r + n * 2.12194440e-4f;
  float p = 1.9875691500E-4f;
  p = p * r + 1.3981999507E-3f;
  p = p * r + 8.3334519073E-3f;
  p = p * r + 4.1665795894E-2f;
  p = p * r + 1.6666665459E-1f;
  p = p * r + 5.0000001201E-1f;
  const float mantissa = (p * r * r + r) + 1.f;
  // The low bits of `rounded` are n: moved to where a float has its exponent, they are 2^n.
  uint32_t bits;
  std::memcpy(&bits, &rounded, sizeof bits);
  bits = (bits << 23) + 0x3f800000u;
  float scale;
  std::memcpy(&scale, &bits, sizeof scale);
  const float finite = x < kLow ? 0.f : mantissa * scale;
  return x > kHigh ? std::numeric_limits<float>::infinity() : finite;
}

INLINED float vector_tanh(float x) {
  const float z = x * x;
  float p = -5.70498872745E-3f;
  p = p * z + 2.06390887954E-2f;
  p = p * z - 5.37397155531E-2f;
  p = p * z + 1.33314422036E-1f;
  p = p * z - 3.33332819422E-1f;
  const float near_zero = p * z * x + x;
  const float elsewhere = std::copysign(1.f - 2.f / (vector_exp(2.f * std::fabs(x)) + 1.f), x);
  return std::fabs(x) < 0.625f ? near_zero : elsewhere;
}

/// e^x: inf above 709.43, where double ends at 709.78; 0 below -708.39, where its normal numbers end.
INLINED double vector_exp(double x) {
  constexpr double kHigh = 709.43, kLow = -708.39;
  double bounded = x > kHigh ? kHigh : x;
  bounded = bounded < kLow ? kLow : bounded;
  constexpr double kRound = 6755399441055744.0;  // 1.5 * 2^52
  const double rounded = bounded * 1.4426950408889634074 + kRound;
  const double n = rounded - kRound;
  double r = bounded - n * 6.93145751953125E-1;
  r = r - n * 1.42860682030941723212E-6;
  // Taylor's series: |r| is below 0.35, and r^14 / 14! below a fiftieth of a unit in the last place of 1.
  double p = 1.0 / 6227020800;  // 1 / 13!
  p = p * r + 1.0 / 479001600;
  p = p * r + 1.0 / 39916800;
  p = p * r + 1.0 / 3628800;
  p = p * r + 1.0 / 362880;
  p = p * r + 1.0 / 40320;
  p = p * r + 1.0 / 5040;
  p = p * r + 1.0 / 720;
  p = p * r + 1.0 / 120;
  p = p * r + 1.0 / 24;
  p = p * r + 1.0 / 6;
  p = p * r + 1.0 / 2;
  const double mantissa = (p * r * r + r) + 1.0;
  uint64_t bits;
  std::memcpy(&bits, &rounded, sizeof bits);
  bits = (bits << 52) + 0x3ff0000000000000u;
  double scale;
  std::memcpy(&scale, &bits, sizeof scale);
  const double finite = x < kLow ? 0.0 : mantissa * scale;
  return x > kHigh ? std::numeric_limits<double>::infinity() : finite;
}

INLINED double vector_tanh(double x) {
  const double z = x * x;
  double p = -9.64399179425052238628E-1;
  p = p * z - 9.92877231001918586564E1;
  p = p * z - 1.61468768441708447952E3;
  double q = z + 1.12811678491632931402E2;
  q = q * z + 2.23548839060100448583E3;
  q = q * z + 4.84406305325125486048E3;
  const bool is_near_zero = std::fabs(x) < 0.625;
  // Both cases are a quotient and a sum, so the slow division is made once.
  const double numerator = is_near_zero ? p * z * x : -2.0;
  const double denominator = is_near_zero ? q : vector_exp(2.0 * std::fabs(x)) + 1.0;
  const double quotient = numerator / denominator;
  return is_near_zero ? quotient + x : std::copysign(1.0 + quotient, x);
}

/// e^x - 1 for x <= 0, by 2t / (1 - t) with t = tanh(x/2): there is no cancellation.
template <typename real>
INLINED real vector_expm1(real x) {
  const real t = vector_tanh(real(0.5) * x);
  return real(2) * t / (real(1) - t);
}

}  // namespace OPERATOR_NAMESPACE
