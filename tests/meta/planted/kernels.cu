// One fault for each tool of compute-sanitizer, selected by the argument: each tool must find its fault.
#include <cstdio>
#include <cstring>

__global__ void writes_past_the_end(float* values, int count) { values[count + threadIdx.x] = 1.0f; }

__global__ void races(float* sum) {
  __shared__ float values[128];
  values[threadIdx.x] = static_cast<float>(threadIdx.x);
  // A barrier is missing here.
  if (threadIdx.x == 0) {
    for (int i = 0; i < 128; ++i) *sum += values[i];
  }
}

__global__ void reads_what_nobody_wrote(const float* values, float* sum) { *sum = values[threadIdx.x] + 1.0f; }

__global__ void half_a_block_waits(float* values) {
  if (threadIdx.x < 48) __syncthreads();
  values[threadIdx.x] = 1.0f;
}

int main(int argc, char** argv) {
  const char* fault = argc > 1 ? argv[1] : "";
  float* values = nullptr;
  float* sum = nullptr;
  // Not a multiple of the alignment: what follows the last element belongs to no other allocation.
  cudaMalloc(&values, 127 * sizeof(float));
  cudaMalloc(&sum, sizeof(float));
  cudaMemset(sum, 0, sizeof(float));
  if (std::strcmp(fault, "memcheck") == 0) writes_past_the_end<<<1, 1>>>(values, 127);
  if (std::strcmp(fault, "racecheck") == 0) races<<<1, 128>>>(sum);
  if (std::strcmp(fault, "initcheck") == 0) reads_what_nobody_wrote<<<1, 1>>>(values, sum);
  if (std::strcmp(fault, "synccheck") == 0) half_a_block_waits<<<1, 64>>>(values);
  std::printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  return 0;
}
