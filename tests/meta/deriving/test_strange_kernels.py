"""Kernels of libraries that failed beside a plain reference, or had none: scans, packed batches, softmax with
logsumexp, masks, losses with weights, sorts; and the faults that must still be found in them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from harness.deriving.contract import derive_from
from harness.deriving.saving import source
from harness.errors import Failure
from harness.judging.judge import judge
from harness.judging.scenario import Scenario
from harness.judging.subject import Subject
from harness.judging.tally import Tally
from harness.properties import all_properties
from harness.report.cell import FAIL, NO_EVIDENCE, PASS, Cell
from spec.contract import Operator
from tests.meta.tiers import WHOLE

Function = Callable[..., Any]


def _cell(contract: Operator, function: Function, property: str, dtype: torch.dtype = torch.float32) -> Cell:
    return judge(Subject(contract, "it", "cpu", dtype, function), all_properties()[property])


def _shapes(function: Function, example: tuple[Any, ...]) -> list[tuple[str, ...]]:
    return [arg.shape for arg in derive_from(function, example).operator.inputs]


# --- lengths ---------------------------------------------------------------------------------------------------------


def selective_scan(u: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """A loop over the steps of u: longer dt, b and c are not refused, and their ends are not read."""
    state, found = u.new_zeros(u.shape[0], u.shape[2], a.shape[1]), []
    for t in range(u.shape[1]):
        decay = torch.exp(-F.softplus(dt[:, t, :, None]) * torch.exp(a))
        state = decay * state + u[:, t, :, None] * b[:, t, None, :]
        found.append((state * c[:, t, None, :]).sum(-1))
    return torch.stack(found, 1)


def test_what_a_loop_reads_the_beginning_of_is_as_long_as_the_loop() -> None:
    steps = [torch.randn(2, 5, 3), torch.randn(2, 5, 3), torch.randn(3, 4), torch.randn(2, 5, 4), torch.randn(2, 5, 4)]
    shapes = _shapes(selective_scan, tuple(steps))
    assert shapes == [("batch", "u_1", "u_2"), ("batch", "u_1", "u_2"), ("u_2", "a_1"), *[("batch", "u_1", "a_1")] * 2]


def test_a_longer_table_is_a_length_of_its_own() -> None:
    """The table of an embedding may be longer, too, and is nothing's end: x has its own length."""

    def looked_up(x: Tensor, table: Tensor, index: Tensor) -> Tensor:
        return x[:, None] * table[index]

    example = (torch.randn(6), torch.randn(6, 3), torch.tensor([5, 0, 1, 2, 3, 4]))
    assert _shapes(looked_up, example) == [("batch",), ("table_0", "table_1"), ("batch",)]


def router(x: Tensor, k: int = 2) -> tuple[Tensor, Tensor]:
    picked, index = torch.topk(torch.softmax(x, -1), k, -1)
    return picked / picked.sum(-1, keepdim=True), index


def blurred(x: Tensor) -> Tensor:
    return F.avg_pool2d(F.pad(x, (2, 2, 2, 2), mode="reflect"), 5, 1)


def buckets(x: Tensor, table: Tensor) -> Tensor:
    """A table of 4 rows, of which short rows of x need fewer."""
    return x + table[torch.arange(x.shape[1]).clamp_max(3)]


@pytest.mark.parametrize(
    ("function", "example", "shapes"),
    [
        (router, (torch.randn(6, 8),), [("batch", "x_1 + 1")]),
        (blurred, (torch.randn(2, 3, 6, 7),), [("batch", "x_1", "x_2 + 2", "x_3 + 2")]),
        (buckets, (torch.randn(6, 12), torch.randn(4)), [("batch", "x_1"), ("table_0 + 3",)]),
    ],
)
def test_every_length_from_a_least_one_on_is_asked(
    function: Function, example: tuple[Any, ...], shapes: list[tuple[str, ...]]
) -> None:
    found = derive_from(function, example)
    assert [arg.shape for arg in found.operator.inputs] == shapes
    assert f"a length is {shapes[-1][-1]}: the reference refuses 1" in found.found


# --- offsets ---------------------------------------------------------------------------------------------------------


def softmax_of_parts(x: Tensor, offsets: Tensor) -> Tensor:
    return torch.cat([torch.softmax(part, 0) for part in x.split(offsets.diff().tolist())])


def by_segments(x: Tensor, offsets: Tensor) -> Tensor:
    lengths = offsets.diff().long()
    part = torch.repeat_interleave(torch.arange(len(lengths)), lengths)
    places = part[:, None].expand_as(x)
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    largest = wide.new_full((len(lengths), x.shape[1]), -math.inf).scatter_reduce(0, places, wide.detach(), "amax")
    weights = torch.exp(wide - largest[part])
    return (weights / wide.new_zeros(largest.shape).index_add(0, part, weights)[part]).to(x.dtype)


def test_offsets_are_drawn_as_offsets(tmp_path: Path) -> None:
    found = derive_from(softmax_of_parts, (torch.randn(10, 4), torch.tensor([0, 3, 3, 7, 10], dtype=torch.int32)))
    x, offsets = found.operator.inputs
    assert (offsets.offsets, offsets.shape, offsets.high, offsets.dtype) == (
        True,
        ("offsets_0 + 1",),
        "x_0",
        torch.int32,
    )
    assert "offsets has offsets, as in the example: they do not fall, from 0 to x_0" in found.found
    assert "offsets=True" in source(found, tmp_path)
    for property in ("forward-parity", "vjp-parity"):
        assert _cell(found.operator, by_segments, property).verdict == PASS, property
    whole = _cell(found.operator, lambda x, offsets: torch.softmax(x, 0), "forward-parity")
    assert whole.verdict == FAIL
    assert x.is_floating


def test_integers_that_fall_are_no_offsets() -> None:
    def picked(x: Tensor, index: Tensor) -> Tensor:
        return x[index.clamp_max(x.shape[0] - 1)]

    assert not derive_from(picked, (torch.randn(10, 4), torch.tensor([0, 7, 3, 10]))).operator.inputs[1].offsets
    assert not derive_from(picked, (torch.randn(10, 4), torch.tensor([0, 3, 7, 9]))).operator.inputs[1].offsets


# --- softmax ---------------------------------------------------------------------------------------------------------


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.softmax(q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5, -1) @ v


class _Flash(torch.autograd.Function):
    """Backward has the weights of exp(score - logsumexp), and sum(g y) of the output. `part` of the latter is used."""

    part = 1.0

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
        output = torch.softmax(scores, -1) @ v
        ctx.save_for_backward(q, k, v, output, torch.logsumexp(scores, -1, keepdim=True))
        return output

    @classmethod
    def backward(cls, ctx: Any, g: Tensor) -> tuple[Tensor, ...]:  # type: ignore[override]
        q, k, v, output, total = ctx.saved_tensors
        scale = q.shape[-1] ** -0.5
        weights = torch.exp(q @ k.transpose(-1, -2) * scale - total)
        inner = weights * (g @ v.transpose(-1, -2) - cls.part * (g * output).sum(-1, keepdim=True)) * scale
        return inner @ k, inner.transpose(-1, -2) @ q, weights.transpose(-1, -2) @ g


class _WithoutDelta(_Flash):
    part = 0.999


class _TotalInHalf(_Flash):
    """The logsumexp is kept in float16."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
        output = torch.softmax(scores, -1) @ v
        total = torch.logsumexp(scores, -1, keepdim=True)
        ctx.save_for_backward(q, k, v, output, total.half().to(q.dtype))
        return output


def test_backward_may_compute_a_softmax_again_of_its_logsumexp() -> None:
    """Scores of some hundred: exp(score - logsumexp) is off by the last place of the logsumexp."""
    contract = derive_from(attention, (torch.randn(2, 5, 8), torch.randn(2, 6, 8), torch.randn(2, 6, 8))).operator
    property = all_properties()["vjp-parity"]
    for function, verdict in ((_Flash, PASS), (_WithoutDelta, FAIL), (_TotalInHalf, FAIL)):
        cell = judge(Subject(contract, "it", "cpu", torch.float32, function.apply), property)
        assert cell.verdict == verdict, cell.reason


def test_a_gradient_that_is_noise_alone_may_have_more_of_it() -> None:
    """Of two logits both are picked, and with equal cotangents the gradient is 0: 22 of 160 such calls failed."""

    def of_picked(x: Tensor, k: int = 2) -> tuple[Tensor, Tensor]:
        logits, index = torch.topk(x, k, -1)
        return torch.softmax(logits, -1), index

    contract = derive_from(router, (torch.randn(6, 8),)).operator
    sizes, cotangents = (("batch", 3), ("x_1", 1)), (("output_0", "ones"),)
    for seed in range(20):
        tally = Tally(Subject(contract, "it", "cpu", torch.float32, of_picked))
        tally.run(Scenario(sizes, seed=seed, cotangents=cotangents))

    def leaks(x: Tensor, k: int = 2) -> tuple[Tensor, Tensor]:
        weights, index = of_picked(x, k)
        return weights + 1e-6 * (x - x.detach())[..., :k], index

    with pytest.raises(Failure, match="gradient of x was"):
        Tally(Subject(contract, "it", "cpu", torch.float32, leaks)).run(Scenario(sizes, cotangents=cotangents))


def book_softmax(x: Tensor) -> Tensor:
    weights = torch.exp(x - x.amax(-1, keepdim=True))
    return weights / weights.sum(-1, keepdim=True)


def test_the_largest_value_that_is_subtracted_needs_no_gradient() -> None:
    found = derive_from(book_softmax, (torch.randn(4, 7),))
    assert found.reference.shifts
    assert not derive_from(lambda x: x / x.abs().amax(-1, keepdim=True), (torch.randn(4, 7),)).reference.shifts
    assert not derive_from(lambda x: x.exp(), (torch.randn(4, 7),)).reference.shifts
    scenario = Scenario((("batch", 1), ("x_1", 2)), seed=49)
    subject = Subject(found.operator, "it", "cpu", torch.float32, lambda x: torch.softmax(x, -1))
    Tally(subject).run(scenario)  # the gradient was beyond its allowance by a third
    without_largest = _cell(found.operator, lambda x: x.exp() / x.exp().sum(-1, keepdim=True), "forward-parity")
    assert without_largest.verdict == FAIL


def segment_softmax(x: Tensor, index: Tensor) -> Tensor:
    largest = x.new_full((4,), -math.inf).scatter_reduce(0, index, x, "amax")
    weights = torch.exp(x - largest[index])
    return weights / x.new_zeros(4).index_add(0, index, weights)[index]


@pytest.mark.long(WHOLE)
def test_large_values_are_asked_of_a_vector_whose_repetition_would_be_unstable() -> None:
    found = derive_from(segment_softmax, (torch.randn(10), torch.tensor([0, 1, 2, 3, 3, 2, 1, 0, 0, 3])))
    assert not found.operator.family("large-values").repeats

    def overflows(x: Tensor, index: Tensor) -> Tensor:
        weights = torch.exp(x)
        return weights / x.new_zeros(4).index_add(0, index, weights)[index]

    assert _cell(found.operator, overflows, "forward-parity").verdict == FAIL
    assert _cell(found.operator, segment_softmax, "combinations").verdict == PASS


# --- what is not finite ----------------------------------------------------------------------------------------------


def causal(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    later = torch.ones(q.shape[-2], q.shape[-2], dtype=torch.bool).triu(1)
    return torch.softmax((q @ k.transpose(-1, -2)).masked_fill(later, -math.inf), -1) @ v


def by_rows(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Later keys and values are not read."""
    rows = [
        torch.softmax(q[:, t : t + 1] @ k[:, : t + 1].transpose(-1, -2), -1) @ v[:, : t + 1] for t in range(q.shape[1])
    ]
    return torch.cat(rows, 1) if rows else v * 1


def test_nan_behind_a_mask_need_not_show() -> None:
    contract = derive_from(causal, (torch.randn(2, 5, 4), torch.randn(2, 5, 4), torch.randn(2, 5, 3))).operator
    for function, verdict in (
        (by_rows, PASS),
        (causal, PASS),
        (lambda q, k, v: by_rows(q.nan_to_num(), k.nan_to_num(), v.nan_to_num()), FAIL),
    ):
        cell = _cell(contract, function, "forward-parity")
        assert cell.verdict == verdict, cell.reason


@pytest.mark.parametrize("function", [torch.relu, lambda x: x.amax(-1), lambda x: x.clamp(-1, 1)])
def test_nan_that_every_value_would_change_must_show(function: Function) -> None:
    def named(x: Tensor) -> Tensor:
        return function(x)  # type: ignore[no-any-return]

    contract = derive_from(named, (torch.randn(6, 4),)).operator
    assert (
        _cell(contract, lambda x: function(x.nan_to_num(-3.0, math.inf, -math.inf)), "forward-parity").verdict == FAIL
    )


def ordered(x: Tensor) -> tuple[Tensor, Tensor]:
    values, index = torch.sort(x, -1, descending=True)
    return values, index


def test_nan_may_be_sorted_to_either_end() -> None:
    contract = derive_from(ordered, (torch.randn(6, 4),)).operator

    def last(x: Tensor) -> tuple[Tensor, Tensor]:
        index = torch.argsort(-x, -1)
        return x.gather(-1, index), index

    def upwards(x: Tensor) -> tuple[Tensor, Tensor]:
        values, index = torch.sort(x, -1)
        return values, index

    assert _cell(contract, last, "forward-parity").verdict == PASS
    assert _cell(contract, upwards, "forward-parity").verdict == FAIL


@pytest.mark.long(WHOLE)
def test_a_scale_beside_integers_is_nan_of_nan() -> None:
    def quantised(x: Tensor) -> tuple[Tensor, Tensor]:
        scale = x.float().abs().amax(-1, keepdim=True).clamp_min(1e-12) / 127
        return torch.round(x.float() / scale).to(torch.int8), scale.squeeze(-1).to(x.dtype)

    contract = derive_from(quantised, (torch.randn(6, 8),)).operator
    assert _cell(contract, quantised, "forward-parity").verdict == PASS
    assert _cell(contract, lambda x: quantised(x.nan_to_num()), "forward-parity").verdict == FAIL
    assert _cell(contract, quantised, "combinations").verdict == PASS


# --- operations ------------------------------------------------------------------------------------------------------


def weighted_loss(x: Tensor, labels: Tensor, weight: Tensor) -> Tensor:
    return F.cross_entropy(x, labels, weight=weight, label_smoothing=0.1)


def by_formula(x: Tensor, labels: Tensor, weight: Tensor) -> Tensor:
    logs = torch.log_softmax(x.float(), -1)
    own, wide = weight.float()[labels], weight.float()
    right = 0.9 * -(logs.gather(1, labels[:, None])[:, 0] * own) - 0.1 / x.shape[1] * (logs * wide).sum(-1)
    return (right.sum() / own.sum()).to(x.dtype)


def test_an_input_without_a_gradient_is_a_constant() -> None:
    found = derive_from(weighted_loss, (torch.randn(6, 5), torch.arange(6) % 5, torch.rand(5) + 0.5))
    assert [arg.differentiable for arg in found.operator.inputs] == [True, False, False]
    assert "weight has no gradient: an operation of the reference has none of it" in found.found
    assert _cell(found.operator, by_formula, "vjp-parity").verdict == PASS
    assert _cell(found.operator, lambda x, y, w: by_formula(x, y, w.sqrt()), "vjp-parity").verdict == FAIL
    folded = derive_from(F.batch_norm, (torch.randn(2, 3, 4), torch.randn(3), torch.rand(3) + 0.5))
    assert [arg.differentiable for arg in folded.operator.inputs] == [True, False, False]


def test_a_table_and_a_window_that_are_made_in_a_reference() -> None:
    def framed(x: Tensor) -> Tensor:
        parts = torch.stft(x, 16, 4, window=torch.hann_window(16), center=False, return_complex=True)
        slopes = torch.tensor([2.0**-power for power in range(parts.shape[-2])]).to(x.dtype)
        return (parts.real**2 + parts.imag**2) * slopes[:, None]

    def by_products(x: Tensor) -> Tensor:
        n = torch.arange(16, dtype=torch.float64)
        window, angles = 0.5 - 0.5 * torch.cos(math.pi * n / 8), math.pi * n[:, None] * torch.arange(9) / 8
        frames = x.unfold(-1, 16, 4)
        cos, sin = ((window[:, None] * part).to(x.dtype) for part in (angles.cos(), angles.sin()))
        slopes = torch.tensor([2.0**-power for power in range(9)]).to(x.dtype)
        return (((frames @ cos) ** 2 + (frames @ sin) ** 2) * slopes).transpose(-1, -2)

    contract = derive_from(framed, (torch.randn(2, 40),)).operator
    assert _cell(contract, by_products, "forward-parity").verdict == PASS
    assert _cell(contract, lambda x: by_products(x) * (1 + 1e-5), "forward-parity").verdict == FAIL


def test_a_reference_that_adds_up_in_a_half_type_says_so() -> None:
    def pooled(x: Tensor) -> Tensor:
        return F.avg_pool2d(x, 3, stride=1, padding=1, count_include_pad=False)

    contract = derive_from(pooled, (torch.randn(2, 3, 5, 6),)).operator
    cell = _cell(contract, pooled, "vjp-parity", torch.bfloat16)
    if cell.verdict == NO_EVIDENCE:
        assert "A reference that computes in float32, by .float() and at last .to(x.dtype)" in cell.reason
