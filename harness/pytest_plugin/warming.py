"""A process that stays and forks to judge: it imports and finds out before what each judge needs."""

from __future__ import annotations

import contextlib
import gc
import importlib
import io

from harness.pytest_plugin import invocation
from harness.running import forking

_OPERATOR = "softmax"
_COLLECTED = (
    "--collect-only",
    f"--operator={_OPERATOR}",
    "--backend=python-autograd",
    "--device=cpu",
    "--dtype=float32",
)


def warm_up() -> None:
    """Import what a judge imports, by pytest itself, which would warn of modules that were there before it.

    Nothing is judged, so nothing starts threads or uses CUDA here: a fork would have neither. Nor is there a backward,
    not even that of a contract's check: where there is a GPU, autograd starts a thread for it at the first one, and
    raises in a fork from then on.
    """
    forking.ask_nvml()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        importlib.import_module("torch._dynamo")  # which the first use of torch.func imports
        from harness import discovery
        from harness.judging import contract_check

        contract_check.trust(discovery.operators()[_OPERATOR])
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
