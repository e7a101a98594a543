"""The contract itself: its expressions, its look-ups, and what every operator in `spec/` must state."""

from __future__ import annotations

from itertools import product

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.flop_counter import FlopCounterMode

from spec.contract import BACKWARD, DTYPES, FORWARD, PHASES, Case, Draw, Family, Operator, TensorArg, evaluate

SIZES = {"batch": 7, "state_size": 5}


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("3", 3),
        ("batch", 7),
        ("3*state_size", 15),
        ("batch + 2*state_size - 1", 16),
        ("(batch + 2)*state_size", 45),
        ("-batch", -7),
        ("batch / 2", 3.5),
        ("(state_size - 1)**-0.5", 0.5),
    ],
)
def test_an_expression_is_evaluated(expression: str, value: float) -> None:
    assert evaluate(expression, SIZES) == value


def test_an_unknown_symbol_is_a_key_error() -> None:
    with pytest.raises(KeyError, match="heads"):
        evaluate("3*heads", SIZES)


@pytest.mark.parametrize("expression", ["batch if batch else 1", "max(batch, 1)", "batch % 2", "'batch'", "batch.real"])
def test_what_is_not_arithmetic_is_a_value_error(expression: str) -> None:
    with pytest.raises(ValueError, match="is not an arithmetic expression"):
        evaluate(expression, SIZES)
    with pytest.raises(ValueError, match="is not an arithmetic expression"):
        TensorArg("weights", (expression,))


def test_a_shape_is_shown_in_symbols_and_in_numbers() -> None:
    matrix = TensorArg("weights", ("3*state_size", "state_size + batch"))
    vector = TensorArg("bias", ("3*state_size",))
    scalar = TensorArg("scale", ())
    assert (matrix.rule(), matrix.shape_for(SIZES)) == ("(3*state_size, state_size + batch)", (15, 12))
    assert (vector.rule(), vector.shape_for(SIZES)) == ("(3*state_size,)", (15,))
    assert (scalar.rule(), scalar.shape_for(SIZES)) == ("()", ())


def test_a_draw_is_its_seeds_and_nobody_elses() -> None:
    def values(seed: int) -> list[float]:
        draw = Draw(seed)
        drawn = (draw.normal((5,), 2.0), draw.choice((5,), (1.0, 2.0, 3.0)), draw.uniform((5,), -1.0, 1.0))
        return torch.cat(drawn).tolist()

    first = values(0)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        before = torch.get_rng_state()
        assert values(0) == first
        assert torch.equal(torch.get_rng_state(), before)
    assert values(1) != first


def test_a_draw_keeps_its_range() -> None:
    draw = Draw(0)
    assert set(draw.choice((200,), (1.0, -0.5)).tolist()) == {1.0, -0.5}
    uniform = draw.uniform((200,), 2.0, 3.0)
    assert 2 <= uniform.min() < 2.1 < 2.9 < uniform.max() < 3


def test_names_are_unique_and_documented(operator: Operator) -> None:
    names = [[arg.name for arg in operator.inputs + operator.outputs]]
    names += [[case.name for case in operator.cases], ["normal", *(family.name for family in operator.families)]]
    for group in names:
        assert len(set(group)) == len(group)
    assert all(case.origin for case in operator.cases)
    assert all(family.purpose for family in operator.families)


def test_look_ups_find_by_name_and_name_what_there_is(operator: Operator) -> None:
    for case in operator.cases:
        assert operator.case(case.name) is case
    for family in operator.families:
        assert operator.family(family.name) is family
    assert operator.family("normal").name == "normal"
    with pytest.raises(KeyError, match=f"no case 'smal'; it has {operator.cases[0].name}, "):
        operator.case("smal")
    with pytest.raises(KeyError, match="no value family 'norma'; it has normal, "):
        operator.family("norma")


def test_the_signature_names_inputs_and_outputs(operator: Operator) -> None:
    assert operator.signature.startswith(f"{operator.name}({operator.inputs[0].name}")
    assert operator.signature.endswith(f"{operator.outputs[-1].name})")


def test_each_case_gives_every_symbol_a_size(operator: Operator) -> None:
    for case in operator.cases:
        assert set(case.sizes) == set(operator.symbols()), case.name


def tensors_of(operator: Operator, case: Case, family: Family, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    """The inputs in the operator's order, with names checked."""
    tensors = family.make(case.sizes, Draw(0), dtype)
    assert list(tensors) == [arg.name for arg in operator.inputs]
    return list(tensors.values())


def test_a_family_makes_finite_inputs_of_the_declared_shapes(
    operator: Operator, case: Case, families: list[Family]
) -> None:
    for family, dtype in product(families, DTYPES):
        for arg, tensor in zip(operator.inputs, tensors_of(operator, case, family, dtype), strict=True):
            assert tensor.dtype == (torch.float64 if arg.is_floating else torch.int64), family.name
            assert tensor.shape == arg.shape_for(case.sizes), family.name
            assert bool(arg.cast(tensor, dtype).isfinite().all()), (family.name, arg.name, dtype)


def test_the_benchmarked_cases_have_inputs_too(operator: Operator) -> None:
    """Of the declared shapes. No number is drawn: all cases together have 10^9 elements."""
    for case in operator.cases:
        if "benchmark" in case.tags:
            with FakeTensorMode():
                tensors = tensors_of(operator, case, operator.family("normal"))
            for arg, tensor in zip(operator.inputs, tensors, strict=True):
                assert tensor.shape == arg.shape_for(case.sizes)


def test_the_non_finite_family_keeps_to_its_rows(operator: Operator, small_case: Case) -> None:
    output = operator.outputs[0]
    rows = output.shape[output.row_dim or 0] if output.shape else operator.inputs[0].shape[0]
    for family in operator.families:
        if family.name == "non-finite":
            for arg, tensor in zip(operator.inputs, tensors_of(operator, small_case, family), strict=True):
                assert tensor.shape == arg.shape_for(small_case.sizes)
                must_be_finite = tensor.movedim(arg.shape.index(rows), 0)[3:] if rows in arg.shape else tensor
                assert bool(must_be_finite.isfinite().all()), arg.name


def test_forward_and_vjp_return_the_declared_shapes(operator: Operator) -> None:
    for case in operator.cases:
        if "size" in case.tags:
            inputs = tensors_of(operator, case, operator.family("normal"))
            outputs = operator.forward(*inputs)
            assert [y.shape for y in outputs] == [arg.shape_for(case.sizes) for arg in operator.outputs]
            gradients = operator.vjp(tuple(inputs), tuple(torch.ones_like(y) for y in outputs))
            pairs = zip(operator.inputs, gradients, strict=True)
            assert all(g.shape == arg.shape_for(case.sizes) for arg, g in pairs if arg.differentiable)


def test_intermediates_are_the_steps_of_forward(operator: Operator, small_case: Case) -> None:
    inputs = tensors_of(operator, small_case, operator.family("normal"))
    steps = operator.intermediates(*inputs)
    assert steps
    for arg, output in zip(operator.outputs, operator.forward(*inputs), strict=True):
        if arg.name in steps:
            assert torch.equal(steps[arg.name], output)


def test_the_flops_are_those_that_torch_counts(operator: Operator, small_case: Case) -> None:
    made = zip(operator.inputs, tensors_of(operator, small_case, operator.family("normal")), strict=True)
    inputs = [t.requires_grad_(arg.differentiable) for arg, t in made]
    with FlopCounterMode(display=False) as forward:
        outputs = operator.forward(*inputs)
    with FlopCounterMode(display=False) as backward:
        torch.autograd.grad(outputs, [t for t in inputs if t.requires_grad], [torch.ones_like(y) for y in outputs])
    itemsize = torch.float64.itemsize
    # The reference masks pairs of different parts of a packed tensor; nobody need compute their products.
    parts = small_case.sizes["sequences"] if any(arg.offsets for arg in operator.inputs) else 1
    assert operator.cost(FORWARD, small_case.sizes, itemsize).flops == forward.get_total_flops() // parts
    assert operator.cost(BACKWARD, small_case.sizes, itemsize).flops == backward.get_total_flops() // parts


def test_the_bytes_are_those_of_what_goes_in_and_out(operator: Operator, small_case: Case) -> None:
    inputs = tensors_of(operator, small_case, operator.family("normal"))
    outputs = operator.forward(*inputs)
    gradients = operator.vjp(tuple(inputs), tuple(torch.ones_like(y) for y in outputs))
    once = sum(t.numel() * t.itemsize for t in (*inputs, *outputs))
    forward, backward, both = (operator.cost(phase, small_case.sizes, torch.float64.itemsize) for phase in PHASES)
    assert forward.bytes == once
    found = zip(operator.inputs, gradients, strict=True)
    assert backward.bytes == once + sum(t.numel() * t.itemsize for arg, t in found if arg.differentiable)
    assert (both.bytes, both.flops) == (forward.bytes + backward.bytes, forward.flops + backward.flops)


def test_an_unknown_phase_has_no_cost(operator: Operator, small_case: Case) -> None:
    with pytest.raises(ValueError, match="phase was 'sideways', but should be one of forward, backward"):
        operator.cost("sideways", small_case.sizes, 4)
