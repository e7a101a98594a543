"""Reports for tests of the renderings: one with each verdict, one with attacks, one that is very large."""

from __future__ import annotations

import gzip
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.report.cell import DECLARED, FAIL, NO_EVIDENCE, NOT_RUN, PASS, Cell
from harness.report.levels import GRADIENTS, PRODUCTION, PYTORCH, SAFE, VALUES
from harness.report.report import Report
from harness.report.suite import KnownProperty, Suite

RESULTS = Path(__file__).parents[2] / "results"
CPU = RESULTS / "cpu" / "operators.json"
DATA = Path(__file__).with_name("data")
PLANTED = RESULTS / "nvidia-h200" / "planted-tf32.json"

MACHINE: dict[str, Any] = {
    "torch": "2.13",
    "python": "3.11",
    "gpu": None,
    "cpu": "a CPU",
    "commit": "abcdef",
    "dirty": False,
}

#: Text that a candidate may choose as its name or message to attack a rendering.
ATTACK = "</script><script>window.attacked = 1</script><img src=x onerror=window.attacked=1>\"'`|@all {{7*7}}"

SCRIPT = "from harness.replay import replay\n\nreplay(\n    operator='lltm',\n    candidate='lltm=k.py:f',\n)\n"

#: Elements by their error in units in the last place.
ULPS = [4321, 70, *[0] * 10, 5]


def cell(verdict: str = PASS, **changes: Any) -> Cell:
    """A cell of lltm, with a reason where it needs one."""
    made = Cell("lltm", "mine", "cpu", "float32", "sizes", verdict, "" if verdict == PASS else f"why {verdict}")
    return replace(made, **changes)


#: A suite other than the one that runs the test.
SUITE = Suite(
    operators=("lltm", "mlp"),
    backends=("aten-cpp", "python-autograd"),
    devices=("cpu", "cuda", "cuda-emulated"),
    dtypes=("float32", "float64", "float16", "bfloat16"),
    properties=(
        KnownProperty("forward-parity", "outputs are right", "parity", VALUES),
        KnownProperty("vjp-parity", "gradients are right", "parity", GRADIENTS),
        KnownProperty("gradcheck", "derivatives are right", "gradcheck", GRADIENTS),
        KnownProperty("double-backward", "second derivatives are right", level=GRADIENTS),
        KnownProperty("sizes", "right at every size", level=VALUES, noticed=3, asked=4, faults=2),
        KnownProperty("layouts", "right in every layout", level=VALUES),
        KnownProperty("recurrence", "a thousand steps stay near the reference", level=GRADIENTS),
        KnownProperty("memory", "no memory is kept", level=SAFE),
        KnownProperty("determinism", "the same call gives the same bits", level=SAFE),
        KnownProperty("opcheck", "opcheck accepts the operator", level=PYTORCH),
        KnownProperty("compile", "torch.compile works", level=PYTORCH),
        KnownProperty("error-messages", "errors name the argument", level=PYTORCH),
        KnownProperty("functional-transforms", "torch.func works", level=PYTORCH),
        KnownProperty("record-stream", "streams are recorded", level=PRODUCTION),
    ),
)


def of(*cells: Cell, complete: bool = True, required: str = PRODUCTION, **facts: Any) -> Report:
    """A report of these cells, with an invented machine and suite."""
    return Report({**MACHINE, **facts}, complete, cells, suite=SUITE, required=required)


#: A property of each level.
ONE_EACH = ("forward-parity", "vjp-parity", "memory", "opcheck", "record-stream")
WRONG = "new_h was 1 at (0, 2), but should be 2 (rms error 0.5, allowed 0.001) [lltm(small: batch=3)]"
WRONG_GRADIENT = "gradient of input was 1 at (0, 2), but should be 2 (rms error 0.5, allowed 0.001) [lltm(small)]"


def row(property: str, verdict: str = PASS, dtype: str = "float32", reason: str = WRONG, **changes: Any) -> Cell:
    """A cell of that property; if it failed, for that reason, by default a wrong output."""
    made = cell(verdict, property=property, dtype=dtype, **changes)
    if verdict != FAIL:
        return made
    wrong = next((name for name in ("gradient of input", "new_h", "new_c") if f"{name} was " in reason), "")
    raised = reason.partition("; it should ")[0] if reason.startswith(("forward raised", "backward raised")) else ""
    told = {name: text for name, text in (("tensor", wrong), ("raised", raised)) if text}
    return replace(made, reason=reason, figures={**told, **made.figures})


def of_levels(*verdicts: str, required: str = SAFE, **changes: Any) -> Report:
    """A report with one cell at each level, from values on, with these verdicts."""
    cells = (row(name, verdict, **changes) for name, verdict in zip(ONE_EACH, verdicts, strict=False))
    return of(*cells, required=required)


def h200() -> Report:
    """A report of LLTM on an H200, 540 cells, kept as it is: tests of the renderings know what stands in it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.json"
        path.write_bytes(gzip.decompress((DATA / "h200-lltm.json.gz").read_bytes()))
        return Report.read(path)


def one_of_each() -> Report:
    """Every verdict once, with all kinds of figures."""
    worst = {
        "used": 0.5,
        "tensor": "new_h",
        "statistic": "rms",
        "seen": 1e-8,
        "allowed": 2e-8,
        "scenario": "lltm(small)",
    }
    drift = [{"state": "new_h", "steps": n, "error": n / 4000, "allowed": 1.0} for n in (1, 10, 100, 1000)]
    beyond = {**worst, "used": 500.0, "seen": 0.5, "allowed": 1e-3}
    wrong = (
        "new_h was 1 at (0, 2), but should be 2 (rms error 0.5, allowed 0.001) [lltm(small: batch=3)]\n  - 1 element"
    )
    return of(
        cell(figures={"scenarios": 3, "tensors": 7, "worst": worst, "ulps": {"outputs": ULPS}}, seconds=1.25),
        cell(property="recurrence", figures={"horizon": {"new_h": 1000}, "drift": drift}),
        cell(FAIL, property="forward-parity", reason=wrong, figures={"reproducer": SCRIPT, "worst": beyond}),
        cell(NO_EVIDENCE, property="layouts"),
        cell(DECLARED, property="functional-transforms", figures={"seen": "vmap raised"}),
        cell(NOT_RUN, property="gradcheck"),
    )


def in_forms() -> Report:
    """Passes of an operator in several forms, one of which was not tested."""
    drift = [{"state": "h", "steps": n, "error": share, "allowed": 1.0} for n, share in ((1, 0.25), (10, 0.5))]
    forms = {
        "op[rows]": {"scenarios": 2, "cases": ["small", "large"], "drift": drift},
        "op[images]": {"cases": ["small"]},
    }
    figures = {"forms": forms, "not asked of": {"op[flat]": "it has no rows"}, "scenarios": 2}
    return of(cell(property="gradcheck", figures=figures), cell(property="layouts", figures=figures))


def attacking() -> Report:
    """Every text that a candidate can choose is an attack, in cells of each verdict."""
    figures = {"scenarios": 1, "worst": {"used": 0.1, "tensor": ATTACK, "scenario": ATTACK, "statistic": ATTACK}}
    rest = {"reproducer": ATTACK, "seen": ATTACK, "__proto__": {ATTACK: [ATTACK]}, ATTACK: ATTACK}
    cells = [
        cell(
            verdict, backend=f"{ATTACK}{verdict}", reason="" if verdict == PASS else ATTACK, figures={**figures, **rest}
        )
        for verdict in (PASS, FAIL, NO_EVIDENCE, DECLARED, NOT_RUN)
    ]
    drifting = {"drift": [{"state": ATTACK, "steps": 10, "error": 0.1, "allowed": 1.0}]}
    cells += [cell(operator=ATTACK, property="recurrence", figures=drifting), cell(device=ATTACK), cell(dtype=ATTACK)]
    return of(*cells, gpu=ATTACK, novelty={ATTACK: ATTACK}, commit=ATTACK)


def large(cells: int = 20_000) -> Report:
    """Many copies of the H200 report with other operators and backends and distinct texts; some cells fail."""
    report, planted = h200(), Report.read(PLANTED)
    wrong = [cell for cell in planted.cells if cell.verdict == FAIL]
    made: list[Cell] = []
    copy = 0
    while len(made) < cells:
        for number, found in enumerate(report.cells[: cells - len(made)]):
            names = {"operator": f"operator-{copy // 4}", "backend": f"{found.backend}-{copy % 4}"}
            figures = dict(found.figures)
            if "worst" in figures:
                scenario = f"{figures['worst']['scenario']} #{copy}.{number}"
                used = round((0.1 + figures["worst"]["used"] * (1 + copy % 7) / 5) % 1, 4)
                figures["worst"] = {**figures["worst"], "scenario": scenario, "used": used}
            if found.verdict == PASS and (number + copy) % 20 == 0:
                bad = wrong[(number + copy) % len(wrong)]
                reason = f"{bad.reason} #{copy}.{number}"
                figures = {**bad.figures, "reproducer": f"{bad.figures.get('reproducer', '')}# {copy}.{number}"}
                made.append(replace(found, **names, verdict=FAIL, reason=reason, figures=figures))
            else:
                made.append(replace(found, **names, figures=figures))
        copy += 1
    return Report(report.environment, True, tuple(made), suite=report.suite)


def timed(backend: str = "aten-cpp", seconds: float = 1e-4, **changes: Any) -> dict[str, Any]:
    """A row of a bench record: that backend at the tutorial's sizes; the reference takes 1e-4 s."""
    row = {"operator": "lltm", "backend": backend, "device": "cpu", "dtype": "float32", "case": "tutorial"}
    row |= {"sizes": {"batch": 16}, "phase": "forward+backward", "clock": "wall", "threads": 1, "samples": [seconds]}
    row |= {"seconds": _around(seconds), "ratios": {"python-autograd": _around(1e-4 / seconds)}}
    row |= {
        "bytes": 300_000,
        "flops": 2_000_000,
        "roofline": {"seconds": 2e-5, "bound": "memory", "fraction": 2e-5 / seconds},
    }
    return {**row, **changes}


def _around(value: float) -> dict[str, float]:
    return {"low": 0.9 * value, "median": value, "high": 1.1 * value}


def bench(*rows: dict[str, Any], missing: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    """A bench record with these rows; a CPU of 10 GB/s and 100 GFLOP/s."""
    ceiling = {"device": "cpu", "dtype": "float32", "threads": 1, "flops_per_second": 1e11}
    return {
        "kind": "bench",
        "schema": 1,
        "environment": MACHINE,
        "settings": {"rounds": 1, "block_seconds": 0.002, "seed": 0},
        "ceilings": [{**ceiling, "copies": [[1e4, 5e10], [1e8, 1e10]]}],
        "rows": list(rows),
        "missing": missing or [],
    }
