"""The model of rounding: which errors are independent, which are not, and many runs at once."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from harness.discovery import operator, operators
from harness.errors import Failure
from harness.judging.compare import compare
from harness.judging.oracle import expected_of
from harness.judging.scenario import Scenario, realise
from harness.judging.scenarios import smallest
from harness.judging.subject import Subject
from harness.judging.tally import Tally
from harness.properties import recurrence
from spec import blocks, largest_errors, runs
from spec.amplitudes import Amplitudes, UnlikeOneRun
from spec.contract import Operator
from spec.envelope import Envelope, envelopes
from spec.mapped import TwoAlike
from spec.noise import Noise
from spec.rounding import Rounding
from spec.roundoff import UNIT_ROUNDOFF
from tests.zoo import registry as zoo
from tests.zoo.honest.group_norm import Groups

SEQUENCE = operator("lltm_sequence")
(ONE_SUM,) = (control for control in zoo.controls("lltm_sequence") if control.name == "OneSumOfAllTerms")


def sequence(function: Callable[..., Any]) -> Subject:
    return Subject(SEQUENCE, "candidate", "cpu", torch.float32, function)


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def noise(values: Tensor, seed: int = 0, number: int = 0) -> Tensor:
    """The errors of amplitude 1."""
    own = values.clone()
    Noise(seed).add(own, torch.ones_like(values), 0.0, number)
    return own - values


def of(function: Callable[[], Tensor], dtype: torch.dtype = torch.float32) -> Envelope:
    (made,) = envelopes(lambda: (function(),), (function().to(dtype),), dtype)
    return made


# random errors


def test_noise_is_even_and_independent_of_run_operation_and_value() -> None:
    values, enough = normal(1000, 100), 5 / math.sqrt(1e5)
    one = noise(values)
    assert -1 <= float(one.min()) < -0.999
    assert 0.999 < float(one.max()) < 1
    assert abs(float(one.mean())) < enough
    assert float(one.square().mean()) == pytest.approx(1 / 3, rel=enough)
    for other in (noise(values, seed=1), noise(values, number=1), noise(values.roll(1, 1)), noise(values + 1e-9)):
        assert abs(float(torch.corrcoef(torch.stack([one.flatten(), other.flatten()]))[0, 1])) < enough


def test_what_an_operation_has_in_common_differs_between_runs_operations_and_sizes() -> None:
    def betas(size: int, number: int) -> Tensor:
        own = torch.ones(16 * size, dtype=torch.float64)
        Noise(0, runs=16).add(own, torch.zeros(16 * size, dtype=torch.float64), 1.0, number)
        of_run = own.reshape(16, size)
        assert bool((of_run == of_run[:, :1]).all()), "within one run it is one number"
        return of_run[:, 0] - 1

    found = torch.stack([betas(size, number) for size in range(1, 21) for number in range(10)])
    assert len(found.unique()) == found.numel()
    assert float(found.mean()) == pytest.approx(0, abs=5 / math.sqrt(found.numel()))
    assert float(found.square().mean()) == pytest.approx(1 / 3, rel=5 / math.sqrt(found.numel()))


def test_equal_elements_err_alike_in_every_other_run_and_what_is_exact_not_at_all_in_it() -> None:
    equal = torch.full((100,), math.pi, dtype=torch.float64)
    assert len(noise(equal, seed=0).unique()) == 1
    assert len(noise(equal, seed=1).unique()) == 100
    own, exact = normal(100), torch.arange(100) % 2 == 0
    for seed, errs in ((0, ~exact), (1, torch.ones_like(exact))):
        found = own.clone()
        Noise(seed).add(found, torch.ones_like(own), 0.0, 0, exact)
        assert torch.equal(found != own, errs)


def test_what_is_computed_again_beside_each_element_errs_alike_where_those_are_equal() -> None:
    """Of two equal rows too: their errors add up, and do not average out."""
    equal, row = torch.full((2, 50), math.pi, dtype=torch.float64), normal(50)
    for seed, different in ((0, 50), (1, 100)):
        found = equal.clone()
        Noise(seed).add(found, torch.ones_like(equal), 0.0, 0, torch.ones_like(equal) > 0, beside=row.expand(2, 50))
        assert len(found.unique()) == different
        assert torch.equal(found[0], found[1]) == (seed == 0)


def test_one_rounding_is_nothing_by_itself_and_all_that_it_may_be_in_each_run() -> None:
    values = normal(3, 4)
    assert not blocks.one_rounding(values).any()
    found = runs.rounded_runs(lambda x: (blocks.one_rounding(x),), [values], torch.bfloat16, 0)
    for (change,) in found:
        torch.testing.assert_close(change.abs(), values.abs() * 2**-8, rtol=1e-2, atol=0)
    assert all(0 < int((torch.stack([run[0][k] for run in found]) > 0).sum()) < 16 * 4 for k in range(3))


def test_a_scale_error_of_five_millionths_is_seen_where_groups_have_many_elements() -> None:
    class Larger(Groups):
        def finish(self, output: Tensor, input: Tensor) -> Tensor:
            return super().finish(output * (1 + 5e-6), input)

    norm = operator("group_norm")
    candidate = Subject(norm, "candidate", "cpu", torch.float32, norm.bound(Larger()))
    with pytest.raises(Failure, match="output was"):
        Tally(candidate).run(Scenario.of(norm.case("feature-map")))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_a_value_that_all_have_in_common_and_that_is_exact_is_not_allowed_to_be_another(dtype: torch.dtype) -> None:
    """exp(0) is 1 in every implementation: a thousand values all too large by u are no rounding to a half type."""
    ones = torch.zeros(1000, dtype=torch.float64)
    made = of(lambda: torch.exp(ones), dtype)
    unit = UNIT_ROUNDOFF[dtype]
    assert made.gain < 0.2 * unit
    assert made.largest > 0.9 * unit, "although some of them may be"


def test_noise_of_what_is_not_contiguous_or_empty() -> None:
    values = normal(4, 6)
    transposed = values.clone().t()
    Noise(0, runs=2).add(transposed, torch.ones(6, 4, dtype=torch.float64), 0.0, 0)
    dense = values.t().contiguous()
    Noise(0, runs=2).add(dense, torch.ones(6, 4, dtype=torch.float64), 0.0, 0)
    assert torch.equal(transposed, dense)
    Noise(0, runs=2).add(values[:0], values[:0], 0.0, 0)


def test_equal_rows_err_alike_and_others_do_not() -> None:
    """A gain that 64 equal rows share is not an average over 64 independent rows."""
    row = normal(1, 8)
    one, equal, unlike = (of(lambda x=x: x * 1, torch.bfloat16) for x in (row, row.repeat(64, 1), normal(64, 8)))
    assert equal.gain == pytest.approx(one.gain, rel=0.5)
    assert unlike.gain < 0.4 * one.gain
    assert equal.rms == pytest.approx(one.rms, rel=0.5)


# sums


@pytest.mark.parametrize("terms", [64, 192, 1000])
def test_a_sum_of_equal_terms_may_err_in_one_direction(terms: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sequentially in float32, with some value that is rounded up each time. An extra term is still wrong."""

    def one_after_another(value: float) -> Tensor:
        return torch.from_numpy(np.cumsum(np.full((terms, 1), value, dtype=np.float32), axis=0)[-1]).double()

    drawn = (torch.rand(500, generator=torch.Generator().manual_seed(1)) + 0.5).tolist()
    worst = max(drawn, key=lambda value: abs(float(one_after_another(value)) / (terms * value) - 1))
    x = torch.full((terms, 1), worst, dtype=torch.float64)
    for as_sum in (lambda: x.sum(0), lambda: (x.t() @ torch.ones_like(x)).reshape(1), lambda: x.mean(0) * terms):
        made = of(as_sum)
        assert compare(one_after_another(worst), made).holds
        assert not compare(one_after_another(worst) + worst, made).holds
    monkeypatch.setattr(largest_errors, "_growth", lambda func, terms, args, unit: math.sqrt(terms))
    if terms > 64:
        assert not compare(one_after_another(worst), of(lambda: x.sum(0))).holds, "so the larger allowance is needed"


def test_growth_is_the_root_where_no_term_is_repeated_and_zeros_do_not_count() -> None:
    def growth(function: Any, *args: Any) -> Any:
        return largest_errors._growth(function, 100, args, 2.0**-24)

    mm, total = torch.ops.aten.mm.default, torch.ops.aten.sum.dim_IntList
    left, right = normal(3, 100), normal(100, 4, seed=1)
    assert growth(mm, left, right) == 10
    assert growth(total, left, [1]) == 10
    left[1] = 0.0
    right[:50] = 0.0
    assert growth(mm, left, right) == 10
    assert growth(mm, left, torch.ones(100, 4, dtype=torch.float64)) == 10, "the other factor differs in each term"
    left[2] = 0.75
    alike = growth(mm, left, torch.ones(100, 4, dtype=torch.float64))
    assert alike.tolist() == [[10] * 4, [10] * 4, [50] * 4]
    assert growth(total, left, [1]).tolist() == [10, 10, 50]
    assert growth(total, left, [-1], True).tolist() == [[10], [10], [50]]
    left[2] *= 1 + 1e-6 * normal(100)
    assert growth(total, left, [1])[2] > 25, "a difference of one unit in the last place counts as the same value"


@pytest.mark.parametrize(
    "scenario",
    [
        Scenario(
            (("steps", 5), ("batch", 16), ("input_features", 2), ("state_size", 8)),
            values="zero-gates",
            layouts=(("c0", "expanded"),),
            cotangents=(("h", "ones"), ("c_T", "zero")),
            seed=1,
        ),
        Scenario(
            (("steps", 3), ("batch", 63), ("input_features", 1), ("state_size", 1)),
            values="overflowing-exp",
            layouts=(("weights", "expanded"),),
            cotangents=(("c_T", "ones"),),
        ),
    ],
    ids=lambda scenario: scenario.values,
)
def test_rows_that_are_equal_and_summed_in_one_go(scenario: Scenario) -> None:
    """Two calls for which right implementations were rejected once."""
    Tally(sequence(ONE_SUM.function)).run(scenario)


def test_a_gradient_of_the_weights_that_is_a_ten_thousandth_too_large_is_still_seen() -> None:
    class Larger(type(ONE_SUM.function)):  # type: ignore[misc]
        def d_weights(self, *args: Any) -> Tensor:
            return super().d_weights(*args) * (1 + 1e-4)  # type: ignore[no-any-return]

    with pytest.raises(Failure, match="gradient of weights"):
        Tally(sequence(Larger())).run(Scenario.of(SEQUENCE.cases[0]))


def test_a_reference_that_leaves_float64_is_told_so() -> None:
    with (
        Rounding(torch.bfloat16, 0),
        pytest.raises(TypeError, match=r"made torch\.float32 of float64.*`spec\.blocks\.wide`"),
    ):
        normal(3).float()


# what is added to a product


def begun_with(c: Tensor, a: Tensor, b: Tensor, dtype: torch.dtype) -> Tensor:
    """c + a @ b in that dtype; the terms are added to c one after another."""
    total, a, b = c.to(dtype), a.to(dtype), b.to(dtype)
    for k in range(a.shape[-1]):
        total = total + a[..., k, None] * b[..., k, None, :]
    return total


#: How a reference adds a matrix to a product, or to a part of one.
ADDED: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "behind it": lambda c, a, b: a @ b + c,
    "before it": lambda c, a, b: c + a @ b,
    "of another shape": lambda c, a, b: (a @ b).unflatten(1, (-1, 10)) + c.unflatten(1, (-1, 10)),
    "to a part": lambda c, a, b: (a @ torch.cat((b, b), 1))[:, : b.shape[1]] + c,
    "in two halves": lambda c, a, b: a @ b + c / 2 + c / 2,
    "to a batch": lambda c, a, b: a[None] @ b[None] + c,
    "addmm": torch.addmm,
    "baddbmm": lambda c, a, b: torch.baddbmm(c[None], a[None], b[None]),
}


@pytest.mark.parametrize("equal", [False, True], ids=["different", "equal"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("how", ADDED)
def test_a_sum_may_begin_with_what_is_added_to_a_product(how: str, dtype: torch.dtype, equal: bool) -> None:
    """BLAS adds few rows so, and so does a kernel whose accumulator starts with the bias."""
    a = torch.full((2, 67), 0.37, dtype=dtype).double() if equal else normal(2, 67).to(dtype).double()
    b, c = (0.003 * normal(67, 200)).to(dtype).double(), (-3 * normal(2, 200).abs()).to(dtype).double()
    made = of(lambda: ADDED[how](c, a, b), dtype)
    got = begun_with(c, a, b, dtype).reshape(made.exact.shape)
    assert compare(got, made).holds
    rounded = begun_with(c.to(torch.float16).double(), a, b, dtype).reshape(made.exact.shape)
    assert not compare(rounded, made).holds


def test_what_is_added_to_products_of_elements_is_rounded_once() -> None:
    a, b, c = (normal(67, 67, seed=seed) for seed in range(3))
    made = of(lambda: torch.stack((a @ b, a * b + c))).sigma.view(2, -1)[1]
    alone = of(lambda: a * b + c).sigma
    assert float(made.mean() / alone.mean()) == pytest.approx(1, abs=0.5)  # 16 runs; the growth of 67 terms is 8


@pytest.mark.parametrize(("terms", "is_exact"), [((1.75, 0.25, -1.5), True), ((1 + 2**-12, 0.5, -1 - 2**-12), False)])
@pytest.mark.parametrize("product", [torch.mm, lambda a, b: torch.addmm(0 * a[:, :1], a, b)], ids=["mm", "addmm"])
def test_a_product_is_exact_where_its_partial_sums_are(
    product: Callable[..., Tensor], terms: tuple[float, ...], is_exact: bool
) -> None:
    """Both are 0.5. The second is so only in the end: the sum of its first two terms is no number of bfloat16."""
    a, b = torch.tensor([terms], dtype=torch.float64), torch.ones(3, 1, dtype=torch.float64)
    with Rounding(torch.bfloat16, 0):  # of an even seed, where what is exact errs by the common bias alone
        assert (abs(float(product(a, b)) - 0.5) < 2**-24) is is_exact


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_results_of_elu_that_are_equal_as_stored_are_rounded_equally(dtype: torch.dtype) -> None:
    """Where the slope is the result plus 1, which has few digits. A run of an odd seed rounds each by itself."""
    x = torch.linspace(-6.0001, -5.9999, 64, dtype=torch.float64)

    def slopes(seed: int) -> Tensor:
        with Rounding(dtype, seed), blocks.any_order():
            made: Tensor = torch.ops.aten.elu_backward(torch.ones_like(x), 1, 1, 1, False, x)
        return (made - x.exp()) / x.exp()

    assert float(slopes(8).std()) < 0.02 * float(slopes(9).std())


# sums by index


@pytest.mark.parametrize("equal", [False, True], ids=["different", "equal"])
def test_a_sum_by_index_has_as_many_terms_as_its_index_says(equal: bool) -> None:
    """3000 rows are added to row 0, three to row 1, none to row 2."""
    x = torch.full((3003, 8), 1.1, dtype=torch.float64) if equal else normal(3003, 8).abs()
    index = torch.tensor([0] * 3000 + [1] * 3)
    zeros = torch.zeros(3, 8, dtype=torch.float64)
    envelope = of(lambda: torch.index_add(zeros, 0, index, x))
    exact = torch.index_add(zeros, 0, index, x)
    sigma = envelope.sigma.reshape(3, 8).mean(1)
    assert sigma[0] > 10 * sigma[1] * (exact[0] / exact[1]).mean() / 2
    assert float(sigma[2]) == 0
    right = torch.index_add(zeros.float(), 0, index, x.float())
    assert compare(right, envelope).holds
    for wrong in (right.bfloat16(), torch.index_add(zeros.float(), 0, index[:-1], x.float()[:-1])):
        assert not compare(wrong, envelope).holds


def test_a_running_sum_errs_more_along_the_way() -> None:
    x = normal(4000).abs()
    envelope = of(lambda: x.cumsum(0))
    assert envelope.sigma[-100:].mean() > 20 * envelope.sigma[:100].mean()
    assert compare(x.float().cumsum(0), envelope).holds
    assert not compare(x.bfloat16().cumsum(0), envelope).holds


# many runs at once


def test_runs_at_once_are_those_that_are_made_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """For elementwise operations, which are the same to the last bit."""

    def evaluate(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        return torch.tanh(x) * y + 1, (x * y).sum(1)

    inputs = normal(5, 4), normal(5, 4, seed=1)
    together = runs.rounded_runs(evaluate, inputs, torch.float32, 0)
    monkeypatch.setattr(runs, "_AT_ONCE", 0)
    for one, other in zip(together, runs.rounded_runs(evaluate, inputs, torch.float32, 0), strict=True):
        for a, b in zip(one, other, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    "evaluate",
    [
        lambda x, y: (torch.softmax(x, -1) @ y.mT,),
        lambda x, y: (torch.nn.functional.mse_loss(x, y, reduction="none"),),
        lambda x, y: (torch.softmax(x, -1) * y,),
    ],
    ids=["batched product", "loss", "softmax"],
)
def test_results_that_vmap_folds_are_made_at_once(evaluate: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The order of their elements is that of one run: each run is the same as by itself, but for sums."""
    inputs = normal(3, 5, 4), normal(3, 5, 4, seed=1)
    made, many = [], runs._many
    monkeypatch.setattr(runs, "_many", lambda *given: made.append(many(*given)) or made[-1])
    together = runs.rounded_runs(evaluate, inputs, torch.float32, 0)
    assert [len(found) for found in made] == [runs.RUNS - 1]
    monkeypatch.setattr(runs, "_AT_ONCE", 0)
    for one, other in zip(together, runs.rounded_runs(evaluate, inputs, torch.float32, 0), strict=True):
        for a, b in zip(one, other, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-14)


def test_what_is_folded_in_another_order_is_not_taken_for_the_runs() -> None:
    amplitudes, x = Amplitudes(), normal(3, 5)
    with Rounding(torch.float32, 0, amplitudes):
        x.exp()
    for dim, fits in ((0, True), (1, False)):
        folded = torch.stack([x, x], dim).reshape(6, 5)
        refused = nullcontext() if fits else pytest.raises(UnlikeOneRun)
        with refused, Rounding(torch.float32, 1, amplitudes, runs=2):
            folded.exp()


def _of_positions(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    return (x * torch.sin(torch.arange(x.shape[-1], dtype=x.dtype) / 3) + y,)


UNLIKE_ONE_RUN: dict[str, Any] = {
    "positions": _of_positions,
    "loss": lambda x, y: (torch.nn.functional.huber_loss(x, y),),
    "convolution": lambda x, y: (torch.nn.functional.conv1d(x, y, y[:, 0, 0]),),
    "depthwise": lambda x, y: (torch.nn.functional.conv1d(x, y[:, :1], groups=4),),
    "groups": lambda x, y: (torch.nn.functional.group_norm(x, 2, y[0, :, 0], y[0, :, 1]),),
    "addmm": lambda x, y: (torch.addmm(x[0, 0, :4], x[0], y[0].mT),),
}


@pytest.mark.parametrize("evaluate", UNLIKE_ONE_RUN.values(), ids=list(UNLIKE_ONE_RUN))
def test_operations_that_vmap_makes_of_others_are_run_at_once(evaluate: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first run is made under vmap then; the errors have the same size as one by one."""
    inputs = normal(4, 4, 5), normal(4, 4, 5, seed=1)
    made, many = [], runs._many
    monkeypatch.setattr(runs, "_many", lambda *given, **named: made.append(many(*given, **named)) or made[-1])
    together = runs.rounded_runs(evaluate, inputs, torch.float32, 0)
    assert [len(found) for found in made] == [1, 2, runs.RUNS - 1]
    monkeypatch.setattr(runs, "_AT_ONCE", 0)
    alone = runs.rounded_runs(evaluate, inputs, torch.float32, 0)
    (exact,) = evaluate(*inputs)
    sizes = [torch.stack([run[0] - exact for run in found]).square().mean(0).sqrt() for found in (together, alone)]
    # A deviation from 16 runs is good to 18% of one standard deviation; from all elements, to less.
    ratio = (sizes[0].mean() / sizes[1].mean()).item()
    assert 0.5 < ratio < 2
    if exact.numel() > 20:
        assert 0.75 < ratio < 1.33


@pytest.mark.parametrize(("dim", "fits"), [(0, True), (1, False)])
def test_runs_that_do_not_lie_one_after_another_are_refused(dim: int, fits: bool) -> None:
    amplitudes, x = Amplitudes(), normal(4, 3)
    with Rounding(torch.float32, 0, amplitudes):
        x.exp()
    folded = torch.stack([x, x], dim).reshape(8, 3)
    refused = nullcontext() if fits else pytest.raises(UnlikeOneRun)
    with refused, TwoAlike(torch.float32, amplitudes):
        folded.exp()
    if fits:
        assert amplitudes.dims == {0: 0}


@pytest.mark.parametrize(
    "form", [form for found in operators().values() for form in found.every_form()], ids=lambda form: form.title
)
def test_the_runs_of_every_contract_are_made_at_once(form: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    """One by one they take three times as long."""
    made = []
    many = runs._many

    def counted(*arguments: Any) -> Any:
        made.append(many(*arguments))
        return made[-1]

    monkeypatch.setattr(runs, "_many", counted)
    expected_of(form, realise(form, smallest(form), torch.float32), torch.float32)
    assert [len(found) for found in made] == [runs.RUNS - 1]


@pytest.mark.parametrize("form", ["value", "shape"])
def test_what_cannot_be_run_at_once_is_run_one_by_one(form: str) -> None:
    def evaluate(x: Tensor) -> tuple[Tensor, ...]:
        if form == "value":
            return (x * 2 if float(x.sum()) > 1e9 else x * 3,)  # no vmap over a number
        return (x * ones.exp(),)  # one operation would be the same in all runs

    ones = torch.ones(5, 4, dtype=torch.float64)
    x = normal(5, 4)
    found = runs.rounded_runs(evaluate, [x], torch.float32, 0)
    assert len(found) == runs.RUNS
    (exact,) = evaluate(x)
    errors = torch.stack([run[0] - exact for run in found])
    assert bool((errors.std(0) > 0).all()), "each run has its own error everywhere"
    unit, largest = UNIT_ROUNDOFF[torch.float32], float(errors.abs().max())
    # At most two operations, the larger of which adds five terms: no error exceeds 2 * 5 u of the sum of their sizes.
    if form != "value":
        (sizes,) = evaluate(x.abs())
        assert largest <= 10 * unit * float(sizes.abs().max())
    assert largest > 0.1 * unit * float(exact.abs().max()), "an error of rounding has the size of a roundoff"


def test_a_wrong_reference_says_so_itself() -> None:
    def evaluate(x: Tensor) -> tuple[Tensor, ...]:
        return (x @ x,)

    with pytest.raises(RuntimeError, match="mat1 and mat2"):
        runs.rounded_runs(evaluate, [normal(5, 4)], torch.float32, 0)


# a recurrence


@pytest.fixture
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recurrence, "STEPS", 10)


def _inputs(cell: Operator) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    initial, driven = recurrence._inputs(cell, Scenario.of(cell.cases[0]), torch.float32, torch.device("cpu"))
    return {k: v.double() for k, v in initial.items()}, {k: v.double() for k, v in driven.items()}


@pytest.mark.usefixtures("few_steps")
def test_copies_of_a_batch_have_roundings_of_their_own() -> None:
    cell = operator("lltm")
    side_by_side = recurrence._side_by_side(cell, *_inputs(cell), torch.float32)
    firsts = torch.stack([run["new_h"][0] for run in side_by_side])
    assert bool((firsts.std(0) > 0).all())
    exact = recurrence._walk(cell, cell.forward, *_inputs(cell))["new_h"]

    def rms(found: list[dict[str, Tensor]]) -> float:
        return float(torch.stack([run["new_h"] - exact for run in found]).square().mean().sqrt())

    # Not the same errors: they are a hash of values, whose last bit depends on how many rows a product has. Errors of
    # one size: 16 runs, which share a gain each, give an RMS to within 1 / sqrt(2 * 16) = 18%, so a factor of 2 is
    # five standard deviations away.
    ratio = rms(side_by_side) / rms(recurrence._one_by_one(cell, *_inputs(cell), torch.float32))
    assert 0.5 < ratio < 2


@pytest.mark.usefixtures("few_steps")
def test_a_step_that_computes_something_without_rows_is_run_one_by_one() -> None:
    cell = operator("lltm")

    def forward(input: Tensor, weights: Tensor, *others: Tensor) -> tuple[Tensor, ...]:
        return cell.forward(input, weights * 1, *others)

    other = replace(cell, forward=forward)
    with pytest.raises(UnlikeOneRun):
        recurrence._side_by_side(other, *_inputs(cell), torch.float32)
    found = recurrence._rounded(other, *_inputs(cell), torch.float32)
    assert len({float(run["new_h"][0, 0, 0]) for run in found}) == runs.RUNS


def test_a_result_of_several_runs_has_all_of_them() -> None:
    with Rounding(torch.float32, 0, runs=4, length=3), pytest.raises(UnlikeOneRun):
        normal(8, 2) * 1


def test_a_product_of_no_terms_has_the_growth_of_none() -> None:
    """Not that of the sum before it, which has another shape."""

    def evaluate(x: Tensor, nothing: Tensor) -> tuple[Tensor, ...]:
        return (nothing @ nothing.t() + x.sum(0),)

    equal, nothing = torch.full((50, 5), 0.1, dtype=torch.float64), torch.zeros(5, 0, dtype=torch.float64)
    assert len(runs.rounded_runs(lambda x, y: (x.sum(0), *evaluate(x, y)), [equal, nothing], torch.float32, 0)) == 16
