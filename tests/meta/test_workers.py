"""The number of workers; and that cells that need most of a GPU's memory are judged first, by one worker."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from harness.pytest_plugin import workers
from tests.meta.conftest import Run
from tests.meta.tiers import START


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


@pytest.mark.long(START)
def test_auto_is_what_it_says_and_a_variable_says_otherwise(conformance: Run, tmp_path: Path) -> None:
    chosen = ["--backend=python-autograd", "--operator=mlp", "--device=cpu", "--dtype=float32"]
    options = [f"--report={tmp_path / 'report.json'}", "-n", "auto", "--dist", "loadgroup", "-vv"]
    wanted = workers.of_this_machine(on_gpus=False)
    assert f"created: {wanted}/{wanted} worker" in conformance("determinism", *chosen, *options).stdout
    printed = conformance("determinism", *chosen, *options, PYTEST_XDIST_AUTO_NUM_WORKERS="1").stdout
    assert "created: 1/1 worker" in printed
    assert "1 passed" in printed


@pytest.mark.long(START)
def test_what_is_large_comes_first_and_goes_to_one_worker(conformance: Run, tmp_path: Path) -> None:
    """Without a GPU that can be seen, the cells are there, but not run."""
    chosen = ["--backend=python-autograd", "--operator=lltm", "--device=cuda", f"--report={tmp_path / 'report.json'}"]
    hidden = {"CUDA_VISIBLE_DEVICES": ""}
    printed = conformance("sizes many_elements", *chosen, "-n", "2", "--dist", "loadgroup", "-vv", **hidden).stdout
    seen = re.findall(r"\[(gw\d)\] \[ *\d+%\] \w+ .*test_(\w+)\[.*@(\S+)", printed)
    assert {name for _, name, group in seen if group == "large"} == {"many_elements"}
    assert len({worker for worker, _, group in seen if group == "large"}) == 1
    assert len(seen) == 6
    alone = conformance("sizes many_elements", *chosen, "--collect-only", **hidden).stdout
    order = re.findall(r"::test_(\w+)\[", alone)
    assert order[:6] == ["sizes"] * 4 + ["many_elements"] * 2, "one process holds nothing beside it"


@pytest.mark.long(START)
def test_values_of_every_dtype_are_judged_before_the_rest(conformance: Run, tmp_path: Path) -> None:
    """By two workers too, although the groups of the other properties are larger."""
    chosen = ["--backend=python-autograd", "--operator=mlp", "--device=cpu", f"--report={tmp_path / 'report.json'}"]
    asked = "determinism drawn_calls forward_parity layouts vjp_parity"
    alone = conformance(asked, *chosen, "--collect-only").stdout
    order = re.findall(r"::test_(\w+)\[", alone)[:20]
    names = ("forward_parity", "vjp_parity", "drawn_calls", "layouts", "determinism")
    assert order == [name for name in names for _ in range(4)]
    printed = conformance(asked, *chosen, "-n", "2", "--dist", "loadgroup", "-vv").stdout
    seen = re.findall(r"\[(gw\d)\] \[ *\d+%\] PASSED .*test_(\w+)\[.*@(\S+)", printed)
    assert len(seen) == 20
    for worker in ("gw0", "gw1"):
        groups = [group.startswith("first-") for its, _, group in seen if its == worker]
        assert groups == sorted(groups, reverse=True), seen
        dear = [name == "drawn_calls" for its, name, group in seen if its == worker and not group.startswith("first-")]
        assert dear == sorted(dear, reverse=True), "what takes longest comes next"
    by_group = {group: {worker for worker, _, its in seen if its == group} for _, _, group in seen}
    assert len(by_group) == 16, "of each dtype what is decisive, what is dear, and two levels of the rest"
    assert all(len(its) == 1 for its in by_group.values())


@pytest.mark.parametrize(("count", "set", "then"), [("1", None, None), ("8", None, "1"), ("8", "4", "4")])
def test_one_of_several_workers_compiles_alone(
    monkeypatch: pytest.MonkeyPatch, count: str, set: str | None, then: str | None
) -> None:
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", count)
    monkeypatch.delenv("TORCHINDUCTOR_COMPILE_THREADS", raising=False)
    if set:
        monkeypatch.setenv("TORCHINDUCTOR_COMPILE_THREADS", set)
    workers.compile_alone()
    assert workers.os.environ.get("TORCHINDUCTOR_COMPILE_THREADS") == then
