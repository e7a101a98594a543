"""torch.compile traces the whole operator, forward and backward, and what it traced is right.

Eager calls do not show a graph break, a Meta kernel that gives a wrong shape for a gradient, or a backward that AOT
autograd cannot trace. So the operator is compiled with fullgraph=True and AOT autograd, which traces both directions on
fake tensors. The traced graphs are then run with the ordinary kernels, as by the backend `aot_eager`: no code is
generated, and the values must keep the same allowance as in eager calls. Each tensor of the traced graphs must have the
shape and the dtype of its fake. This is done with static sizes, and with dynamic=True at four sizes of the batch. An
operator that specialises on a size is compiled again for each, which costs much time in training. One extra compilation
is permitted, for an operator that has two code paths; the figures give the number.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch

from harness.errors import Failure
from harness.judging.property import INTEGRATION, Property
from harness.judging.scenario import Scenario
from harness.judging.scenarios import smallest
from harness.judging.subject import Subject
from harness.judging.tally import Tally
from harness.report.levels import PYTORCH

#: How many rows more each call with dynamic=True has.
_MORE = (0, 4, 5, 11)
#: How often dynamic=True may compile again over these sizes.
_AGAIN = 1


def check(subject: Subject) -> dict[str, Any]:
    """Static, then dynamic at four sizes: outputs and gradients of each call."""
    scenario = smallest(subject.operator)
    tally = Tally(subject)
    again = {"static": _run(tally, subject, False, [scenario])}
    again["dynamic"] = _run(tally, subject, True, [with_more(scenario, more) for more in _MORE])
    if again["dynamic"] > _AGAIN:
        raise Failure(
            f"torch.compile(dynamic=True) compiled {1 + again['dynamic']} times for {len(_MORE)} sizes of "
            f"{dynamic_symbol(scenario)}, but should at most {1 + _AGAIN} times: it depends on the number itself "
            f"[{scenario.describe(subject.operator)}]"
        )
    return {**tally.figures(), "recompilations": again}


def dynamic_symbol(scenario: Scenario) -> str:
    """The size that changes from call to call: the batch, or the first size of an operator that has no batch."""
    sizes = dict(scenario.sizes)
    return "batch" if "batch" in sizes else next(iter(sizes))


def with_more(scenario: Scenario, more: int) -> Scenario:
    """The same call with `more` further rows, or with its first size larger by `more`."""
    sizes = dict(scenario.sizes)
    sizes[dynamic_symbol(scenario)] += more
    return replace(scenario, name="larger" if more else scenario.name, sizes=tuple(sizes.items()))


@contextmanager
def compiling() -> Iterator[None]:
    """Forget what Dynamo compiled before; afterwards, forget what was compiled inside.

    With donated buffers a forward would allow one backward only, and the check keeps the graph. torch's warnings while
    it traces are ignored: the candidate does not cause them.
    """
    import torch._functorch.config as aot_config  # here: torch.compile takes seconds to import

    torch.compiler.reset()
    try:
        with warnings.catch_warnings(), aot_config.patch(donated_buffer=False):
            warnings.simplefilter("ignore")
            yield
    finally:
        torch.compiler.reset()


def plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same as a plain function, since torch.compile takes no partial and no instance of a class."""

    def eager(*inputs: Any) -> Any:
        return function(*inputs)

    return eager


def _run(tally: Tally, subject: Subject, dynamic: bool, scenarios: Iterable[Scenario]) -> int:
    """Compare compiled calls with their oracles. Returns how often the operator was compiled after the first time."""
    how = f"under torch.compile(fullgraph=True, dynamic={dynamic})"
    tracer = _Tracer()
    with compiling():
        tally.subject = replace(subject, function=tracer.compiled(subject.function, dynamic))
        for scenario in scenarios:
            try:
                tally.run(scenario)
            except Failure as failure:
                if tracer.in_words():
                    raise Failure(f"{how}, {tracer.in_words()}") from failure
                # Without a reproducer, which would call the operator eagerly.
                raise failure.prefixed(f"{how}, ") from failure
            if tracer.in_words():
                raise Failure(f"{how}, {tracer.in_words()} [{scenario.describe(subject.operator)}]")
    return tracer.graphs - 1


class _Tracer:
    """A backend of torch.compile: it runs the graphs of AOT autograd, and records fakes that differ from the result."""

    def __init__(self) -> None:
        self.graphs = 0
        self._untrue: list[str] = []

    def in_words(self) -> str:
        """The first tensor that differs from its fake; empty if none does."""
        return next(iter(self._untrue), "")

    def compiled(self, function: Callable[..., Any], dynamic: bool) -> Callable[..., Any]:
        """The function under torch.compile. `function` may be any callable."""
        from torch._dynamo.backends.common import aot_autograd
        from torch._dynamo.exc import BackendCompilerFailed

        backend = aot_autograd(fw_compiler=self._forward, bw_compiler=self._checked)

        traced = torch.compile(plain(function), backend=backend, fullgraph=True, dynamic=dynamic)

        def call(*inputs: Any) -> Any:
            try:
                return traced(*inputs)
            except BackendCompilerFailed as error:  # its own first line says only that a backend failed
                raise error.inner_exception from error

        return call

    def _forward(self, graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        self.graphs += 1
        return self._checked(graph, inputs)

    def _checked(self, graph: torch.fx.GraphModule, _: Sequence[Any]) -> Callable[..., Any]:
        from torch._functorch._aot_autograd.utils import make_boxed_func

        untrue = self._untrue

        class Run(torch.fx.Interpreter):
            def run_node(self, n: torch.fx.Node) -> Any:
                result = super().run_node(n)
                untrue.extend(_differences(str(n.target), n.meta.get("val"), result))
                return result

        boxed: Callable[..., Any] = make_boxed_func(Run(graph).run)
        return boxed


def _differences(target: str, fake: Any, real: Any) -> Iterable[str]:
    """How the fake of one node's result differs from the result. Symbolic sizes are not compared."""
    fakes, reals = (value if isinstance(value, tuple | list) else (value,) for value in (fake, real))
    for index, (one, other) in enumerate(zip(fakes, reals, strict=False)):
        if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
            known = [(n, m) for n, m in zip(one.shape, other.shape, strict=False) if isinstance(n, int)]
            if one.dim() != other.dim() or one.dtype != other.dtype or any(n != m for n, m in known):
                yield (
                    f"result {index} of {target} was {other.dtype} {tuple(other.shape)}, "
                    f"but its Meta kernel says {one.dtype} {tuple(one.shape)}"
                )


PROPERTY = Property(
    "compile",
    "torch.compile traces forward and backward without graph breaks, and values are right",
    check,
    view=INTEGRATION,
    level=PYTORCH,
    dtypes=("float32",),
    why_only="tracing is the same code in every dtype",
)
