"""The operator in torch operations; autograd derives the gradient."""

from backends.base import CPU, CUDA, Backend

BACKEND = Backend(summary="torch operations, autograd", devices=(CPU, CUDA))
