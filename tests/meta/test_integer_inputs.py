"""Labels, indices and masks: inputs with dtypes and ranges of their own, which have no gradients."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from harness.discovery import operator
from harness.judging.combinations import combinations_of
from harness.judging.contract_check import admit
from harness.judging.judge import judge
from harness.judging.scenario import LAYOUTS, Scenario, lay_out, layouts_of, realise
from harness.judging.scenarios import of_layouts, representative
from harness.judging.subject import Subject
from harness.judging.wrong_calls import wrong_calls
from harness.properties import all_properties
from harness.report.cell import FAIL, NOT_RUN, PASS
from harness.running.candidate_process import Limits
from harness.running.isolation import Isolation
from harness.running.selection import Selection, slots
from spec.contract import Draw, TensorArg
from tests.meta.picked_rows import OPERATOR

HERE = Path(__file__).parent
#: What a plain function of PyTorch does not claim.
_OTHERS = ("export", "compile", "reduce-overhead", "opcheck", "error-messages")


def right(input: Tensor, table: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    """The operator, with checks that name the argument."""
    for name, tensor, shape in (
        ("table", table, (table.shape[0], input.shape[1]) if input.dim() == 2 and table.dim() == 2 else None),
        ("labels", labels, (input.shape[0],) if input.dim() == 2 else None),
        ("mask", mask, tuple(input.shape)),
    ):
        if shape is None or tuple(tensor.shape) != shape:
            raise ValueError(f"{name} had shape {tuple(tensor.shape)}, but should have {shape}; input {input.shape}")
        if tensor.device != input.device:
            raise ValueError(f"input was on {input.device}, but should be where {name} is, on {tensor.device}")
    if table.dtype != input.dtype or not input.is_floating_point():
        raise TypeError(f"table was {table.dtype}, but should be as input, {input.dtype}, a real dtype")
    return torch.where(mask, input * table[labels], torch.zeros((), dtype=input.dtype, device=input.device))


def ignores_the_mask(input: Tensor, table: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    return input * table[labels] + 0 * mask


def reads_labels_as_contiguous(input: Tensor, table: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    flat = torch.as_strided(labels, labels.shape, (1,)) if labels.numel() else labels
    return torch.where(mask, input * table[flat], 0)


def last_label_has_no_gradient(input: Tensor, table: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    known = torch.cat([table[:-1], table[-1:].detach()])
    return torch.where(mask, input * known[labels], 0)


def cell(function: Callable[..., Any], property: str, dtype: torch.dtype = torch.float32) -> Any:
    return judge(Subject(OPERATOR, "it", "cpu", dtype, function), all_properties()[property])


def test_the_contract_is_admitted() -> None:
    admit(OPERATOR)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_a_right_function_passes(dtype: torch.dtype) -> None:
    for name, property in all_properties().items():
        if name in _OTHERS or not property.is_asked("cpu", str(dtype).removeprefix("torch.")):
            continue
        found = cell(right, name, dtype)
        assert found.verdict in (PASS, NOT_RUN), f"{name}: {found.reason}"


@pytest.mark.parametrize(
    ("function", "property", "says"),
    [
        (ignores_the_mask, "forward-parity", "output was"),
        (reads_labels_as_contiguous, "layouts", "labels"),
        (last_label_has_no_gradient, "vjp-parity", "gradient of table"),
    ],
)
def test_a_wrong_function_fails(function: Callable[..., Any], property: str, says: str) -> None:
    found = cell(function, property)
    assert found.verdict == FAIL
    assert says in found.reason


def test_sums_by_index_in_half_precision_are_told() -> None:
    """Where all rows have one label, torch adds up 33 of them in bfloat16: in other dtypes it is right."""
    found = cell(right, "combinations", torch.bfloat16)
    assert found.verdict == FAIL
    assert "gradient of table" in found.reason


@pytest.mark.parametrize(("name", "verdict"), [("right", PASS), ("reads_labels_as_contiguous", FAIL)])
def test_a_function_of_another_process_gets_them_too(name: str, verdict: str) -> None:
    selection = Selection(
        spec_paths=(HERE / "picked_rows.py",),
        operators=("picked_rows",),
        candidates=(f"picked_rows={HERE / 'test_integer_inputs.py'}:{name}",),
        dtypes=("float32",),
        devices=("cpu",),
    )
    (slot,) = slots(selection)
    isolation = Isolation(selection, Limits())
    found = isolation.judge(slot, "layouts")
    isolation.stop()
    assert found.verdict == verdict, found.reason


def test_values_are_in_their_range_and_have_their_dtypes() -> None:
    call = realise(OPERATOR, Scenario((("batch", 500), ("features", 3), ("classes", 7))), torch.float16)
    input, table, labels, mask = call.inputs
    assert (input.dtype, table.dtype, labels.dtype, mask.dtype) == (
        torch.float16,
        torch.float16,
        torch.int64,
        torch.bool,
    )
    assert labels.unique().tolist() == list(range(7))
    assert mask.unique().tolist() == [False, True]
    exact = call.to_float64().inputs
    assert [tensor.dtype for tensor in exact] == [torch.float64, torch.float64, torch.int64, torch.bool]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_memory_around_an_index_is_an_index(layout: str) -> None:
    values = torch.tensor([[3, 1, 4], [1, 5, 2]])
    laid = lay_out(values, layout)
    whole = torch.as_strided(laid, (laid.untyped_storage().nbytes() // 8,), (1,), 0)
    assert set(whole.tolist()) <= {1, 2, 3, 4, 5}


def test_offsets_rise_from_the_first_to_the_last_and_no_layout_repeats_them() -> None:
    varlen = operator("attention_varlen")
    (offsets,) = (arg for arg in varlen.inputs if arg.offsets)
    sizes = {"tokens": 20, "heads": 1, "width": 2, "sequences": 9}
    families = ("normal", *(family.name for family in varlen.families))
    for scenario in (Scenario(tuple(sizes.items()), values=name, seed=seed) for name in families for seed in range(4)):
        values = realise(varlen, scenario, torch.float32).inputs[3]
        assert (values.dtype, len(values), int(values[0]), int(values[-1])) == (torch.int32, 10, 0, 20)
        assert bool((values.diff() >= 0).all()), scenario
    assert layouts_of(offsets) == ("contiguous", "transposed", "strided", "padded", "offset")
    asked = [*of_layouts(varlen), *(call.scenario for call in combinations_of(varlen).calls)]
    laid = {dict(scenario.layouts).get("cu_seqlens", "contiguous") for scenario in asked}
    assert {"strided", "padded"} <= laid <= set(layouts_of(offsets))


def test_a_size_of_offsets_alone_is_free_and_others_are_not() -> None:
    varlen = operator("attention_varlen")
    sizes = representative(varlen).sizes
    inputs = realise(varlen, Scenario(tuple(sizes.items())), torch.float32).inputs
    wrong = wrong_calls(varlen, sizes, inputs)
    assert {call.argument for call in wrong if " with size " in call.what} == {"query", "key", "value"}


def test_what_a_contract_cannot_say() -> None:
    with pytest.raises(ValueError, match="offsets should be integers of one dimension"):
        TensorArg("starts", ("batch", "2"), differentiable=False, dtype=torch.int32, offsets=True)
    with pytest.raises(ValueError, match="count was 1, but should be 2 or more"):
        Draw(0).offsets(1, 0, 5)
    with pytest.raises(ValueError, match="labels was differentiable, but should not be"):
        TensorArg("labels", ("batch",), dtype=torch.int64)
    with pytest.raises(ValueError, match="high was 2, but should be above low, 2"):
        Draw(0).integers((3,), 2, 2)
