"""`--sanitize` with candidates: what they compile is built with AddressSanitizer and UBSan; a finding is one cell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from harness.properties import all_properties
from harness.report.cell import FAIL, NOT_RUN, PASS, Cell
from harness.report.levels import SAFE
from harness.running.candidate_process import Limits
from harness.running.isolation import Isolation
from harness.running.sanitizers import in_words
from harness.running.selection import Selection, slots

SOURCE = Path(__file__).parent / "native" / "sanitized.cpp"
PROPERTY = "sanitizers"
#: Each dtype has a loop of its own: one is right, two have a fault. All are in one library, which is compiled once.
COMPILED = f"""
import ctypes
import torch
from torch.utils import cpp_extension

library = ctypes.CDLL(cpp_extension.load("copies", [r"{SOURCE}"], is_python_module=False))

def copied(x):
    x = x.detach().contiguous()
    to, name = torch.empty_like(x), str(x.dtype).removeprefix("torch.")
    copy = getattr(library, f"copy_{{name}}")
    copy(ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(to.data_ptr()), ctypes.c_int64(x.numel()))
    return to

def mlp(input, hidden_weights, hidden_bias, output_weights, output_bias):
    copied(hidden_bias)
    hidden = torch.relu(torch.nn.functional.linear(input, hidden_weights, hidden_bias))
    return torch.nn.functional.linear(hidden, output_weights, output_bias)
"""
IN_PYTHON = """
import torch

def mlp(input, hidden_weights, hidden_bias, output_weights, output_bias):
    hidden = torch.relu(torch.nn.functional.linear(input, hidden_weights, hidden_bias))
    return torch.nn.functional.linear(hidden, output_weights, output_bias)
"""
HEAP = """=================================================================
==7==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x602000000b14 at pc 0x7f bp 0x7f sp 0x7f
READ of size 4 at 0x602000000b14 thread T0
    #0 0x7f3e6a1 in __interceptor_memcpy ../../../../src/libsanitizer/sanitizer_common/interceptors.inc:827
    #1 0x7f3e6a2 in copy<float>(float const*) /my/kernels/tail.cpp:21
    #2 0x7f3e6a3 in ffi_call (/lib/x86_64-linux-gnu/libffi.so.8+0x6)

0x602000000b14 is located 0 bytes to the right of 4-byte region [0x602000000b10,0x602000000b14)
"""
OVERFLOW = """/my/kernels/hash.cpp:31:17: runtime error: signed integer overflow: 17 * 31 cannot be represented
"""


def test_a_report_becomes_one_line() -> None:
    assert in_words(HEAP) == (
        "AddressSanitizer: heap-buffer-overflow, READ of size 4, in copy<float>(float const*) at "
        "/my/kernels/tail.cpp:21, 0 bytes to the right of 4-byte region"
    )
    assert in_words(OVERFLOW) == (
        "UBSan: signed integer overflow: 17 * 31 cannot be represented at /my/kernels/hash.cpp:31"
    )
    assert in_words("==7==ERROR: AddressSanitizer: SEGV on unknown address\n") == "AddressSanitizer: SEGV"
    assert in_words("==7==WARNING: AddressSanitizer failed to allocate 0xfff bytes\n") == ""


def _cells(text: str, file: Path, *dtypes: str) -> dict[str, Cell]:
    """The cell of each dtype."""
    file.write_text(text)
    selection = Selection(candidates=(f"mlp={file}:mlp",), dtypes=dtypes, devices=("cpu",), sanitize=True)
    isolation = Isolation(selection, Limits())
    try:
        return {slot.id.rpartition("-")[2]: isolation.judge(slot, PROPERTY) for slot in slots(selection)}
    finally:
        isolation.stop()


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Cell]:
    file = tmp_path_factory.mktemp("sanitizers") / "compiled.py"
    return _cells(COMPILED, file, "float32", "float64", "float16")


@pytest.mark.parametrize(
    ("dtype", "words"),
    [
        ("float32", ()),
        ("float64", ("heap-buffer-overflow, READ of size 8, in copy_float64 at", "sanitized.cpp:22", "in forward")),
        ("float16", ("UBSan: signed integer overflow", "sanitized.cpp:32", "in forward")),
    ],
)
def test_a_finding_is_a_failed_cell(judged: dict[str, Cell], dtype: str, words: tuple[str, ...]) -> None:
    cell = judged[dtype]
    assert cell.verdict == (FAIL if words else PASS), cell.reason
    assert all(part in cell.reason for part in words), cell.reason
    assert cell.figures["watched"] == ["copies.so"]


def test_a_candidate_in_python_has_nothing_to_watch(tmp_path: Path) -> None:
    cell = _cells(IN_PYTHON, tmp_path / "in_python.py", "float32")["float32"]
    assert (cell.verdict, cell.reason) == (
        NOT_RUN,
        "the candidate compiled nothing in its process, so AddressSanitizer and UBSan had nothing to watch",
    )


def test_it_is_asked_of_candidates_with_sanitize_alone(tmp_path: Path) -> None:
    file = tmp_path / "in_python.py"
    file.write_text(IN_PYTHON)
    held = all_properties()[PROPERTY]
    assert (held.level, held.outside) == (SAFE, True)
    usual = Selection(operators=("mlp",), candidates=(f"mlp={file}:mlp",), dtypes=("float32",), devices=("cpu",))
    backend = replace(usual, candidates=(), backends=("aten-cpp",))
    asked = [slots(replace(given, sanitize=on))[0].is_asked(held) for given in (usual, backend) for on in (False, True)]
    assert asked == [False, True, False, False]


def test_a_compiler_without_sanitizers_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh_compilers: Callable[[], None]
) -> None:
    compiler = tmp_path / "bare"
    compiler.write_text('#!/bin/sh\necho "${1#-print-file-name=}"\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    fresh_compilers()
    cell = _cells(IN_PYTHON, tmp_path / "in_python.py", "float32")["float32"]
    assert cell.verdict == NOT_RUN
    assert cell.reason.endswith("bare has no libasan.so, which AddressSanitizer needs: install it, or set CXX to a g++")
