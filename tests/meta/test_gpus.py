"""Workers of pytest-xdist take turns with the GPUs; tested by the variable, so that no GPU is needed."""

from __future__ import annotations

import pytest

from harness.pytest_plugin import gpu_turns


@pytest.mark.parametrize(
    ("worker", "visible", "then"),
    [
        ("gw0", "0,1", "0,1"),
        ("gw1", "0,1", "1,0"),
        ("gw5", "0,1", "1,0"),
        ("gw2", "3,5,7", "7,3,5"),
        ("gw1", "GPU-a,GPU-b", "GPU-b,GPU-a"),
        ("gw1", "0", "0"),
        ("gw1", "", ""),
        ("master", "0,1", "0,1"),
        ("", "0,1", "0,1"),
    ],
)
def test_each_worker_has_the_gpu_of_its_turn_first(
    monkeypatch: pytest.MonkeyPatch, worker: str, visible: str, then: str
) -> None:
    monkeypatch.setenv("PYTEST_XDIST_WORKER", worker)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    gpu_turns.take_turns()
    assert gpu_turns.os.environ["CUDA_VISIBLE_DEVICES"] == then


def test_without_the_variable_a_machine_without_gpus_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw1")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(gpu_turns.torch.cuda, "device_count", lambda: 0)
    gpu_turns.take_turns()
    assert "CUDA_VISIBLE_DEVICES" not in gpu_turns.os.environ


def test_with_two_gpus_they_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw3")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "unset below")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    monkeypatch.setattr(gpu_turns.torch.cuda, "device_count", lambda: 2)
    gpu_turns.take_turns()
    assert gpu_turns.os.environ["CUDA_VISIBLE_DEVICES"] == "1,0"
