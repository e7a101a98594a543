"""The floating-point mode of a thread: what becomes of denormals, how results are rounded, which exceptions trap.

Each thread has its own, and a new thread starts with that of the thread that starts it. The C library tells the mode of
the calling thread. What the others have is seen by their results: on denormals, and on sums that each way of rounding
rounds to another number.
"""

from __future__ import annotations

import contextlib
import ctypes
import platform
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

#: More than the largest `fenv_t` of the architectures below.
_ENVIRONMENT = 64


class _Register(NamedTuple):
    """Where `fenv_t` has the control register, and the meaning of its bits."""

    offset: int
    flushes_results: int
    flushes_inputs: int
    rounding: int
    ways: tuple[str, ...]
    traps: int
    #: A bit of `traps` that is set traps nothing.
    traps_are_masks: bool
    #: The bits of the x87's control word, at the start of `fenv_t`: traps, precision and rounding once more.
    x87: int


_NEAREST, _DOWN, _UP, _ZERO = "to nearest", "down", "up", "towards 0"
_REGISTERS = {
    "x86_64": _Register(28, 1 << 15, 1 << 6, 13, (_NEAREST, _DOWN, _UP, _ZERO), 0x3F << 7, True, 0x0F3F),
    # One bit flushes results and inputs.
    "aarch64": _Register(0, 1 << 24, 1 << 24, 22, (_NEAREST, _UP, _DOWN, _ZERO), 0x9F << 8, False, 0),
}
_REGISTER = _REGISTERS.get(platform.machine()) if platform.libc_ver()[0] == "glibc" else None


#: Of threads that keep denormals and round to nearest.
USUAL = "the usual one"


class Mode(NamedTuple):
    """The control bits of a thread, and those of its x87, if it has one."""

    bits: int
    x87: int

    def __str__(self) -> str:
        register = _known()
        flushed = [
            what
            for what, bit in (("results", register.flushes_results), ("inputs", register.flushes_inputs))
            if self.bits & bit
        ]
        denormals = f"denormal {' and '.join(flushed)} flushed to 0" if flushed else "denormals kept"
        traps = (self.bits ^ (register.traps if register.traps_are_masks else 0)) & register.traps
        way = register.ways[self.bits >> register.rounding & 3]
        return f"({denormals}, rounding {way}, {'exceptions trapped' if traps else 'no exceptions trapped'})"

    def flushing(self) -> Mode:
        """The same with denormals flushed."""
        register = _known()
        return self._replace(bits=self.bits | register.flushes_results | register.flushes_inputs)


def is_known() -> bool:
    """Whether the mode of the calling thread can be read and written here."""
    return _REGISTER is not None


def _known() -> _Register:
    if _REGISTER is None:
        raise NotImplementedError(f"no floating-point mode can be read on {platform.machine()}: ask is_known() first")
    return _REGISTER


@cache
def _libm() -> ctypes.CDLL:
    return ctypes.CDLL("libm.so.6")


def _control() -> int:
    """The bits that control; the others say which exceptions have occurred."""
    register = _known()
    return register.flushes_results | register.flushes_inputs | 3 << register.rounding | register.traps


def _environment() -> ctypes.Array[ctypes.c_uint8]:
    found = (ctypes.c_uint8 * _ENVIRONMENT)()
    _libm().fegetenv(found)
    return found


def read() -> Mode:
    """The mode of the calling thread."""
    register, environment = _known(), bytes(_environment())
    bits = int.from_bytes(environment[register.offset : register.offset + 4], "little")
    return Mode(bits & _control(), int.from_bytes(environment[:2], "little") & register.x87)


def write(mode: Mode) -> None:
    """Give the calling thread that mode."""
    register, environment = _known(), _environment()
    _put(environment, register.offset, 4, _control(), mode.bits)
    _put(environment, 0, 2, register.x87, mode.x87)
    _libm().fesetenv(environment)


def _put(environment: ctypes.Array[ctypes.c_uint8], start: int, size: int, mask: int, bits: int) -> None:
    """Replace the bits of the mask in a little-endian number of `size` bytes."""
    there = int.from_bytes(bytes(environment[start : start + size]), "little")
    environment[start : start + size] = list((there & ~mask | bits).to_bytes(size, "little"))


# Other threads


#: Half of the smallest normal number, and that number, as bits: a thread that flushes cannot spoil these.
_DENORMAL, _SMALLEST, _ONE, _MINUS_ONE = 0x00400000, 0x00800000, 0x3F800000, -0x40800000


def _filled(bits: int, count: int) -> Tensor:
    return torch.full((count,), bits, dtype=torch.int32, device="cpu").view(torch.float32)


def by_arithmetic(count: int, picked: Callable[[Tensor], Tensor]) -> list[str]:
    """What the results of vectors of `count` numbers show; `picked` selects the bits of one result of each thread.

    "" for a thread that keeps denormals and rounds to nearest.
    """

    def bits(result: Tensor) -> list[int]:
        return [int(found) for found in picked(result.view(torch.int32)).tolist()]

    results = bits(_filled(_SMALLEST, count) * 0.5)
    inputs = bits(_filled(_DENORMAL, count) * 4.0)
    above = bits(_filled(_ONE, count) + 2.0**-25)
    below = bits(_filled(_MINUS_ONE, count) - 2.0**-25)
    short = bits(_filled(_ONE, count) - 2.0**-26)
    return [_in_words(*found) for found in zip(results, inputs, above, below, short, strict=True)]


def _in_words(result: int, input: int, above: int, below: int, short: int) -> str:
    flushed = [what for what, found in (("results", result), ("inputs", input)) if found == 0]
    said = [f"denormal {' and '.join(flushed)} flushed to 0"] if flushed else []
    if above != _ONE:
        said.append(f"rounding {_UP}")
    elif below != _MINUS_ONE:
        said.append(f"rounding {_DOWN}")
    elif short != _ONE:
        said.append(f"rounding {_ZERO}")
    return ", ".join(said)


#: From so many elements a thread on, torch shares an operation out to its OpenMP threads (at::internal::GRAIN_SIZE).
_SHARE = 32768


#: The numbers of OpenMP threads that torch was seen to have: those that it has no more may come back.
_counts: set[int] = set()


def of_openmp_threads() -> str:
    """What is unusual about torch's OpenMP threads, except the calling one. They are started if there are none yet."""
    threads = torch.get_num_threads()
    _counts.add(threads)
    if threads == 1:
        return USUAL
    found = by_arithmetic(_SHARE * threads, lambda result: result[_SHARE // 2 :: _SHARE])
    said, first = [], 1
    for number in range(1, threads):
        if number + 1 == threads or found[number + 1] != found[number]:
            if found[number]:
                said.append(f"{_range(first, number)}: {found[number]}")
            first = number + 1
    return "; ".join(said) or USUAL


def _range(first: int, last: int) -> str:
    return f"thread {first}" if first == last else f"threads {first} to {last}"


def give_openmp_threads(libraries: list[ctypes.CDLL]) -> None:
    """Give every OpenMP thread the mode of the calling one, as far as an OpenMP library can call a function on each."""
    if not is_known():
        return
    environment = _environment()
    for library in libraries:
        if hasattr(library, "GOMP_parallel"):
            function = ctypes.cast(_libm().fesetenv, ctypes.c_void_p)
            library.GOMP_parallel(function, ctypes.byref(environment), max(_counts | {torch.get_num_threads()}), 0)


def _task(given: Tensor) -> Tensor:
    """The five results of `by_arithmetic`."""
    scaled = given * torch.tensor([0.5, 4.0, 1.0, 1.0, 1.0], dtype=torch.float32, device="cpu")
    added = given + torch.tensor([0.0, 0.0, 2.0**-25, -(2.0**-25), -(2.0**-26)], dtype=torch.float32, device="cpu")
    return torch.cat([scaled[:2], added[2:]])


def _tasks(given: Tensor, count: int) -> list[Tensor]:
    waiting = [torch.jit.fork(_task, given) for _ in range(count)]  # type: ignore[no-untyped-call]
    return [torch.jit.wait(one) for one in waiting]  # type: ignore[no-untyped-call]


@cache
def _in_tasks() -> Callable[[Tensor, int], list[Tensor]]:
    """`_tasks`, compiled: only what TorchScript runs goes to the pool."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        made: Callable[[Tensor, int], list[Tensor]] = torch.jit.script(_tasks)
    return made


#: The name that PyTorch gives to the threads of at::launch.
_POOL = "PTThreadPool"
#: So many tasks for each thread of the pool that each thread surely gets one.
_TASKS = 64


class _OnItsThread(torch.autograd.Function):
    """Backward calls a function on the thread that autograd's engine has for the device."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, function: Callable[[], None]) -> Tensor:
        ctx.function = function
        return tensor.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        ctx.function()
        return gradient, None


def on_autograds_thread(device: str, function: Callable[[], None]) -> None:
    """Call the function on the thread that runs backward for a device: for the CPU, the calling one."""
    with torch.inference_mode(False), torch.enable_grad():
        tensor = torch.zeros(1, device=device, dtype=torch.float32, requires_grad=True)
        moved = _OnItsThread.apply(tensor, function)  # type: ignore[no-untyped-call]
        torch.autograd.grad(moved, tensor, torch.zeros_like(tensor))


def of_autograds_thread(device: str) -> Mode:
    """The mode of that thread."""
    found: list[Mode] = []
    on_autograds_thread(device, lambda: found.append(read()))
    return found[0]


def _names_of_threads() -> list[str]:
    names = []
    for task in Path("/proc/self/task").glob("*/comm"):
        with contextlib.suppress(OSError):  # it has ended
            names.append(task.read_text().strip())
    return names


def of_interop_threads() -> str:
    """What is unusual about the threads of torch's pool for tasks (at::launch), if it has been started."""
    names = _names_of_threads()
    if _POOL not in names:
        return USUAL
    given = torch.tensor([_SMALLEST, _DENORMAL, _ONE, _MINUS_ONE, _ONE], dtype=torch.int32, device="cpu")
    found = _in_tasks()(given.view(torch.float32), _TASKS * names.count(_POOL))
    said = {_in_words(*(int(bits) for bits in row.view(torch.int32).tolist())) for row in found} - {""}
    return f"at least one thread: {'; '.join(sorted(said))}" if said else USUAL
