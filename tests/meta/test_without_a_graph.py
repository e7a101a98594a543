"""An output without a graph is right where the loss depends on no input that requires grad, and wrong elsewhere."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from harness.discovery import operator
from harness.errors import Failure
from harness.judging.scenario import Scenario
from harness.judging.subject import Subject


def _gradients(of: str, form: str, function: Callable[..., Any], scenario: Scenario) -> dict[str, Tensor]:
    subject = Subject(operator(of), "candidate", "cpu", torch.float32, function).in_form(operator(of).in_form(form))
    call = subject.realise(scenario)
    return subject.gradients(call, subject.outputs(call, scenario), scenario)


def _one_step(gates: Tensor, tokens: Tensor, initial: Tensor | None = None) -> Tensor:
    return tokens.clone() if initial is None else (gates * initial.unsqueeze(-1) + tokens).detach()


def _detached(input: Tensor, *others: Tensor) -> Tensor:
    return operator("mlp").forward(input, *others)[0].detach()


@pytest.mark.parametrize("batch", [0, 2])
def test_the_first_gate_of_a_scan_from_zero_takes_no_part(batch: int) -> None:
    scenario = Scenario(sizes=(("batch", batch), ("channels", 3), ("length", 1)), wanted=("gates",))
    assert not bool(_gradients("scan", "from-zero", _one_step, scenario)["gates"].any())


@pytest.mark.parametrize(
    ("of", "form", "function", "scenario"),
    [
        ("scan", "initial", _one_step, Scenario((("batch", 2), ("channels", 3), ("length", 1)), wanted=("gates",))),
        (
            "mlp",
            "",
            _detached,
            Scenario(
                (("batch", 2), ("input_features", 3), ("hidden_size", 4), ("output_size", 2)),
                values="dead-layer",
                wanted=("input",),
            ),
        ),
        (
            "mlp",
            "",
            _detached,
            Scenario(
                (("batch", 0), ("input_features", 3), ("hidden_size", 4), ("output_size", 2)),
                wanted=("hidden_weights",),
            ),
        ),
        (
            "mlp",
            "",
            _detached,
            Scenario(
                (("batch", 2), ("input_features", 3), ("hidden_size", 4), ("output_size", 2)),
                cotangents=(("output", "zero"),),
            ),
        ),
    ],
    ids=["initial state", "gradient 0 at these values", "empty batch", "cotangent 0"],
)
def test_elsewhere_it_is_wrong(of: str, form: str, function: Callable[..., Any], scenario: Scenario) -> None:
    with pytest.raises(Failure, match="no output requires grad, but should"):
        _gradients(of, form, function, scenario)
