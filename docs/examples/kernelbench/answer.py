"""An answer: one block for each row, CUDA C++ that PyTorch compiles when the file is imported. It has no backward."""

import torch
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = """
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void softmax_kernel(const float* __restrict__ x, float* __restrict__ y, int dim) {
    extern __shared__ float buf[];
    const float* row = x + (long long)blockIdx.x * dim;
    float* out = y + (long long)blockIdx.x * dim;
    int tid = threadIdx.x;
    float m = -INFINITY;
    for (int j = tid; j < dim; j += blockDim.x) m = fmaxf(m, row[j]);
    buf[tid] = m;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (tid < s) buf[tid] = fmaxf(buf[tid], buf[tid + s]);
        __syncthreads();
    }
    m = buf[0];
    __syncthreads();
    float sum = 0.f;
    for (int j = tid; j < dim; j += blockDim.x) sum += expf(row[j] - m);
    buf[tid] = sum;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s >>= 1) {
        if (tid < s) buf[tid] += buf[tid + s];
        __syncthreads();
    }
    sum = buf[0];
    for (int j = tid; j < dim; j += blockDim.x) out[j] = expf(row[j] - m) / sum;
}

torch::Tensor softmax_cuda(torch::Tensor x) {
    auto c = x.contiguous();
    auto y = torch::empty_like(c);
    int batch = c.size(0), dim = c.size(1);
    if (batch > 0) softmax_kernel<<<batch, 256, 256 * sizeof(float)>>>(c.data_ptr<float>(), y.data_ptr<float>(), dim);
    return y;
}
"""
extension = load_inline(
    name="softmax_answer",
    cpp_sources="torch::Tensor softmax_cuda(torch::Tensor x);",
    cuda_sources=SOURCE,
    functions=["softmax_cuda"],
)


class ModelNew(nn.Module):
    """The same softmax."""

    def __init__(self) -> None:
        super().__init__()
        self.extension = extension

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, width) to (batch, width)."""
        result: torch.Tensor = self.extension.softmax_cuda(x)
        return result
