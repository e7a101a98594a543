"""A sweep: what is measured at a point, and what the page says of it."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch.nn.functional as F

from harness.bench import record
from tools.sweep import __main__ as sweep_command
from tools.sweep import drawing, measuring
from tools.sweep.grid import GRIDS, Grid

GRID = Grid("layer_norm", ("batch", (1, 16)), ("features", (64, 256)), GRIDS["layer_norm"].reference)
RECORDS = sorted(Path("results").glob("*/sweep-*.json"))


def row(batch: int, features: int, ratio: float, rival: float = 9.0) -> dict[str, Any]:
    """A point at which the backend is `ratio` times as fast as torch.compile, and `rival` times as torch-native."""
    ratios = {
        name: {"median": value, "low": value - 0.01, "high": value + 0.01}
        for name, value in (("torch.compile", ratio), ("torch-native", rival))
    }
    seconds = {"own": {"median": 1e-5}, "torch.compile": {"median": ratio * 1e-5}, "torch-native": {"median": 1.0}}
    sizes = {"batch": batch, "features": features}
    return {"dtype": "float32", "phase": "forward", "sizes": sizes, "ratios": ratios, "seconds": seconds}


def made(*rows: dict[str, Any]) -> dict[str, Any]:
    machine = {"gpu": "a GPU", "cpu": "a CPU", "torch": "2.0"}
    return {"operator": "layer_norm", "backend": "own", "environment": machine, "rows": list(rows), "missing": []}


def test_a_grid_has_every_point_that_is_not_too_large() -> None:
    grid = Grid(
        "lltm", ("batch", (1, 4)), ("state_size", (8, 16)), F.relu, (("input_features", "state_size"),), most=32
    )
    assert [dict(case.sizes) for case in grid.cases()] == [
        {"batch": 1, "state_size": 8, "input_features": 8},
        {"batch": 1, "state_size": 16, "input_features": 16},
        {"batch": 4, "state_size": 8, "input_features": 8},
    ]


def test_points_that_are_named_come_in_their_order() -> None:
    assert [case.name for case in GRID.cases([(16, 64), (3, 5)])] == ["16x64", "3x5"]


@pytest.mark.parametrize("text", ["64", "x64", "64x", "64xa", "0x4", "-1x4"])
def test_a_point_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="should be two sizes, as 64x1024"):
        sweep_command._point(text)


def test_each_point_is_timed_beside_its_rivals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "compiled", lambda grid: grid.reference)
    monkeypatch.setattr(measuring, "BLOCK", 1e-5)
    rows, missing = measuring.measure(GRID, "python-autograd", "cpu", ["float32"], lambda _: None)
    assert not missing
    assert [(each["sizes"]["batch"], each["sizes"]["features"], each["phase"]) for each in rows] == [
        (batch, features, phase) for batch in (1, 16) for features in (64, 256) for phase in measuring.PHASES
    ]
    assert all(set(each["ratios"]) == {"torch-native", "torch.compile"} for each in rows)
    assert all(each["seconds"]["python-autograd"]["median"] > 0 for each in rows)


def test_a_wrong_backend_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*inputs: Any) -> Any:
        return F.layer_norm(inputs[0], (inputs[0].shape[-1],)) * 1.01

    real = measuring.subjects_of

    def subjects(*names: str) -> Any:
        found = real(*names)
        found["python-autograd"] = replace(found["python-autograd"], function=wrong)
        return found

    monkeypatch.setattr(measuring, "compiled", lambda grid: grid.reference)
    monkeypatch.setattr(measuring, "subjects_of", subjects)
    rows, missing = measuring.measure(GRID, "python-autograd", "cpu", ["float32"], lambda _: None)
    assert not rows
    assert len(missing) == 4
    assert all("wrong" in entry["reason"] for entry in missing)


def test_the_page_names_the_worst_point_and_lists_the_dark_ones() -> None:
    text = drawing.section(made(row(1, 64, 1.5), row(16, 64, 0.9), row(16, 256, 0.8)), "results/a/sweep-x.json")
    assert "against the fastest of its rivals, at 3 points on a GPU" in text
    assert "at least as fast at 1 points" in text
    assert "The worst point is 16 x 256 in float32, forward: 0.80 of torch.compile." in text
    lines = [line for line in text.splitlines() if line.startswith("| ")][1:]
    assert [line.split(" in ")[0] for line in lines] == ["| 16 x 256", "| 16 x 64"]


def test_a_point_within_its_interval_is_not_dark() -> None:
    assert "No point is below 0.97." in drawing.section(made(row(1, 64, 0.965)), "results/a/sweep-x.json")


def test_the_picture_has_the_ratio_to_the_fastest_rival() -> None:
    svg = drawing.picture(GRID, [row(1, 64, 1.5), row(16, 256, 3.0, rival=0.75)])
    assert ">1.50<" in svg
    assert ">0.75<" in svg
    assert ">3.00<" not in svg


@pytest.mark.parametrize("path", RECORDS, ids=str)
def test_the_page_is_what_the_record_draws(path: Path) -> None:
    found = record.read(path, "sweep")
    assert drawing.section(found, str(path)) in drawing.DOCUMENT.read_text(encoding="utf-8")
    picture = drawing.picture(GRIDS[found["operator"]], found["rows"])
    assert (drawing.PICTURES / f"{path.stem}.svg").read_text(encoding="utf-8") == picture


def _float32(found: dict[str, Any], batch: int, state_size: int) -> str:
    """What the page says of a point: the ratio to torch.compile, and in brackets the us of the backend."""
    (point,) = (
        point
        for point in found["rows"]
        if (point["dtype"], point["phase"]) == ("float32", "forward+backward")
        and (point["sizes"]["batch"], point["sizes"]["state_size"]) == (batch, state_size)
    )
    return f"{point['ratios']['torch.compile']['median']:.2f} ({1e6 * point['seconds']['cuda-fused']['median']:.1f})"


def test_the_page_says_what_the_gradient_of_few_rows_has_gained() -> None:
    before = record.read(Path("results/nvidia-h200/lltm-weights-before.json"), "sweep")
    now = record.read(Path("results/nvidia-h200/sweep-lltm.json"), "sweep")
    page = drawing.DOCUMENT.read_text(encoding="utf-8")
    for point in ((1, 512), (1, 1024), (1, 2048), (16, 1024), (16, 2048)):
        (line,) = (line for line in page.splitlines() if line.startswith(f"| {point[0]} x {point[1]} | "))
        assert line.endswith(f" | {_float32(before, *point)} | {_float32(now, *point)} |")
