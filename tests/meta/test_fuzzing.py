"""Hostile calls: right functions answer or refuse all of them, wrong ones are found, and a crash names its call."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from harness.discovery import operator
from harness.errors import Failure, UsageError
from harness.fuzzing.calls import HostileCall
from harness.fuzzing.outcome import REFUSED, RIGHT, judge_call
from harness.fuzzing.session import NAME, Fuzzing, chosen
from harness.fuzzing.spoiling import SPOILINGS, Impossible, spoil
from harness.judging.judge import judge
from harness.judging.subject import Subject
from harness.report.cell import FAIL, PASS, Cell
from harness.running.isolation import Isolation, Limits
from harness.running.selection import Selection, slots
from tests.meta.conftest import ROOT, environment
from tests.zoo.honest.lltm import Cell as Honest

LLTM = operator("lltm")
SIZES = (("batch", 2), ("input_features", 3), ("state_size", 4))


def _subject(function: Callable[..., Any]) -> Subject:
    return Subject(LLTM, "candidate", "cpu", torch.float32, function)


def _fuzzed(function: Callable[..., Any], turns: int = 6) -> Cell:
    """The first failing cell, or the last one, of at most that many turns of draws."""
    for turn in range(turns):
        cell = judge(_subject(function), Fuzzing(seed=turn, examples=25).property)
        if cell.verdict != PASS:
            break
    return cell


class Dense(Honest):
    """Right, and refuses tensors without memory: a storage may be smaller than the sizes require."""

    def check(self, *inputs: Tensor) -> None:
        super().check(*inputs)
        for arg, tensor in zip(LLTM.inputs, inputs, strict=True):
            ends = [(size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True)]
            reach = (1 + tensor.storage_offset() + sum(ends)) * tensor.element_size()
            if tensor.numel() and tensor.untyped_storage().nbytes() < reach:
                raise ValueError(f"{arg.name} had too small a storage, but should have {reach} bytes")

    def __call__(self, *inputs: Any) -> Any:
        if len(inputs) != len(LLTM.inputs):
            raise TypeError(f"lltm takes {len(LLTM.inputs)} arguments, but was given {len(inputs)}")
        for arg, value in zip(LLTM.inputs, inputs, strict=True):
            if not isinstance(value, Tensor):
                raise TypeError(f"{arg.name} was {type(value).__name__}, but should be a Tensor")
            if value.is_nested:
                raise TypeError(f"{arg.name} was nested, but should be dense")
        return super().__call__(*inputs)


class TakesIntegers(Dense):
    """An integer bias is silently converted."""

    def check(self, *inputs: Tensor) -> None:
        input, weights, bias, *states = inputs
        super().check(input, weights, bias if bias.is_floating_point() else bias.to(input.dtype), *states)

    def gates(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor) -> Tensor:
        return super().gates(input, weights, bias.to(input.dtype), old_h)


class Broadcasts(Dense):
    """A bias of one element is expanded to all."""

    def check(self, *inputs: Tensor) -> None:
        input, weights, bias, *states = inputs
        super().check(input, weights, bias.expand(weights.shape[:1]) if bias.shape == (1,) else bias, *states)


class ReadsBehindTheView(Dense):
    """The storage is read from its beginning, whatever the offset and the strides are."""

    def new_cell(self, old_cell: Tensor, candidate: Tensor, input_gate: Tensor) -> Tensor:
        return super().new_cell(old_cell, candidate, input_gate)

    def __call__(self, *inputs: Any) -> Any:
        self.check(*inputs)
        *others, old_cell = inputs
        plain = old_cell.as_strided(old_cell.shape, torch.empty(old_cell.shape).stride(), 0)
        return super().__call__(*others, plain)


class HidesTheName(Dense):
    """The message only says that something is wrong."""

    def check(self, *inputs: Tensor) -> None:
        try:
            super().check(*inputs)
        except (TypeError, ValueError):
            raise ValueError("wrong argument") from None


class AssertsInside(Dense):
    """An argument that should be refused causes an internal assertion."""

    def check(self, *inputs: Tensor) -> None:
        try:
            super().check(*inputs)
        except (TypeError, ValueError) as error:
            raise RuntimeError(f"INTERNAL ASSERT FAILED at kernel.cpp:12, {error}") from None


def test_a_right_function_answers_or_refuses_everything() -> None:
    cell = _fuzzed(Dense(), turns=1)
    assert cell.verdict == PASS, cell.reason
    assert cell.figures["calls"] > 15
    assert {REFUSED, RIGHT} <= set(cell.figures["came out"])


@pytest.mark.parametrize(
    ("wrong", "kind", "number", "says"),
    [
        (TakesIntegers, "of another dtype", 5, "silently accepted .*bias of another dtype"),
        (Broadcasts, "with one of a dimension", 0, "silently accepted"),
        (HidesTheName, "transposed", 1, "should name the argument 'weights'"),
        (AssertsInside, "sparse", 0, "should refuse the argument before it comes to an internal error"),
        (ReadsBehindTheView, "as it is, after padding", 2, "new_h of a hostile call was wrong"),
    ],
)
def test_a_wrong_function_is_told(wrong: type[Dense], kind: str, number: int, says: str) -> None:
    name = {"transposed": "weights", "as it is, after padding": "old_cell"}.get(kind, "bias")
    name = "weights" if kind == "sparse" else name
    call = HostileCall(SIZES, ((name, kind, number),), seed=1)
    assert judge_call(_subject(Dense()), call) in (REFUSED, RIGHT)
    with pytest.raises(Failure, match=says):
        judge_call(_subject(wrong()), call)


@pytest.mark.parametrize("wrong", [HidesTheName, AssertsInside])
def test_a_session_finds_it_and_prints_the_call(wrong: type[Dense]) -> None:
    cell = _fuzzed(wrong())
    assert cell.verdict == FAIL
    script = cell.figures["reproducer"]
    assert "replay(" in script
    found: dict[str, Any] = {}
    exec(script.partition("replay(\n")[0], found)  # the printed call can be parsed, and fails again
    with pytest.raises(Failure):
        judge_call(_subject(wrong()), found["scenario"])


@pytest.mark.parametrize("kind", sorted(SPOILINGS))
def test_every_spoiling_makes_something(kind: str) -> None:
    """Or says that it cannot, for example for a tensor without dimensions."""
    made = 0
    for tensor in (torch.randn(3, 4), torch.randn(4), torch.randn(()), torch.randn(0, 4)):
        for number in range(14):
            try:
                spoil(tensor, kind, number)
            except Impossible:
                continue
            made += 1
    assert made > 0


def test_the_compiled_backends_are_fuzzed_and_the_others_if_asked() -> None:
    names = {slot.backend for slot in chosen(Selection(operators=("lltm",), dtypes=("float32",)))}
    assert names == {"aten-cpp", "cpu-fused", "cuda-raw-pointer", "cuda-accessor", "cuda-fused"}
    asked = chosen(Selection(operators=("lltm",), backends=("python-autograd",), dtypes=("float32",)))
    assert {slot.backend for slot in asked} == {"python-autograd"}
    with pytest.raises(UsageError, match="nothing to fuzz"):
        chosen(Selection(operators=("lltm",), devices=("cuda-emulated",), candidates=(), backends=("triton",)))


@pytest.mark.parametrize(("larger", "verdict"), [((), PASS), ((130,), FAIL)])
def test_a_kernel_for_larger_sizes_is_reached_if_one_is_asked_for(larger: tuple[int, ...], verdict: str) -> None:
    def wrong_from_100_on(*inputs: Any) -> Any:
        new_h, new_cell = Dense()(*inputs)
        return (new_h * 1.5, new_cell) if max(new_h.shape) >= 100 else (new_h, new_cell)

    assert judge(_subject(wrong_from_100_on), Fuzzing(examples=50, larger=larger).property).verdict == verdict


@pytest.mark.parametrize("name", ["input", "old_cell"])
def test_each_argument_is_spoilt_in_each_way_before_any_call_is_drawn(name: str) -> None:
    """A check of the storage that is one element off for one argument, whatever the seed is."""
    place = [arg.name for arg in LLTM.inputs].index(name)

    def takes_one_element_less(*inputs: Any) -> Any:
        whole = list(inputs)
        given = whole[place]
        if isinstance(given, Tensor) and not given.is_nested and given.layout == torch.strided:
            storage = given.untyped_storage()
            if storage.nbytes() == given.numel() * given.element_size() - given.element_size():
                whole[place] = torch.zeros(given.shape, dtype=given.dtype)
        return Dense()(*whole)

    cell = judge(_subject(takes_one_element_less), Fuzzing(seconds=20, examples=1).property)
    assert cell.verdict == FAIL
    assert f"{name} without storage" in cell.reason
    assert judge(_subject(Dense()), Fuzzing(seconds=1, examples=1).property).verdict == PASS


def test_a_shipped_backend_stands_a_short_session() -> None:
    (slot,) = slots(Selection(operators=("lltm",), backends=("aten-cpp",), devices=("cpu",), dtypes=("float32",)))
    cell = judge(slot.subject(), Fuzzing(examples=25).property)
    assert cell.verdict == PASS, cell.reason


@pytest.mark.parametrize(
    "spoilt",
    [
        ("input", "without storage", 1),
        ("weights", "without storage", 0),
        ("old_cell", "nested", 0),
        ("input", "nested", 1),
        ("bias", "no tensor", 0),
    ],
    ids=lambda spoilt: "-".join(map(str, spoilt)),
)
@pytest.mark.parametrize("grad", [False, True])
def test_what_a_session_found_stays_mended(spoilt: tuple[str, str, int], grad: bool) -> None:
    """A read outside of memory, a dispatcher error without an argument's name, a None as an undefined tensor."""
    (slot,) = slots(Selection(operators=("lltm",), backends=("aten-cpp",), devices=("cpu",), dtypes=("float32",)))
    assert judge_call(slot.subject(), HostileCall(SIZES, (spoilt,), grad=grad)) == REFUSED


@pytest.mark.parametrize(
    ("form", "spoilt", "arguments"),
    [("rows", (), 1), ("rows", (("input", "nested", 0),), None), ("images", (("input", "flattened", 0),), None)],
    ids=["too few tensors", "nested", "flattened"],
)
def test_a_form_that_reads_an_attribute_off_a_tensor_refuses_as_cleanly(
    form: str, spoilt: tuple[tuple[str, str, int], ...], arguments: int | None
) -> None:
    """A StopIteration, an internal error of nested tensors, and a weight that does not fit a spoilt input."""
    (slot,) = slots(Selection(operators=("layer_norm",), backends=("aten-cpp",), devices=("cpu",), dtypes=("float32",)))
    subject = slot.subject().in_form(slot.operator.in_form(form))
    sizes = dict.fromkeys(subject.operator.symbols(), 2)
    call = HostileCall(tuple(sizes.items()), spoilt, arguments=arguments)
    assert judge_call(subject, call) == REFUSED


def test_a_crash_is_a_finding_with_the_call_that_made_it(tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text("import ctypes\n\ndef crashes(*inputs):\n    ctypes.string_at(0)\n")
    selection = Selection(candidates=(f"lltm={tmp_path}/k.py:crashes",), devices=("cpu",), dtypes=("float32",))
    (slot,) = slots(selection)
    isolation = Isolation(selection, Limits(seconds=200), (Fuzzing(seed=0).property,))
    try:
        cell = isolation.judge(slot, NAME)
    finally:
        isolation.stop()
    assert re.search(r"died of SIGSEGV while hostile-calls was judged, .* \[lltm\(batch=.*\)\]", cell.reason), cell
    script = cell.figures["reproducer"]
    assert f"candidate='lltm={tmp_path}/k.py:crashes'" in script
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, env=environment(), check=False, timeout=300)
    assert done.returncode == -11
