"""`harness.fleet.judge`: judge many candidates, for a training loop and for the command line."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import Unavailable, UsageError
from harness.fleet import input, local
from harness.fleet.item import Item
from harness.fleet.outcome import CandidateResult
from harness.fleet.schedule import Observer, Pool, Schedule
from harness.fleet.store import Store

#: The command that judges in a process of its own.
JUDGE = (sys.executable, "-m", "harness", "judge")
#: Seconds for all cells of one candidate.
LIMIT = 1800.0
_CPU, _CUDA = "cpu", "cuda"


@dataclass(frozen=True)
class FleetPlan:
    """How a fleet judges: with which options of `judge`, and on which workers.

    `command` is empty for forks of a process that has imported the suite, or the command of a new process.
    """

    device: str
    options: tuple[str, ...] = ()
    limit: float = LIMIT
    workers: int = 0
    per_gpu: int = 1
    command: tuple[str, ...] = ()
    ray: str | None = None

    def pool(self, root: Path) -> Pool:
        """The workers. Raises Unavailable if this machine lacks a GPU, or Ray."""
        if self.ray is not None:
            from harness.fleet.ray_pool import RayPool

            return RayPool(self.ray, self.device, self.workers, self.per_gpu, self.command)
        found = local.gpus() if self.device == _CUDA else []
        if self.device == _CUDA and not found:
            raise Unavailable("the device is cuda, but this machine has no GPU that nvidia-smi shows")
        usual = len(found) * self.per_gpu if found else local.cores()
        return local.LocalPool(local.places(self.workers or usual, found), root, self.command)


def usual_device() -> str:
    """`cuda` where there is a GPU."""
    return _CUDA if local.gpus() else _CPU


def judge(
    candidates: Iterable[Item | dict[str, Any]],
    *,
    operator: str = "",
    reference: str = "",
    example: str = "",
    function: str = "",
    device: str = "",
    dtypes: Sequence[str] = (),
    properties: Sequence[str] = (),
    level: str = "",
    options: Sequence[str] = (),
    workers: int = 0,
    per_gpu: int = 1,
    limit: float = LIMIT,
    results: str | Path | None = None,
    command: Sequence[str] = (),
    ray: str | None = None,
) -> Generator[CandidateResult]:
    """Judge each candidate in a process of its own, many at a time; yields a `CandidateResult` as soon as it is there.

    A candidate is an `Item` or a dict of its fields: `source` (the text of a Python file) or `path`, `function`, `id`
    (by default its number), and `operator`, or `reference` and `example`; what it leaves out is taken from the
    arguments. `result.score` is a number from 0 to 1 (see `harness.fleet.score`), `result.right` whether everything
    required holds, `result.sentence` the verdict in words.

    `device` is "cpu" or "cuda", by default the GPU where there is one. `dtypes`, `properties` and `level` are those of
    `judge`, and `options` more of its options. `workers` is by default the number of cores, or `per_gpu` for each GPU.
    `limit` is in seconds, for all cells of one candidate. With `results`, a SQLite file, the fleet can be resumed: what
    is there is yielded at once and not judged again. `command` judges by a command of its own in place of forks of a
    warm process: `harness.fleet.api.JUDGE` is `python -m harness judge`. `ray` is the address of a Ray cluster, or
    "local".

    A candidate that ends its worker is judged once more by another one, and is `broken` if it does so again; no other
    candidate is affected. The results come in the order in which they are ready. If the iterator is closed, the workers
    end. Raises UsageError for a candidate or an option that cannot be read, before anything is judged; Unavailable for
    a missing GPU or package.
    """
    defaults = _without_empty(operator=operator, reference=reference, example=example, function=function)
    if operator and reference:
        raise UsageError("judge was given operator and reference, but should be given one of them")
    given = [f"--dtype={name}" for name in dtypes] + [f"--property={name}" for name in properties]
    given += [f"--level={level}"] if level else []
    plan = FleetPlan(
        device=device or usual_device(),
        options=(*given, *options),
        limit=limit,
        workers=workers,
        per_gpu=per_gpu,
        command=tuple(command),
        ray=ray,
    )
    items = input.of_iterable(candidates, defaults)
    return run(items, plan, Path(results) if results is not None else None)


def run(
    items: Sequence[Item], plan: FleetPlan, results: Path | None = None, watches: Sequence[Observer] = ()
) -> Generator[CandidateResult]:
    """Judge the items by the plan: those that the file has already are yielded first."""
    options = [f"--device={plan.device}", *plan.options]
    with ExitStack() as stack:
        left, told = list(items), [*watches]
        if results is None:
            root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="fleet-", ignore_cleanup_errors=True)))
        else:
            store = Store(results, {"options": options})
            stack.callback(store.close)
            root = Path(f"{results}.work")
            shutil.rmtree(root, ignore_errors=True)  # of a fleet that was killed
            root.mkdir()
            stack.callback(shutil.rmtree, root, ignore_errors=True)
            left = store.begin(items)
            waiting, wanted = {item.id for item in left}, {item.id for item in items}
            for found in list(store.results()):
                if found.id in wanted - waiting:
                    for watch in watches:
                        watch.kept(found)
                    yield found
            told.insert(0, store)
        if left:
            pool = plan.pool(root)
            stack.callback(pool.close)
            yield from Schedule(left, pool, options, plan.limit, told).run()


def _without_empty(**values: str) -> dict[str, str]:
    return {name: value for name, value in values.items() if value}
