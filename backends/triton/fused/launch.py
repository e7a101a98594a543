"""How a kernel is launched: compiled on the GPU, interpreted on the CPU, in one process and without any setting.

Triton itself chooses one of the two for the whole process when it is imported, by TRITON_INTERPRET. Here each kernel
exists in both forms, and the device of the tensors decides. Kernels therefore call no function of triton.language that
is written in Triton itself (tl.sum, tl.sigmoid): those are compiled, and the interpreter cannot call them.
"""

import inspect
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest.mock import patch

import numpy
import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.runtime.interpreter import InterpretedFunction
from triton.runtime.jit import JITFunction

# A custom operator imports this when it is first called, and it sets TORCHINDUCTOR_CACHE_DIR for the whole process.
with patch.dict(os.environ):
    import torch._dynamo


class _Interpreter:
    """One thread for all kernels: while it runs, the interpreter replaces parts of triton.language and has one grid.

    A forked child has a thread of its own, since threads are not copied.
    """

    def __init__(self) -> None:
        self._start()
        os.register_at_fork(after_in_child=self._start)

    def _start(self) -> None:
        self._thread = ThreadPoolExecutor(1, "triton-interpreter")

    def run(self, function: Callable[..., None], *arguments: Any) -> None:
        """Call the function there, and wait for it."""
        self._thread.submit(function, *arguments).result()


_INTERPRETER = _Interpreter()

_TRITON_DTYPES = {torch.float64: tl.float64}

#: Parameters of kernels for which Triton compiles no form of its own where they are 1 or a multiple of 16. Numbers of
#: columns or elements do get one: it tells the compiler that it may read several neighbours at once. Rows have none.
_COUNTS = ("rows", "parts")


class Function(JITFunction):
    """A function that kernels call. It is compiled with them; the interpreter calls it as a Python function."""

    def __call__(self, *arguments):
        return self.fn(*arguments)


class Kernel:
    """A kernel, compiled for CUDA tensors and interpreted for those of the CPU."""

    def __init__(self, function: Callable[..., None]) -> None:
        counts = [name for name in inspect.signature(function).parameters if name in _COUNTS]
        self._compiled = JITFunction(function, do_not_specialize=counts)
        self._interpreted = InterpretedFunction(function)

    def launch(
        self,
        grid: tuple[int, ...],
        read: Sequence[Tensor | None],
        written: Sequence[Tensor],
        *sizes: int,
        **constants: Any,
    ) -> None:
        """Launch over `grid` on the device and the current stream of the tensors, which are its first arguments."""
        if written[0].is_cuda:
            with torch.cuda.device(written[0].device):
                self._compiled[grid](*read, *written, *sizes, **constants)
            return
        # The interpreter truncates to bfloat16, the compiler rounds. So it works in float32, and PyTorch rounds.
        results = [_without_bfloat16(tensor) for tensor in written]
        arguments = [*(tensor if tensor is None else _without_bfloat16(tensor) for tensor in read), *results, *sizes]
        _INTERPRETER.run(self._interpret, grid, arguments, constants)
        for tensor, result in zip(written, results, strict=True):
            if result is not tensor:
                tensor.copy_(result)

    def _interpret(self, grid: tuple[int, ...], arguments: list[Any], constants: dict[str, Any]) -> None:
        with numpy.errstate(all="ignore"):  # inf and NaN are valid here, and numpy would warn
            self._interpreted[grid](*arguments, **constants)


def _without_bfloat16(tensor: Tensor) -> Tensor:
    return tensor.float() if tensor.dtype == torch.bfloat16 else tensor


def wide(tensor: Tensor) -> Any:
    """The dtype of the arithmetic: float32 for half types, otherwise the dtype itself."""
    return _TRITON_DTYPES.get(tensor.dtype, tl.float32)


def block_size(tensor: Tensor) -> int:
    """Elements for one program: a few for each thread of a GPU, many for the interpreter, where a program is slow."""
    return 1024 if tensor.is_cuda else 65536


def blocks(elements: int, size: int) -> int:
    """How many programs of `size` elements each."""
    return int(triton.cdiv(elements, size))


def row_tile(tensor: Tensor, rows: int, columns: int) -> dict[str, Any]:
    """WIDE, the sizes of a tile, powers of two: whole rows where they fit, and then several; and the tiles of a row."""
    block = min(triton.next_power_of_2(columns), block_size(tensor))
    down = min(triton.next_power_of_2(rows), block_size(tensor) // block)
    return {"WIDE": wide(tensor), "ROWS": down, "BLOCK": block, "TILES": blocks(columns, block)}
