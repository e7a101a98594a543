"""What drawn faults of every operator needed at once: the property that asks it finds it, and finds nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from harness.discovery import load_function, operator
from harness.judging import harvested
from harness.judging.combinations import combinations_of, of_lengths
from harness.judging.judge import judge
from harness.judging.ratios import RATIOS
from harness.judging.scenario import Scenario, kinds_of, realise
from harness.judging.subject import Subject
from harness.properties import all_properties
from harness.report.cell import FAIL, NO_EVIDENCE, PASS
from spec.contract import LARGE, NEGATIVE, POSITIVE, Draw, TensorArg
from tests.meta.tiers import AGAIN, first_of_each

pytestmark = pytest.mark.usefixtures("with_the_store")


@dataclass(frozen=True)
class Sometimes:
    """The baseline of an operator, and something else where a test of the inputs holds."""

    name: str
    holds: Callable[..., bool]
    does: Callable[..., Any]

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        found = load_function(self.name, "python-autograd", "cpu")(*inputs, **named)
        return self.does(found, *inputs) if self.holds(*inputs, **named) else found


def _verdict(property: str, function: Sometimes, *files: Path) -> str:
    subject = Subject(operator(function.name), "candidate", "cpu", torch.float32, function, files=files)
    return judge(subject, all_properties()[property]).verdict


def _never(*_: Any, **__: Any) -> bool:
    return False


def _zero(found: Any, *_: Any) -> Any:
    return 0 * found if isinstance(found, Tensor) else tuple(0 * each for each in found)


def _is_transposed(tensor: Tensor) -> bool:
    return min(tensor.shape[-2:]) > 1 and tensor.stride(-2) == 1


def _subset(*wanted: bool) -> Callable[..., bool]:
    return lambda *inputs, **_: tuple(t.requires_grad for t in inputs) == wanted


#: A property, an operator, and what a call of it has.
COINCIDENCES: list[tuple[str, str, Callable[..., bool]]] = [
    ("combinations", "lltm", lambda x, w, b, h, c: _is_transposed(c) and bool((c > 0).all())),
    ("combinations", "lltm", lambda x, w, b, h, c: _is_transposed(h) and bool((h < 0).all())),
    ("combinations", "lltm_sequence", lambda x, *_: x.shape[1] > 1 and bool((x == x[:, :1]).all())),
    ("combinations", "lltm_sequence", lambda x, w, b, h, c: h.shape[1] == 2 * x.shape[0] > 8),
    ("combinations", "softmax", lambda x: x.dim() == 3 and x.shape[2] == 2 * x.shape[1] > 2),
    ("combinations", "gru_cell", lambda x, h, w, u, b=None, c=None: b is not None and len(x) == 2 * len(b)),
    ("combinations", "group_norm", lambda x, n, w=None, b=None, **_: n == 32 and _is_transposed(x)
     and w is not None and bool((w > 0).all())),
    ("combinations", "attention", lambda q, k, v, *_, **__: v.shape[1] > 3 and not v.any()),
    ("combinations", "softmax", lambda x: x.dim() == 1 and x.storage_offset() > 0 and x.is_contiguous()
     and torch.is_inference_mode_enabled()),
    ("gradient-subsets", "layer_norm", lambda x, n, w=None, b=None, **_: b is not None and b.requires_grad
     and not x.requires_grad and bool((b.abs() > 57).any())),
    ("layouts", "group_norm", lambda x, n, w=None, b=None, **_: x.dim() == 3 and b is not None
     and w.stride(0) == 2 and _is_transposed(x)),
    ("gradient-subsets", "linear_act", lambda x, w, b=None, **_: b is not None and x.stride(-1) == 2
     and (x.requires_grad, w.requires_grad, b.requires_grad) == (True, False, True)),
    ("gradient-subsets", "lstm_cell", lambda x, h, c, w, u, a=None, b=None: b is not None and c.stride(-1) == 2
     and [t.requires_grad for t in (x, h, c, w, u, a, b)] == [False, False, True, True, True, False, True]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("property", "name", "holds"),
    [pytest.param(*row, marks=marks) for row, marks in first_of_each(COINCIDENCES, lambda row: row[:1], AGAIN)],
)
def test_coincidence_is_asked(property: str, name: str, holds: Callable[..., bool]) -> None:
    assert _verdict(property, Sometimes(name, holds, _zero)) == FAIL
    assert _verdict(property, Sometimes(name, _never, _zero)) == PASS


class _Once(torch.autograd.Function):
    """The result itself; a cotangent that is repeated along an inner dimension is taken for a number."""

    @staticmethod
    def forward(ctx: Any, result: Tensor) -> Tensor:
        return result.clone()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        repeated = g.dim() == 4 and g.shape[2] > 1 and not g.stride(2) and g.numel()
        return g.flatten()[0].expand(g.shape) if repeated else g


def test_a_cotangent_is_repeated_along_inner_dimensions() -> None:
    once = Sometimes("attention", lambda *_, **__: True, lambda found, *_: _Once.apply(found))
    assert _verdict("layouts", once) == FAIL
    four, two = operator("attention").outputs[0], operator("lltm").outputs[0]
    assert "inner" in kinds_of(four)
    assert "inner" not in kinds_of(two)


def _returned(position: int) -> Callable[..., Any]:
    def does(found: Any, *inputs: Any) -> Any:
        if isinstance(found, Tensor) and not torch.is_grad_enabled() and torch.equal(found, inputs[position]):
            return inputs[position]
        return found

    return does


@pytest.mark.parametrize(
    ("name", "position"), [("rotary", 0), ("causal_conv1d", 0), ("embedding", 0), ("attention", 2), ("scan", 1)]
)
def test_a_result_that_equals_an_input_is_not_the_input(name: str, position: int) -> None:
    always = Sometimes(name, lambda *_, **__: True, _returned(position))
    assert _verdict("no-side-effects", always) == FAIL
    assert _verdict("no-side-effects", Sometimes(name, _never, _zero)) == PASS


def test_a_small_size_has_a_path_of_its_own_without_grad() -> None:
    reuses = Sometimes(
        "log_softmax",
        lambda x: x.dim() == 3 and x.shape[2] == 2 and x.is_contiguous() and not torch.is_grad_enabled(),
        lambda found, x: x.copy_(found),
    )
    assert _verdict("no-side-effects", reuses) == FAIL


def test_beyond_a_constant_of_a_multiple_of_a_size() -> None:
    lltm = operator("lltm")
    assert ("state_size", 187) in harvested.beyond(lltm, [543])
    assert ("batch", 187) not in harvested.beyond(lltm, [543])
    assert {("state_size", 543 // 3), ("state_size", 543)} <= set(harvested.themselves(lltm, [543]))


def test_beyond_a_constant_a_call_is_made_in_both_modes(tmp_path: Path) -> None:
    file = tmp_path / "kernels.py"
    file.write_text("MANY = 613")
    for mode in (False, True):

        def holds(x: Tensor, w: Tensor, *_: Any, mode: bool = mode) -> bool:
            without = torch.is_inference_mode_enabled() if mode else not torch.is_inference_mode_enabled()
            return len(w) > 613 and not torch.is_grad_enabled() and without

        assert _verdict("harvested-sizes", Sometimes("mlp", holds, _zero), file) == FAIL


def test_the_time_of_an_oracle_counts_squares_of_sizes_and_steps() -> None:
    packed, scan = operator("attention_varlen"), operator("scan")
    few, many = ({"tokens": n, "heads": 2, "width": 4, "sequences": 4} for n in (64, 363))
    assert harvested.volume(packed, few) <= harvested.VOLUME < harvested.volume(packed, many) < harvested.LARGE
    steps = [{"batch": 2, "channels": 3, "length": n} for n in (64, 65, 1025)]
    volumes = [harvested.volume(scan, sizes) for sizes in steps]
    assert volumes[0] <= harvested.VOLUME < volumes[1] < volumes[2] < harvested.LARGE


@pytest.mark.parametrize(("name", "sign"), [(POSITIVE, 1), (NEGATIVE, -1)])
def test_values_of_one_sign(name: str, sign: int) -> None:
    made = operator("embedding").family(name).make({"entries": 7, "features": 3, "batch": 5}, Draw(0), torch.float32)
    assert bool((sign * made["weight"] > 0).all())
    assert made["indices"].dtype == torch.int64
    assert 0 <= int(made["indices"].min()) <= int(made["indices"].max()) < 7


def test_rows_of_a_batch_are_repeated_where_they_lie() -> None:
    contract = operator("lltm_sequence")
    sizes = (("steps", 3), ("batch", 4), ("input_features", 5), ("state_size", 2))
    call = realise(contract, Scenario(sizes, layouts=(("input", "repeated"), ("h0", "repeated"))), torch.float32)
    x, h0 = call.inputs[0], call.inputs[3]
    assert bool((x == x[:, :1]).all())
    assert not bool((x == x[:1]).all())
    assert bool((h0 == h0[:1]).all())


def test_values_of_one_tensor_have_something_in_common() -> None:
    lltm, sizes = operator("lltm"), {"batch": 3, "input_features": 4, "state_size": 5}
    usual = lltm.family("normal").make(sizes, Draw(0), torch.float32)
    for name, holds in (
        ("equal columns of input", lambda x: bool((x == x[:, :1]).all()) and x.unique().numel() == 3),
        ("one number of bias", lambda x: x.unique().numel() == 1 and bool(x[0])),
        ("zeros of weights", lambda x: not x.any()),
    ):
        made, changed = lltm.family(name).make(sizes, Draw(0), torch.float32), name.split(" of ")[1]
        assert holds(made[changed])
        assert all(torch.equal(made[other], usual[other]) for other in usual if other != changed)
    assert "equal columns of bias" not in {family.name for family in lltm.of_one_tensor()}
    with pytest.raises(KeyError, match="equal columns of bias"):
        lltm.family("equal columns of bias")


def test_integers_that_have_something_in_common_stay_in_their_range() -> None:
    embedding, sizes = operator("embedding"), {"entries": 7, "features": 3, "batch": 9}
    counting = embedding.family("counting of indices").make(sizes, Draw(0), torch.float32)["indices"]
    assert counting.tolist() == sorted([*range(7), 0, 1])
    assert (
        embedding.family("one number of indices").make(sizes, Draw(0), torch.float32)["indices"].unique().numel() == 1
    )
    mask = operator("attention").in_form("mask")
    made = mask.family("one number of mask").make(dict(mask.cases[0].sizes), Draw(0), torch.float32)["mask"]
    assert bool(made.all())
    assert [family.name for family in operator("attention_varlen").of_one_tensor() if "cu_seqlens" in family.name] == []


def test_columns_are_equal_beyond_a_constant(tmp_path: Path) -> None:
    file = tmp_path / "kernels.py"
    file.write_text("MANY = 55")
    equal = Sometimes("swiglu", lambda g, u: g.shape[-1] > 55 and u.dim() == 2 and bool((u == u[:, :1]).all()), _zero)
    assert _verdict("harvested-sizes", equal, file) == FAIL
    assert _verdict("harvested-sizes", Sometimes("swiglu", _never, _zero), file) == PASS


def test_values_of_a_tensor_are_large_beyond_a_constant(tmp_path: Path) -> None:
    file = tmp_path / "kernels.py"
    file.write_text("MANY = 55")
    large = Sometimes("rms_norm", lambda x, w=None, **_: len(w) > 55 and bool((w.abs() > 80).any()), _zero)
    assert _verdict("harvested-sizes", large, file) == FAIL


def test_a_constant_is_asked_without_grad_where_equal_sizes_are_too_large(tmp_path: Path) -> None:
    file = tmp_path / "kernels.py"
    file.write_text("MANY = 1720")
    swiglu = operator("swiglu").in_form("tokens")
    sizes = [dict(scenario.sizes) for scenario in harvested.exactly(swiglu, [1720])]
    assert {symbol for each in sizes for symbol, size in each.items() if size == 1720} == set(swiglu.symbols())
    assert all(harvested.volume(swiglu, each) <= harvested.VOLUME for each in sizes)
    without = Sometimes("swiglu", lambda g, u: g.dim() == 3 and len(g) == 1720 and not torch.is_grad_enabled(), _zero)
    assert _verdict("harvested-sizes", without, file) == FAIL


@pytest.mark.parametrize(("name", "symbol", "times"), [("lltm", "state_size", 3), ("lstm_cell", "state_size", 4)])
def test_every_length_of_some_times_a_size_has_every_ratio(name: str, symbol: str, times: int) -> None:
    contract = operator(name)
    found = [dict(scenario.sizes) for scenario in of_lengths(contract)]
    found += [dict(call.scenario.sizes) for call in combinations_of(contract).calls if "ratios" in call.scenario.name]
    beyond = [dict(scenario.sizes) for scenario in harvested.ratios_of_lengths(contract, [41])]
    assert all(min(each[symbol], max(each["batch"], each["input_features"])) > 41 for each in beyond)
    beyond += [dict(scenario.sizes) for scenario in harvested.ratios(contract, [41])]
    for other, sizes in product(("batch", "input_features"), (found, beyond)):
        lengths = {(times * each[symbol], each[other]) for each in sizes}
        for ratio in RATIOS:
            assert any(length == ratio * size for length, size in lengths), (other, ratio)
            assert any(size == ratio * length for length, size in lengths), (other, ratio)


def test_lengths_of_some_times_a_size_are_beyond_a_constant_where_the_size_would_be_too_large() -> None:
    grouped = operator("group_norm").in_form("no-affine")
    asked = (*harvested.ratios(grouped, [39]), *harvested.ratios_of_lengths(grouped, [39]))
    found = [dict(scenario.sizes) for scenario in asked]
    lengths = [(3 * each["depth"], each["length"]) for each in found]
    for ratio in RATIOS:
        assert any(length == ratio * channels and channels > 39 for channels, length in lengths), ratio
        assert any(channels == ratio * length and length > 39 for channels, length in lengths), ratio


def test_large_tensors_of_each_symbol_are_asked_before_further_sizes_of_one() -> None:
    sequence = operator("lltm_sequence")
    tails, around = (each(sequence, [1644]) for each in (harvested.tails, harvested.beyond))
    found = [scenario.name for scenario in harvested.large(sequence, tails, around)]
    assert found[:3] == ["state_size-551", "steps-1649", "state_size-1649"]  # 3 * 551 is beyond it too
    assert len(set(found)) == len(found) > 3
    assert sum(harvested.volume(sequence, dict(s.sizes)) for s in harvested.large(sequence, tails)) <= harvested.LARGE


def test_large_values_are_those_of_real_numbers_that_have_no_range() -> None:
    contract = operator("linear_act")
    sizes = {"batch": 5, "in_features": 6, "out_features": 7}
    made, usual = (contract.family(name).make(sizes, Draw(0), torch.float32) for name in ("large of weight", "normal"))
    assert float(made["weight"].std()) == pytest.approx(128, rel=0.3)
    assert torch.equal(made["input"], usual["input"])
    of_range = TensorArg("share", ("batch",), low="0.1", high="0.9", uniform=True)
    assert LARGE not in of_range.commonly()
    assert LARGE in TensorArg("scores", ("batch",)).commonly()


def test_state_of_the_process_is_read_beyond_a_constant_whose_oracle_is_too_dear(tmp_path: Path) -> None:
    """All pairs of 405 tokens have as many elements as an expected result may have."""
    file = tmp_path / "kernel.py"
    file.write_text("TOKENS = 405\n")

    def draws(found: Tensor, *_: Any) -> Tensor:
        torch.rand(1)
        return found

    tail = Sometimes("attention_varlen", lambda q, *_, **__: len(q) > 405 and len(q) % 2 == 0, draws)
    assert _verdict("global-state", tail, file) == FAIL
    right = Sometimes("attention_varlen", _never, draws)
    assert _verdict("global-state", right, file) == NO_EVIDENCE, "it has no name by which a new process could load it"
    sizes = [("tokens", 432)]
    assert not list(harvested.small(operator("attention_varlen"), sizes))
    room = 2**22
    assert 1 <= len(list(harvested.of_no_oracle(operator("attention_varlen"), sizes * 99, room, room))) < 99


def test_ratios_beyond_the_first_are_asked_too(tmp_path: Path) -> None:
    file = tmp_path / "kernels.py"
    file.write_text("MANY = 24")
    guessed = Sometimes("rotary", lambda x, cos, *_, **__: x.shape[2] == 4 * cos.shape[1] > 96, _zero)
    assert _verdict("harvested-sizes", guessed, file) == FAIL
