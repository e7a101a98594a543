"""The names of devices. This module imports no torch; `backends.base` has the same names."""

from __future__ import annotations

from pathlib import Path

CPU = "cpu"
CUDA = "cuda"
#: CUDA sources compiled by the host compiler and run on CPU tensors, thread by thread.
CUDA_EMULATED = "cuda-emulated"
#: Triton kernels run by Triton's interpreter on CPU tensors: their arithmetic and indexing, without Triton's compiler.
TRITON_INTERPRETED = "triton-interpreted"
DEVICES = (CPU, CUDA, CUDA_EMULATED, TRITON_INTERPRETED)
#: What runs the kernels of a GPU on CPU tensors. It takes about a hundred times as long.
SIMULATED = (CUDA_EMULATED, TRITON_INTERPRETED)
#: Whether this machine has a GPU of NVIDIA. To ask torch would take seconds.
HAS_NVIDIA_GPU = any(Path("/dev").glob("nvidia[0-9]*"))
