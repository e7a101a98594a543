"""A process that stays and forks to judge: it imports and finds out before what each judge needs."""

from __future__ import annotations

import contextlib
import gc
import importlib
import io
import os

from harness.pytest_plugin import invocation

_COLLECTED = ("--collect-only", "--operator=softmax", "--backend=python-autograd", "--device=cpu", "--dtype=float32")


def warm_up() -> None:
    """Import what a judge imports, by pytest itself, which would warn of modules that were there before it.

    Nothing is judged, so nothing starts threads or uses CUDA here: a fork would have neither.
    """
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        importlib.import_module("torch._dynamo")  # which the first use of torch.func imports
        invocation.judged([*_COLLECTED, "-n0"])
    _draw_some()
    from harness.judging import stored
    from harness.report import shards
    from harness.running import environment, sandbox, suite

    shards.sources()
    stored.prepare()
    environment.prepare()
    sandbox.described()
    suite.describe()
    gc.freeze()  # a fork need not look at these objects, so their pages stay shared


def _draw_some() -> None:
    """Have hypothesis find out which of the imported modules are no package's: it draws the constants in those too."""
    from hypothesis import given, seed, settings
    from hypothesis import strategies as st

    @seed(0)
    @settings(max_examples=200, database=None, deadline=None)
    @given(st.integers())
    def draw(_: int) -> None:
        pass

    draw()
