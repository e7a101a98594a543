"""Fourier transforms as products with the matrix of roots of unity, for the model of rounding.

A fast transform adds the same terms in another order, of some log2(n) levels, so its errors are smaller. The arguments
are those of PyTorch's own operations: `normalization` is 0 for none, 1 for the root of the number of terms, 2 for it.

Source: J. W. Cooley, J. W. Tukey, "An algorithm for the machine calculation of complex Fourier series" (1965).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

_aten = torch.ops.aten


def _angles(rows: int, columns: int, n: int) -> Tensor:
    """2 pi j k / n for j in `rows` and k in `columns`, with j k taken modulo n."""
    products = torch.arange(rows)[:, None] * torch.arange(columns) % n
    return products.double() * (2 * math.pi / n)


def _scaled(y: Tensor, normalization: int, terms: int) -> Tensor:
    return y if normalization == 0 else y / (math.sqrt(terms) if normalization == 1 else terms)


def _terms(x: Tensor, dims: Sequence[int]) -> int:
    return math.prod(x.shape[dim] for dim in dims)


def _along(x: Tensor, dim: int, sign: float) -> Tensor:
    """sum_j x_j exp(sign 2 pi i j k / n), along one dimension of complex numbers."""
    n = x.shape[dim]
    angles = _angles(n, n, n)
    roots = torch.complex(torch.cos(angles), sign * torch.sin(angles))
    return (x.movedim(dim, -1) @ roots).movedim(-1, dim)


def complex_to_complex(x: Tensor, dims: Sequence[int], normalization: int, forward: bool) -> Tensor:
    """A transform of complex numbers; the inverse one with the other sign."""
    y = x
    for dim in dims:
        y = _along(y, dim, -1.0 if forward else 1.0)
    return _scaled(y, normalization, _terms(x, dims))


def real_to_complex(x: Tensor, dims: Sequence[int], normalization: int, onesided: bool) -> Tensor:
    """A transform of real numbers. If it is one-sided, the last of `dims` has its first n // 2 + 1 frequencies."""
    last, n = dims[-1], x.shape[dims[-1]]
    angles = _angles(n, n // 2 + 1 if onesided else n, n)
    rows = x.movedim(last, -1)
    y = torch.complex(rows @ torch.cos(angles), -(rows @ torch.sin(angles))).movedim(-1, last)
    for dim in dims[:-1]:
        y = _along(y, dim, -1.0)
    return _scaled(y, normalization, _terms(x, dims))


def complex_to_real(x: Tensor, dims: Sequence[int], normalization: int, last_dim_size: int) -> Tensor:
    """The inverse of a one-sided transform of `last_dim_size` real numbers.

    Frequencies that are left out are conjugates of those that are there, so these count twice.
    """
    n, last, y = last_dim_size, dims[-1], x
    for dim in dims[:-1]:
        y = _along(y, dim, 1.0)
    count = n // 2 + 1
    angles = _angles(count, n, n)
    times = torch.full((count, 1), 2.0, dtype=torch.float64)
    times[0] = 1.0
    if n % 2 == 0:
        times[-1] = 1.0
    rows = y.movedim(last, -1)
    real = rows.real @ (times * torch.cos(angles)) - rows.imag @ (times * torch.sin(angles))
    return _scaled(real.movedim(-1, last), normalization, _terms(x, dims[:-1]) * n)


#: What each operation of PyTorch is.
STEPS: Mapping[Any, Callable[..., Any]] = {
    _aten._fft_c2c.default: complex_to_complex,
    _aten._fft_r2c.default: real_to_complex,
    _aten._fft_c2r.default: complex_to_real,
}
