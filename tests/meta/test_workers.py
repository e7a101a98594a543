"""The number of workers; and that cells that need most of a GPU's memory are judged first, by one worker."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from harness.pytest_plugin import workers
from tests.meta.conftest import Run


@pytest.mark.parametrize(
    ("cores", "host", "gpus", "then"),
    [
        (2, 23, None, 2),
        (16, 128, None, 16),
        (16, 32, None, 8),
        (16, 2, None, 1),
        (16, 128, [139], 16),
        (16, 128, [24], 3),
        (16, 128, [24, 24], 6),
        (16, 128, [4], 1),
    ],
)
def test_cores_and_memory_bound_them(
    monkeypatch: pytest.MonkeyPatch, cores: int, host: int, gpus: list[int] | None, then: int
) -> None:
    memory = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": host * 2**30 // 4096}
    monkeypatch.setattr(workers.os, "sched_getaffinity", lambda process: set(range(cores)))
    monkeypatch.setattr(workers.os, "sysconf", memory.__getitem__)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus is not None)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: len(gpus or []))
    monkeypatch.setattr(
        torch.cuda,
        "get_device_properties",
        lambda device: type("Properties", (), {"total_memory": (gpus or [])[device] * 2**30}),
    )
    assert workers.of_this_machine(on_gpus=True) == then
    assert workers.of_this_machine(on_gpus=False) == min(cores, max(1, host // 4))


def test_auto_is_what_it_says_and_a_variable_says_otherwise(conformance: Run, tmp_path: Path) -> None:
    chosen = ["--backend=python-autograd", "--operator=mlp", "--device=cpu", "--dtype=float32", "--dtype=float64"]
    options = [f"--report={tmp_path / 'report.json'}", "-n", "auto", "--dist", "loadgroup", "-vv"]
    for variable in ({}, {"PYTEST_XDIST_AUTO_NUM_WORKERS": "1"}):
        wanted = 1 if variable else workers.of_this_machine(on_gpus=False)
        printed = conformance("forward_parity", *chosen, *options, **variable).stdout
        assert f"created: {wanted}/{wanted} worker" in printed
        assert "2 passed" in printed


def test_what_is_large_comes_first_and_goes_to_one_worker(conformance: Run, tmp_path: Path) -> None:
    """Without a GPU that can be seen, the cells are there, but not run."""
    chosen = ["--backend=python-autograd", "--operator=lltm", "--device=cuda", f"--report={tmp_path / 'report.json'}"]
    hidden = {"CUDA_VISIBLE_DEVICES": ""}
    printed = conformance("sizes many_elements", *chosen, "-n", "2", "--dist", "loadgroup", "-vv", **hidden).stdout
    seen = re.findall(r"\[(gw\d)\] \[ *\d+%\] \w+ .*test_(\w+)\[.*@(\S+)", printed)
    assert {name for _, name, group in seen if group == "large"} == {"many_elements"}
    assert len({worker for worker, _, group in seen if group == "large"}) == 1
    assert len(seen) == 6
    alone = conformance("sizes many_elements", *chosen, "-vv", **hidden).stdout
    order = re.findall(r"::test_(\w+)\[", alone)
    assert order[:6] == ["many_elements"] * 2 + ["sizes"] * 4
