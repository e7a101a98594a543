"""torch.export exports the whole operator for any size of the batch, and the program is right after a file, too.

An exported program is deployed without the operator's Python code. So a size, a value or a state that is read during
the export becomes a constant of the program. The operator is exported with its batch declared dynamic, written to a
file, read back, and called at the exported size and at another one. The values must keep the same allowance as in eager
calls, and the program that was read must give the same bits as the one that was written.

torch.export makes a size of 1 a constant, and so also half of a batch of three rows. So the exported batch is large
enough for an operator that works on halves or quarters of it.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from harness.errors import Failure
from harness.judging.bits import hold_bits
from harness.judging.property import INTEGRATION, Property
from harness.judging.scenario import Scenario
from harness.judging.scenarios import smallest
from harness.judging.subject import CANDIDATE_ERRORS, Subject, one_line
from harness.judging.tally import OUTPUTS, Tally
from harness.properties.compile import dynamic_symbol, with_more
from harness.report.levels import PYTORCH

#: How many rows more than the smallest case the exported call has, and the other one.
_MORE = (5, 14)


class _Module(torch.nn.Module):
    """The operator as a module, since torch.export takes modules only."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self._function = function

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self._function(*inputs)


def check(subject: Subject) -> dict[str, Any]:
    """Export at one size; call the program, before and after a file, at two sizes."""
    scenario, other = (with_more(smallest(subject.operator), more) for more in _MORE)
    where = f"[{scenario.describe(subject.operator)}]"
    program = _exported(subject, scenario, where)
    read = _through_a_file(program, where)
    tally = Tally(subject)
    for turn in (scenario, other):
        inputs = tuple(tensor.detach() for tensor in subject.realise(turn).inputs)
        there = f"[{turn.describe(subject.operator)}]"
        written, again = (_called(subject, one, inputs, there) for one in (program, read))
        hold_bits(again, written, "from the file", "as before it was written", there)
        _hold(tally, program, turn)
    nodes = [str(node.target) for node in program.graph.nodes if node.op == "call_function"]
    return {**tally.figures(), "nodes": len(nodes), "dynamic": dynamic_symbol(scenario)}


def _exported(subject: Subject, scenario: Scenario, where: str) -> torch.export.ExportedProgram:
    symbol = dynamic_symbol(scenario)
    dynamic = tuple(
        {dim: torch.export.Dim.DYNAMIC for dim, rule in enumerate(arg.shape) if rule == symbol}
        for arg in subject.operator.inputs
    )
    inputs = tuple(tensor.detach() for tensor in subject.realise(scenario).inputs)
    try:
        with warnings.catch_warnings():  # the candidate does not cause torch's warnings while it traces
            warnings.simplefilter("ignore")
            return torch.export.export(
                _Module(subject.function), inputs, dynamic_shapes={"inputs": dynamic}, strict=False
            )
    except CANDIDATE_ERRORS as error:
        raise Failure(
            f"torch.export raised {one_line(error)}, but should export the operator for any {symbol} {where}"
        ) from error


def _through_a_file(program: torch.export.ExportedProgram, where: str) -> torch.export.ExportedProgram:
    file = io.BytesIO()
    try:
        torch.export.save(program, file)
        file.seek(0)
        return torch.export.load(file)
    except CANDIDATE_ERRORS as error:
        raise Failure(
            f"the exported program raised {one_line(error)} on its way through a file, but should be read back {where}"
        ) from error


def _called(
    subject: Subject, program: torch.export.ExportedProgram, inputs: tuple[Any, ...], where: str
) -> dict[str, Any]:
    try:
        found = program.module()(*inputs)
    except CANDIDATE_ERRORS as error:
        raise Failure(
            f"the exported program raised {one_line(error)}, but should take any size that was declared dynamic {where}"
        ) from error
    found = (found,) if isinstance(found, torch.Tensor) else found
    return {arg.name: y for arg, y in zip(subject.operator.outputs, found, strict=True)}


def _hold(tally: Tally, program: torch.export.ExportedProgram, scenario: Scenario) -> None:
    """Compare the program's outputs with the oracle. The Failure has no scenario: its script would call eagerly."""
    subject = tally.subject
    tally.subject = replace(subject, function=program.module())
    try:
        tally.run(scenario, OUTPUTS)
    except Failure as failure:
        raise failure.prefixed("of the exported program, ") from failure
    finally:
        tally.subject = subject


PROPERTY = Property(
    "export",
    "torch.export exports the whole operator for any batch, and a file restores it",
    check,
    view=INTEGRATION,
    level=PYTORCH,
    dtypes=("float32",),
    why_only="what is exported is the same in every dtype",
)
