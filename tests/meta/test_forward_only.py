"""`--forward-only`: a kernel for inference, which has no backward, is judged by its forward alone."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from harness import discovery
from harness.candidate import by_forward, candidate, forward_name
from harness.cli.main import main
from harness.deriving.contract import derive_from
from harness.errors import UnknownName, UsageError
from harness.judging.contract_check import admit
from harness.judging.judge import judge
from harness.judging.subject import Subject
from harness.properties import all_properties
from harness.rendering.causes import causes
from harness.report.cell import FAIL, NOT_RUN, PASS
from harness.report.levels import GRADIENTS, VALUES, standings
from harness.report.report import Report
from harness.running import selection_options
from harness.running.selection import Selection, slots
from harness.running.verify import verify
from harness.sanitizing import launching
from spec.forward_only import forward_only

OPERATORS = discovery.operators()
#: A package's kernel, as they are: it takes tensors that need a gradient, and returns one that has none.
KERNEL = """
import torch

@torch.no_grad()
def normalised(input, weight=None, residual=None, eps=1e-6):
    total = input if residual is None else (input.float() + residual.float()).to(input.dtype)
    wide = total.double()
    scaled = wide * (wide.square().mean(-1, keepdim=True) + eps).rsqrt()
    output = (scaled if weight is None else scaled * weight.double()).to(input.dtype)
    return output if residual is None else (output, total)

@torch.no_grad()
def doubled(x):
    return 2 * x

@torch.no_grad()
def tripled(x):
    return 3 * x
"""
REFERENCE = """
import torch

def slow(x):
    return x + x

def example():
    return (torch.randn(4, 6),)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "kernel.py").write_text(KERNEL)
    (tmp_path / "reference.py").write_text(REFERENCE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _read(*arguments: str) -> Selection:
    parser = argparse.ArgumentParser()
    selection_options.add(parser.add_argument)
    return selection_options.read(parser.parse_args(arguments))


def _judged(folder: Path, *arguments: str) -> tuple[int, Report]:
    report = folder / "report.json"
    code = main(["judge", *arguments, "--quick", "--dtype", "float32", f"--report={report}", "-q"])
    return code, Report.read(report)


@pytest.mark.parametrize("name", OPERATORS)
def test_every_contract_has_one_of_its_forward(name: str) -> None:
    operator = OPERATORS[name]
    alone = forward_only(operator, forward_name(name))
    admit(alone)
    assert [form.form for form in alone.every_form()] == [form.form for form in operator.every_form()]
    assert not any(form.has_gradient for form in alone.every_form())
    assert (alone.cases, alone.families) == (operator.cases, operator.families)


def test_a_kernel_for_inference_is_judged_by_a_contract_of_the_suite(folder: Path) -> None:
    code, report = _judged(folder, "--candidate=rms_norm=kernel.py:normalised", "--forward-only")
    assert code == 0
    assert {cell.operator for cell in report.cells} == {"rms_norm_forward"}
    found = {standing.level: standing.verdict for standing in standings(report.cells, report.suite)}
    assert (found[VALUES], found[GRADIENTS]) == (PASS, NOT_RUN)


@pytest.mark.parametrize(("function", "code"), [("doubled", 0), ("tripled", 1)])
def test_by_a_reference(folder: Path, function: str, code: int) -> None:
    reference = ("--reference=reference.py:slow", "--example=reference.py:example")
    found, report = _judged(folder, f"--candidate=kernel.py:{function}", *reference, "--forward-only")
    assert found == code
    assert {cell.operator for cell in report.cells} == {"slow"}
    values = {cell.verdict for cell in report.cells if cell.property == "forward-parity"}
    assert values == ({FAIL} if code else {PASS})


def test_without_the_option_there_is_one_cause_and_it_names_the_option(folder: Path) -> None:
    code, report = _judged(folder, "--candidate=rms_norm=kernel.py:normalised")
    assert code == 1
    (cause,) = causes(report.cells, report.suite)
    assert cause.level == GRADIENTS
    assert len(cause.cells) > 5
    assert "\n  - a kernel for inference, which has no backward, is judged by --forward-only" in cause.cells[0].reason


def test_a_wrong_output_is_told_where_the_gradient_is_missing_too() -> None:
    """The first call that lacks a gradient has right outputs; a later one has wrong ones."""

    def of_rows(input: Tensor) -> Any:
        wrong = 1 + (input.shape[0] > 1) * (input.dim() == 2)
        return torch.softmax(input.detach(), -1) * wrong

    subject = Subject(OPERATORS["softmax"], "mine", "cpu", torch.float32, of_rows)
    cell = judge(subject, all_properties()["sizes"])
    assert (cell.verdict, cell.level) == (FAIL, "")
    assert cell.reason.startswith("output was ")


def test_in_a_notebook() -> None:
    def inference(input: Tensor) -> Tensor:
        with torch.no_grad():
            return torch.softmax(input.double(), -1).to(input.dtype)

    asked = {"dtypes": "float32", "properties": ("forward-parity", "vjp-parity", "sizes")}
    assert verify(inference, "softmax", forward_only=True, **asked).ok  # type: ignore[arg-type]
    assert not verify(inference, "softmax", **asked).ok  # type: ignore[arg-type]
    report = verify(inference, reference=lambda x: x.softmax(-1), example=(torch.randn(3, 5),), forward_only=True)
    assert report.ok


def test_contracts_from_outside(folder: Path) -> None:
    assert main(["contract", "reference.py:slow", "--example=reference.py:example", "--save=contract.py"]) == 0
    found = _read("--candidate=slow=kernel.py:doubled", "--spec-path=contract.py", "--forward-only")
    places = slots(found)
    assert {slot.operator.name for slot in places} == {"slow_forward"}
    assert not places[0].operator.has_gradient
    again = launching.chosen(launching.options(places[0], found))
    assert again.operator.name == "slow_forward", "a process of its own finds the same contract"


def test_the_process_that_starts_early_is_the_one_that_is_asked(folder: Path) -> None:
    (text,) = _read("--candidate=rms_norm=kernel.py:normalised", "--forward-only").candidates
    assert text == by_forward("rms_norm=kernel.py:normalised")
    assert candidate(text).operator == "rms_norm_forward"


def test_wrong_use_says_what_to_do(folder: Path) -> None:
    with pytest.raises(UsageError, match="--forward-only was given without --candidate: backends are judged with"):
        _read("--backend=aten-cpp", "--forward-only")
    with pytest.raises(UsageError, match="or, if no gradient is to be judged, pass --forward-only or write"):
        derive_from(torch.no_grad()(lambda x: 2 * x), (torch.ones(2, 3),))
    with pytest.raises(UnknownName, match="unknown operator 'rms'; did you mean 'rms_norm'"):
        _read("--candidate=rms=kernel.py:normalised", "--forward-only")
