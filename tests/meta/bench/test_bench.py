"""The bench: its record, what it refuses to time, and what is drawn from it. No test here depends on a clock."""

from __future__ import annotations

import json
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import spec.contract
from harness.bench import correctness, products, rounds
from harness.bench.claims import MET, NOT_MEASURED, NOT_MET, Claim, MemoryClaim
from harness.bench.measurement import Settings, measure
from harness.bench.record import WRONG, groups, read, write
from harness.bench.tables import tutorial
from harness.discovery import all_backends, operator
from harness.errors import Failure, UsageError
from harness.gate.baseline import FASTER, NOT_SLOWER, SLOWER, changes
from harness.judging.scenarios import smallest
from harness.judging.subject import Subject
from harness.measuring import ceilings, memory, work
from harness.report.strict_json import written
from harness.running.selection import Selection, slots
from spec.contract import FORWARD, PHASES
from tools import performance_page

ROOT = Path(__file__).parents[3]
LLTM = operator("lltm")
FEW = Settings(rounds=2, block_seconds=0, longest=60, threads=(1,), cases=("tutorial",), phases=(FORWARD,))


def _wrong(*inputs: Tensor) -> tuple[Tensor, Tensor]:
    new_h, new_cell = LLTM.forward(*inputs)
    return new_h, 1.05 * new_cell


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Two backends and a wrong candidate, two rounds."""
    folder = tmp_path_factory.mktemp("bench")
    source = "from spec.lltm import forward\ndef wrong(*inputs):\n    h, c = forward(*inputs)\n    return h, 1.05 * c\n"
    (folder / "candidates.py").write_text(source)
    chosen = Selection(
        operators=("lltm",),
        backends=("python-autograd", "python-manual-backward"),
        devices=("cpu",),
        dtypes=("float32",),
        candidates=(f"lltm={folder / 'candidates.py'}:wrong",),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ceilings, "measure", lambda *_: {"flops_per_second": 1e9, "copies": [[1024, 1e9], [2**30, 1e8]]})
        return measure(slots(chosen), FEW, lambda text: None)


def test_the_phases_are_those_of_the_contract() -> None:
    assert work.PHASES == spec.contract.PHASES


def test_rows_that_are_right_have_times_ratios_and_a_roofline(record: dict[str, Any]) -> None:
    backends = ["python-autograd", "python-manual-backward", "products-alone", "floor"]
    assert [row["backend"] for row in record["rows"]] == backends
    (together,) = groups(record["rows"]).values()
    for row in together:
        assert len(row["samples"]) == 2
        assert row["seconds"]["low"] <= row["seconds"]["median"] <= row["seconds"]["high"]
        assert set(row["ratios"]) == {"python-autograd", "products-alone", "floor"}
        cost = LLTM.cost(FORWARD, LLTM.case("tutorial").sizes, 4)
        assert (row["bytes"], row["flops"]) == (cost.bytes, cost.flops)
        assert row["roofline"]["seconds"] == pytest.approx(max(cost.flops / 1e9, cost.bytes / 1e8), rel=1e-4)
    assert together[0]["ratios"]["python-autograd"]["median"] == 1


def test_what_is_wrong_is_not_timed(record: dict[str, Any]) -> None:
    (missing,) = record["missing"]
    assert missing["backend"] == "wrong"
    assert missing["reason"].startswith(f"{WRONG} before timing: new_cell was")


def test_a_record_is_read_as_it_was_written(record: dict[str, Any], tmp_path: Path) -> None:
    write(record, tmp_path / "bench.json")
    assert read(tmp_path / "bench.json") == json.loads(json.dumps(record))
    assert written(read(tmp_path / "bench.json")) == written(record)
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(UsageError, match="should be a record of kind 'bench'"):
        read(tmp_path / "other.json")


def test_what_was_measured_is_kept_after_each_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that ends in its second operator has the rows of the first."""
    asked = slots(Selection(operators=("mlp", "lltm"), backends=("python-autograd",), dtypes=("float32",)))
    kept: list[str] = []

    def first_alone(_self: Any, group: list[Any], _threads: int | None) -> None:
        if kept:
            raise KeyboardInterrupt
        _self.rows.append({"operator": group[0].operator.name})

    monkeypatch.setattr("harness.bench.measurement._Bench.measure", first_alone)
    settings = Settings(threads=(1,))
    with pytest.raises(KeyboardInterrupt):
        measure(asked, settings, say=lambda _text: None, keep=lambda so_far: kept.append(written(so_far)))
    (record,) = map(json.loads, kept)
    assert [row["operator"] for row in record["rows"]] == [asked[0].operator.name]


def test_the_page_is_drawn_from_the_record(record: dict[str, Any]) -> None:
    page = performance_page.drawn(record, "# Title\n", "it.json")
    assert performance_page.drawn(record, page, "it.json") == page
    assert "python-manual-backward" in page
    assert "wrong before timing" in page
    (cells,) = tutorial(record["rows"]).values()
    assert [line[0] for line in cells[1]] == [row["backend"] for row in record["rows"]]


@pytest.mark.parametrize("path", sorted(ROOT.glob("results/*/bench.json")), ids=lambda path: path.parent.name)
def test_the_page_shows_the_records(path: Path) -> None:
    page, name = (ROOT / performance_page.DOCUMENT).read_text(encoding="utf-8"), str(path.relative_to(ROOT))
    assert performance_page.drawn(read(path), page, name) == page, (
        f"out of date: python -m tools.performance_page {name}"
    )


def test_a_claim_is_met_where_its_whole_interval_is(record: dict[str, Any]) -> None:
    row = dict(record["rows"][1])
    for low, least, verdict in ((1.8, 1.7, MET), (1.6, 1.7, NOT_MET)):
        row["ratios"] = {"python-autograd": {"median": 1.9, "low": low, "high": 2.0}}
        assert Claim(row["backend"], FORWARD, least, "tutorial").judged([row])[0] == verdict
    assert Claim("nobody", FORWARD, 1, "tutorial").judged([row]) == (NOT_MEASURED, "-")


def test_a_claim_of_memory_is_met_by_as_much_and_not_by_a_byte_more() -> None:
    """Counts are exact; if one of them is missing there is no verdict."""
    claim = MemoryClaim("mine", FORWARD, "tutorial", "float32")
    place = {"phase": FORWARD, "case": "tutorial", "operator": "lltm", "dtype": "float32", "device": "cuda"}
    other = {**place, "backend": "python-autograd", "clock": "wall", "peak_bytes": 1000}
    for own, verdict in ((1000, MET), (1001, NOT_MET)):
        assert claim.judged([{**other, "backend": "mine", "peak_bytes": own}, other])[0] == verdict
    assert claim.judged([other]) == (NOT_MEASURED, "-")
    assert claim.judged([{**place, "backend": "mine", "clock": "wall"}, other]) == (NOT_MEASURED, "-")


def test_large_cases_are_held_against_the_reference_in_the_dtype() -> None:
    middle = LLTM.case("middle")
    correctness.check(Subject(LLTM, "it", "cpu", torch.float32, LLTM.forward), middle)
    with pytest.raises(Failure, match="new_cell had an rms error of"):
        correctness.check(Subject(LLTM, "it", "cpu", torch.float32, _wrong), middle)


@pytest.mark.parametrize(("phase", "count"), [("forward", 1), ("backward", 2), ("forward+backward", 3)])
def test_the_products_alone_are_those_of_the_reference(phase: str, count: int) -> None:
    tensors = Subject(LLTM, "it", "cpu", torch.float32, LLTM.forward).realise(smallest(LLTM))
    cotangents = tuple(g for g in tensors.cotangents if g is not None)
    made = products.prepare(LLTM, [(tensors.inputs, cotangents)], phase, "cpu")
    assert made is not None
    with torch.profiler.profile() as seen:
        made.once()
    calls = [event.name for event in seen.events() if event.name in ("aten::mm", "aten::addmm")]
    assert len(calls) == count


def test_a_product_is_made_in_the_fastest_of_its_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(products, "_forms", lambda *_: [partial(time.sleep, 0.002), partial(asked.append, "quick")])
    tensors = Subject(LLTM, "it", "cpu", torch.float32, LLTM.forward).realise(smallest(LLTM))
    made = products.prepare(
        LLTM, [(tensors.inputs, tuple(g for g in tensors.cotangents if g is not None))], FORWARD, "cpu"
    )
    assert made is not None
    before = len(asked)
    made.once()
    assert len(asked) == before + 1


@pytest.mark.parametrize(
    "args", [(torch.ones(2, 3), torch.ones(3, 4)), (torch.ones(4), torch.ones(2, 3), torch.ones(3, 4))]
)
def test_all_forms_are_the_same_product(args: tuple[Tensor, ...]) -> None:
    func = torch.ops.aten.mm.default if len(args) == 2 else torch.ops.aten.addmm.default
    forms = products._forms(func, args, {})
    assert sorted(tuple(form().shape) for form in forms) == [(2, 4)] * (len(forms) - 1) + [(4, 2)]


def test_the_floor_is_the_products_and_a_copy() -> None:
    made = work.Work([lambda: torch.mm(torch.ones(2, 2), torch.ones(2, 2))], "cpu")
    floor = products.prepare_floor(made, LLTM.cost(FORWARD, LLTM.case("tutorial").sizes, 4).between, "cpu")
    assert floor is not None
    with torch.profiler.profile(record_shapes=True) as seen:
        floor.once()
    calls = {event.name: event.input_shapes for event in seen.events()}
    assert "aten::mm" in calls
    assert calls["aten::copy_"][0] == [6 * 16 * 128 * 4 // 2]
    assert products.prepare_floor(made, 0, "cpu") is None


@pytest.mark.parametrize(("of", "name"), [("lltm", "nn.LSTMCell"), ("lltm_sequence", "nn.LSTM")])
def test_a_peer_returns_what_the_operator_returns(of: str, name: str) -> None:
    peer = all_backends()["torch-native"].backend.beside[of]
    tensors = Subject(operator(of), "it", "cpu", torch.float32, operator(of).forward).realise(smallest(operator(of)))
    leaves = [leaf.requires_grad_() for leaf in peer.leaves(tuple(t.detach() for t in tensors.inputs))]
    outputs = peer.function(*leaves)
    assert [tuple(t.shape) for t in outputs] == [tuple(t.shape) for t in operator(of).forward(*tensors.inputs)]
    assert all(g is not None for g in torch.autograd.grad(outputs, leaves, [torch.ones_like(t) for t in outputs]))
    assert peer.name == name
    assert not products.is_backend(name)


def test_peak_memory_is_the_same_each_time_and_sees_what_is_held() -> None:
    def holding(copies: int) -> work.Work:
        return work.Work([lambda: _held(copies)], "cpu")

    one, three = memory.peak_bytes(holding(1)), memory.peak_bytes(holding(3))
    assert memory.peak_bytes(holding(3)) == three
    assert three - one == 2 * 4096


def test_what_an_earlier_call_left_over_makes_no_peak_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    """The counters of a device on which the second call frees 90 bytes of before, and each holds 100 bytes."""
    counted = {"now": 90, "most": 0, "calls": 0}

    def once() -> None:
        counted["calls"] += 1
        if counted["calls"] == 2:
            counted["now"] -= 90
        counted["most"] = max(counted["most"], counted["now"] + 100)

    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda: counted.update(most=counted["now"]))
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda: counted["now"])
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda: counted["most"])
    assert memory.peak_bytes(work.Work([once], "cuda")) == 100


def _held(copies: int) -> list[Tensor]:
    return [torch.ones(1024) for _ in range(copies)]


@pytest.mark.parametrize("phase", PHASES)
def test_a_ring_takes_turns(phase: str) -> None:
    seen: list[int] = []

    def function(x: Tensor) -> Tensor:
        seen.append(int(x.detach()[0]))
        return 2 * x

    ring = [((torch.full((2,), float(k)),), (torch.ones(2),)) for k in range(3)]
    made = work.prepare(function, ring, phase, "cpu")
    for _ in range(4):
        made.once()
    assert seen == ([0, 1, 2] if phase == "backward" else [0, 1, 2, 0])
    assert work.ring_length(1, "cpu") == work.RING
    assert work.ring_length(2**40, "cpu") == 1


def test_the_roofline_is_the_slower_of_memory_and_products() -> None:
    copies = [[100, 10.0], [1000, 5.0]]
    assert ceilings.roofline(copies, 2.0, 50, 1) == (5.0, "memory")
    assert ceilings.roofline(copies, 2.0, 500, 1) == (100.0, "memory")
    assert ceilings.roofline(copies, 2.0, 50, 40) == (20.0, "products")
    assert ceilings.roofline(copies, 2.0, 5000, 1) == (1000.0, "memory")


def test_a_ratio_is_taken_round_by_round() -> None:
    drifting = [1.0, 2.0, 4.0, 8.0]
    found = rounds.ratio([2 * s for s in drifting], drifting)
    assert found == {"median": 2.0, "low": 2.0, "high": 2.0}


def test_a_baseline_compares_ratios_and_not_times(record: dict[str, Any]) -> None:
    def row(backend: str, median: float, seconds: float) -> dict[str, Any]:
        ratios = {"python-autograd": {"median": median, "low": 0.99 * median, "high": 1.01 * median}}
        return {**record["rows"][1], "backend": backend, "ratios": ratios, "seconds": {"median": seconds}}

    before = [row("a", 2.0, 1), row("b", 2.0, 1), row("c", 2.0, 1), row("gone", 1.0, 1)]
    after = [row("a", 2.0, 99), row("b", 1.8, 1), row("c", 2.3, 1), row("new", 1.0, 1)]
    found = {change.row.split("-")[1]: change.verdict for change in changes(before, after, 0.02, 0.03)}
    assert found == {"a": NOT_SLOWER, "b": SLOWER, "c": FASTER, "gone": "missing", "new": "extra"}
