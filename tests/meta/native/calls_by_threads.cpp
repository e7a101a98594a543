// The emulated CUDA kernels, called by several threads at a time, as in the property `concurrent-threads`: each thread
// has its own outputs, and all have the same inputs. Indices, errors and grids of the emulation are thread-local.
#include "lltm.cu"

#include <cstdio>
#include <thread>
#include <vector>

int main(int count, char**) {
  const bool overlap = count > 1;  // one output for all of them: a planted race
  namespace operators = OPERATOR_NAMESPACE;
  constexpr int64_t kBatch = 5, kState = 37;
  const std::vector<float> gates(kBatch * 3 * kState, 0.5f), state(kBatch * kState, 0.25f);
  std::vector<float> shared(kBatch * 3 * kState);
  const auto call = [&] {
    std::vector<float> h(kBatch * kState), c(kBatch * kState), d_gates(kBatch * 3 * kState), d_cell(kBatch * kState);
    float* const to = overlap ? shared.data() : d_gates.data();
    operators::launch_lltm_forward(operators::ScalarType::Float, kBatch, kState, gates.data(), state.data(), h.data(),
                                   c.data(), nullptr);
    operators::launch_lltm_backward(operators::ScalarType::Float, kBatch, kState, gates.data(), state.data(),
                                    state.data(), state.data(), to, d_cell.data(), nullptr);
  };
  std::vector<std::thread> threads;
  for (int k = 0; k < 4; ++k) threads.emplace_back(call);
  for (auto& thread : threads) thread.join();
  std::puts("done");
}
