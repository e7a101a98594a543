"""The integers of a source: what is found in Python, in C++, in strings and in files that a file names."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import pytest
import torch
from torch import Tensor

from backends.autocast import by_rule
from harness.discovery import operator, operators
from harness.judging import harvested
from harness.judging.constants import constants_of, reached
from harness.judging.judge import judge
from harness.judging.subject import Subject
from harness.properties import all_properties
from harness.report.cell import FAIL, NOT_RUN, PASS
from harness.running.candidate_files import file_of_function
from tests.meta.tiers import first_alone

pytestmark = pytest.mark.usefixtures("with_the_store")

MLP = operator("mlp")


@pytest.mark.parametrize(
    ("source", "numbers"),
    [
        ("if rows >= 311 and rows % 24: pass", [24, 311]),
        ("BLOCK = 4 * 32 + 1", [32, 128, 129]),
        ("LIMIT = 1 << 10", [1024]),
        ("many = rows >> 5 and x << 77", [32]),
        ("c = 1.0 / 5040 + rows / 312 + 1 / 313", [312, 313]),
        ("x = 10**4 // 3", [10, 3333, 10000]),
        ("x = -77", [77]),
        ("x = True, 1, 4, 3.5, 'a 99'", []),
        ("@triton.jit\ndef kernel(x, BLOCK: tl.constexpr = 640): pass", [640]),
        ("SOURCE = '''template <int N = 48> void run(at::Tensor x) { f<0x60>(x); }'''", [48, 96]),
        ("def f(:", []),
        ("x = 10**9999", [10, 9999]),
        ("x = 1 << 9999999", []),
        ("x = 3 << 7", [128, 384]),
    ],
)
def test_python(tmp_path: Path, source: str, numbers: list[int]) -> None:
    file = tmp_path / "kernels.py"
    file.write_text(source)
    assert constants_of([file]) == numbers


@pytest.mark.parametrize(
    ("source", "numbers"),
    [
        ("constexpr int kThreads = 256; // 999 in a comment", [256]),
        ("/* 77\n78 */ __launch_bounds__(192) void f();", [192]),
        ("int x = 0x40, y = 1'000u, z = 0777, w = 3.5f + 12.0;", [64, 1000]),
        ("auto n = 1 << 9; auto m = 3 * 40;", [40, 120, 512]),
        ("auto n = rows >> 6; bits <<= 23; x << 999;", [64]),
        ("kernel<<<48, 256>>>(x); kernel<<< 49 >>>(x);", [48, 49, 256]),
        ("p = p * r + 1.0 / 5040 + 1e0f / 720 + .5/24; q = rows / 312 + 1 / 313;", [312, 313]),
        ("q = 1.0 / 50.0 + 2.0 * 51;", [51]),
        ("x = n * 1.5E-61 + 2.e+62 + 3e-63 - 64;", [64]),
        ('#pragma arch "x86-64-v4"\nconst char* source = "int n = 77;";', [77]),
        ("int x1024 = a12; float y = 1e10;", []),
    ],
)
def test_c(tmp_path: Path, source: str, numbers: list[int]) -> None:
    file = tmp_path / "kernels.cu"
    file.write_text(source)
    assert constants_of([file]) == numbers


def test_files_that_a_file_names_are_read(tmp_path: Path) -> None:
    (tmp_path / "csrc").mkdir()
    (tmp_path / "main.py").write_text("from .helper import f\nimport other\nload(sources=['csrc/kernels.cu'])")
    (tmp_path / "helper.py").write_text("A = 101")
    (tmp_path / "other.py").write_text("A = 102")
    (tmp_path / "csrc" / "kernels.cu").write_text('#include "parts.cuh"\n#include <vector>\nint x = 103;')
    (tmp_path / "csrc" / "parts.cuh").write_text('#include "kernels.cu"\nint y = 104;')
    (tmp_path / "unrelated.py").write_text("A = 105")
    assert constants_of([tmp_path / "main.py"]) == [101, 102, 103, 104]
    assert len(reached([tmp_path / "main.py"])) == 5
    assert constants_of([tmp_path / "nothing.py"]) == []


def forgets(rows: int) -> Subject:
    def function(*inputs: Tensor) -> Tensor:
        (output,) = MLP.forward(*inputs)
        return output if len(output) != rows else torch.cat([output[:-1], 0.9 * output[-1:]])

    return Subject(MLP, "candidate", "cpu", torch.float32, function)


@pytest.mark.parametrize(("rows", "verdict"), [(614, FAIL), (1227, FAIL), (613, FAIL), (612, FAIL), (611, PASS)])
def test_sizes_around_a_constant_are_asked(tmp_path: Path, rows: int, verdict: str) -> None:
    file = tmp_path / "kernels.py"
    file.write_text("THRESHOLD = 613")
    subject = forgets(rows)
    subject = replace(subject, files=(file,))
    cell = judge(subject, all_properties()["harvested-sizes"])
    assert cell.verdict == verdict, cell
    if verdict == FAIL:
        assert f"batch={rows}" in cell.reason
    else:
        assert cell.figures["constants"] == [613]


def test_many_steps_are_asked_without_their_expected_results(tmp_path: Path) -> None:
    """Each run behind these makes every step in Python."""
    sequence, property = operator("lltm_sequence"), all_properties()["harvested-sizes"]

    def forgets(*inputs: Tensor) -> tuple[Tensor, ...]:
        states, cell = sequence.forward(*inputs)
        return states if len(states) <= 211 else torch.cat([states[:-1], 0.9 * states[-1:]]), cell

    file = tmp_path / "kernels.py"
    file.write_text("STEPS = 211")
    subject = Subject(sequence, "candidate", "cpu", torch.float32, forgets, files=(file,))
    cell = judge(subject, property)
    assert cell.verdict == FAIL
    assert re.search(r"steps=2[1-4]", cell.reason), cell
    assert property.foreseen is not None
    assert not [scenario for scenario in property.foreseen(subject) if harvested.is_long(sequence, scenario)]


@dataclass(frozen=True)
class Rare:
    """MLP with a row of zeros beyond a threshold, if something else holds too."""

    holds: Callable[..., bool]

    def __call__(self, *inputs: Tensor) -> Tensor:
        (output,) = MLP.forward(*inputs)
        return output if not self.holds(*inputs) else torch.cat([output[:-1], 0 * output[-1:]])


@pytest.mark.parametrize(
    ("holds", "says"),
    first_alone(
        [
            (lambda x, *_: len(x) > 613 and not torch.is_grad_enabled(), "under? .*no_grad|inference_mode|no_grad"),
            (lambda x, *_: len(x) > 613 and len(x) % 3 == 0, "batch=(624|615|1227|612|633)"),
            (lambda x, w, b, *_: len(x) > 613 and not w.requires_grad and b.requires_grad, "only .*hidden_bias"),
            (lambda x, *_: len(x) > 61 and len(x) == 2 * x.shape[1], "ratios-.*batch=124, input_features=62"),
            (lambda x, w, *_: len(w) > 61 and len(x) == 3 * len(w), "ratios-.*batch=186, .*hidden_size=62"),
            (
                lambda x, w, *_: len(w) == 61 and not torch.is_grad_enabled(),
                "hidden_size-61-others-equal.*hidden_size=61",
            ),
            (lambda x, *_: x.shape[1] > 60_000, "input_features=6"),
            (lambda *_: False, ""),
        ],
        count=3,
    ),
)
def test_a_constant_is_asked_together_with_other_choices(tmp_path: Path, holds: Callable[..., bool], says: str) -> None:
    file = tmp_path / "kernels.py"
    file.write_text("FEW, MANY, LARGE = 61, 613, 60_000")
    subject = Subject(MLP, "candidate", "cpu", torch.float32, Rare(holds), files=(file,))
    cell = judge(subject, all_properties()["harvested-sizes"])
    assert cell.verdict == (FAIL if says else PASS), cell
    assert re.search(says, cell.reason), cell.reason


@pytest.mark.parametrize(
    ("dtype", "holds", "says"),
    [
        (torch.float32, lambda x, w, b, *_: len(x) > 613 and bool((x @ w.t() + b < 0).all()), "values dead-layer"),
        (torch.float64, lambda x, *_: len(x) > 613, "batch="),
        (torch.float16, lambda x, w, b, *_: len(x) > 613 and bool((x @ w.t() + b < 0).all()), "values dead-layer"),
        (
            torch.float32,
            lambda x, *_: len(x) > 613 and x.requires_grad and bool((x == x[:1]).all()) and bool(x[0].diff().all()),
            "input repeated",
        ),
        (torch.float64, lambda *_: False, ""),
    ],
)
def test_a_constant_is_asked_with_other_values_and_in_other_dtypes(
    tmp_path: Path, dtype: torch.dtype, holds: Callable[..., bool], says: str
) -> None:
    file = tmp_path / "kernels.py"
    file.write_text("MANY = 613")
    cell = judge(
        Subject(MLP, "candidate", "cpu", dtype, Rare(holds), files=(file,)), all_properties()["harvested-sizes"]
    )
    assert cell.verdict == (FAIL if says else PASS), cell
    assert re.search(says, cell.reason), cell.reason


def test_two_sizes_are_the_same_constant(tmp_path: Path) -> None:
    file = tmp_path / "kernels.py"
    file.write_text("FEW = 34")
    rare = Rare(lambda x, w, *_: len(w) == len(x) == 34 and not torch.is_grad_enabled())
    cell = judge(
        Subject(MLP, "candidate", "cpu", torch.float32, rare, files=(file,)), all_properties()["harvested-sizes"]
    )
    assert cell.verdict == FAIL, cell
    assert "batch-hidden_size-34-others-equal" in cell.reason


def test_beyond_a_constant_a_size_is_no_multiple_of_small_blocks() -> None:
    sizes = {size for _, size in harvested.beyond(MLP, [613, 1219])}
    assert sizes == {617, 1223, 624, 1248}


def test_two_sizes_have_every_ratio_beyond_a_constant_though_three_are_too_large() -> None:
    found = [dict(scenario.sizes) for scenario in harvested.ratios(operators()["lltm"], [41])]
    assert any(sizes["state_size"] == 4 * sizes["input_features"] == 168 for sizes in found)


def test_the_file_of_a_decorated_function_is_its_own() -> None:
    assert file_of_function(by_rule(MLP)(lru_cache(forgets))) == (Path(__file__),)


def test_without_a_source_or_a_number_it_is_not_asked(tmp_path: Path) -> None:
    held = all_properties()["harvested-sizes"]
    cell = judge(forgets(0), held)
    assert cell.verdict == NOT_RUN
    assert "its source is not known" in cell.reason
    file = tmp_path / "kernels.py"
    file.write_text("x = 2")
    subject = forgets(0)
    subject = replace(subject, files=(file,))
    assert "no integer in its source" in judge(subject, held).reason


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("endless.cpp", "/* " * 350_000),
        ("digits.cpp", f"int x = {'7' * 5000}; int y = {'7' * 5000} * 640;"),
        ("sum.py", f"x = {' + '.join(['0'] * 950)}"),
    ],
    ids=["comment", "digits", "sum"],
)
def test_odd_sources_are_read(tmp_path: Path, name: str, text: str) -> None:
    """A comment that is looked for from each of its beginnings takes hours; long numbers and sums raise."""
    file, beside = tmp_path / "kernels.py", tmp_path / name
    file.write_text(f"if rows >= 311: f({name!r})")
    beside.write_text(text)
    assert [number for number in constants_of([file]) if number != 640] == [311]
