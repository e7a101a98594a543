"""`backends.base.check_arguments` checks a call against the contract, also while torch traces or batches it."""

from __future__ import annotations

import re

import pytest
import torch
from torch import Tensor

from backends.base import check_arguments
from spec.contract import Draw, Operator


def arguments(operator: Operator, case: str = "small") -> list[Tensor]:
    made = operator.ordinary(operator.case(case).sizes, Draw(0))
    return [arg.cast(made[arg.name], torch.float64) for arg in operator.inputs]


def checked(operator: Operator, *tensors: Tensor) -> tuple[Tensor, ...]:
    """The first step of an implementation in Python, and then the reference."""
    check_arguments(operator, *tensors)
    return operator.forward(*tensors)


def test_it_returns_the_sizes(operator: Operator) -> None:
    for case in operator.cases:
        if "small" in case.tags:
            assert check_arguments(operator, *arguments(operator, case.name)) == case.sizes


def test_it_names_the_argument_that_is_wrong(operator: Operator) -> None:
    for index, arg in enumerate(operator.inputs):
        good = arguments(operator)
        for wrong, error in [
            (None, TypeError),
            (good[index].to_sparse(), TypeError),
            (good[index].to(torch.int64 if arg.is_floating else torch.float64), TypeError),
            (good[index].unsqueeze(0), ValueError),
        ]:
            with pytest.raises(error, match=f"^{operator.name}: {arg.name} was .*but should be "):
                check_arguments(operator, *good[:index], wrong, *good[index + 1 :])


def is_shared(operator: Operator, expression: str) -> bool:
    """Whether a size occurs in more than one place; a size that occurs once may have any value."""
    words = [word for arg in operator.inputs for text in arg.shape for word in re.findall(r"\w+", text)]
    symbols = re.findall(r"[A-Za-z_]\w*", expression)
    return not symbols or any(words.count(symbol) > 1 for symbol in symbols)


def test_it_sees_one_wrong_size_anywhere(operator: Operator) -> None:
    for index, arg in enumerate(operator.inputs):
        for dim in (dim for dim, expression in enumerate(arg.shape) if is_shared(operator, expression)):
            wrong = arguments(operator)
            wrong[index] = torch.cat([wrong[index], wrong[index].narrow(dim, 0, 1)], dim)
            with pytest.raises(ValueError, match=r"was .*but should be .* = .*, where "):
                check_arguments(operator, *wrong)


def test_it_sees_mixed_dtypes_and_devices(operator: Operator) -> None:
    for index, arg in list(enumerate(operator.inputs))[1:]:
        good = arguments(operator)
        with pytest.raises(TypeError, match=f"float32, but should be {arg.dtype or torch.float64}"):
            check_arguments(operator, *good[:index], good[index].float(), *good[index + 1 :])
        with pytest.raises(TypeError, match="on meta, but should be on cpu"):
            check_arguments(operator, *good[:index], good[index].to("meta"), *good[index + 1 :])


def measured(operator: Operator, *tensors: Tensor) -> Tensor:
    """A result that depends on every size that is returned."""
    sizes = check_arguments(operator, *tensors)
    return tensors[0] * sum(factor * size for factor, size in enumerate(sizes.values(), start=1))


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_it_is_traced_without_a_graph_break(traced: Operator, dynamic: bool) -> None:
    """With constant sizes before the reference; with symbolic sizes alone, since to trace a reference takes longest."""
    step = measured if dynamic else checked
    torch.compiler.reset()
    compiled = torch.compile(step, backend="eager", fullgraph=True, dynamic=dynamic)
    tensors = arguments(traced)
    torch.testing.assert_close(compiled(traced, *tensors), step(traced, *tensors))
    with pytest.raises(Exception, match="but should be"):  # torch wraps the ValueError in a class of its own
        compiled(traced, *tensors[:-1], tensors[-1].unsqueeze(0))


def test_it_sees_logical_shapes_under_vmap(operator: Operator) -> None:
    tensors = arguments(operator)
    batched = torch.func.vmap(lambda *args: checked(operator, *args))(*(torch.stack([x, x.flip(0)]) for x in tensors))
    for together, alone in zip(batched, operator.forward(*tensors), strict=True):
        torch.testing.assert_close(together[0], alone)


def test_it_needs_no_data(operator: Operator) -> None:
    assert all(y.device.type == "meta" for y in checked(operator, *(x.to("meta") for x in arguments(operator))))
