// cpu-fused's passes over rows and its small products, run by threads that ThreadSanitizer can observe.
//
// PyTorch's at::parallel_for uses OpenMP, whose runtime is not instrumented: the sanitizer would not see where threads
// begin and end, and would report races everywhere. So the source is compiled here with a parallel_for of std::thread;
// the ranges and the work on each are the source's own.
#include <ATen/Parallel.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/randn.h>

#include <algorithm>
#include <cstdio>
#include <thread>
#include <vector>

namespace at {

constexpr int64_t kThreads = 4;
// Rows that a thread takes beyond its own: 1 plants a race.
int64_t overlap = 0;

template <typename Body>
void by_threads(int64_t begin, int64_t end, int64_t, Body body) {
  std::vector<std::thread> threads;
  const int64_t share = (end - begin + kThreads - 1) / kThreads;
  for (int64_t first = begin; first < end; first += share) {
    const int64_t last = std::min(first + share + overlap, end);
    threads.emplace_back([=] { body(first, last); });
  }
  for (auto& thread : threads) thread.join();
}

}  // namespace at

#define parallel_for by_threads
#include "lltm.cpp"
#undef parallel_for

int main(int count, char**) {
  at::overlap = count > 1 ? 1 : 0;
  namespace operators = OPERATOR_NAMESPACE;
  for (const auto dtype : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16}) {
    for (const int64_t rows : {1, 3, 7, 64}) {
      const auto values = [&](int64_t columns) { return at::randn({rows, columns}).to(dtype); };
      const at::Tensor gates = values(3 * 33), old_cell = values(33), grad_h = values(33), grad_cell = values(33);
      const at::Tensor new_h = at::empty_like(old_cell), new_cell = at::empty_like(old_cell);
      const at::Tensor d_gates = at::empty_like(gates), d_old_cell = at::empty_like(old_cell);
      operators::lltm_pointwise_forward(gates, old_cell, new_h, new_cell);
      operators::lltm_pointwise_backward(gates, old_cell, grad_h, grad_cell, d_gates, d_old_cell);
      // 70 columns end in tiles of three widths.
      const at::Tensor weights = at::randn({3 * 33, 33 + 37}).to(dtype);
      operators::lltm_backward(grad_h, grad_cell, gates, values(37), weights, values(33), old_cell,
                               {true, true, true, true, true});
    }
  }
  std::puts("done");
}
