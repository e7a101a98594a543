"""Calls are steered to the lines of a candidate's Python files that ordinary calls do not reach, and the report names
what remains."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from backends.base import CPU
from harness import discovery
from harness.executing.watching import Watcher
from harness.judging.guided import SWEPT, VOLUME, Mutations, swept, volume
from harness.judging.judge import judge
from harness.judging.lines import Reached
from harness.judging.scenario import COTANGENTS, LAYOUTS, realise
from harness.judging.scenarios import smallest
from harness.judging.subject import Subject
from harness.properties import all_properties
from harness.rendering import html, summary, tables
from harness.report import figures
from harness.report.cell import FAIL, NOT_RUN, PASS, Cell
from harness.running.candidate_process import Limits
from harness.running.isolation import Isolation
from harness.running.selection import Selection, slots
from tests.meta.reports import ATTACK, cell, of
from tests.meta.tiers import first_alone

NAME = "unreached-code"
CANDIDATES = """\
import sys
import torch
import torch.nn.functional as F


def right(input, weights, bias, old_h, old_cell):
    z_i, z_o, z_k = F.linear(torch.cat([old_h, input], dim=1), weights, bias).chunk(3, 1)
    new_cell = old_cell + F.elu(z_k) * torch.sigmoid(z_i)
    return torch.tanh(new_cell) * torch.sigmoid(z_o), new_cell


def odd(outputs, is_odd):
    new_h, new_cell = outputs
    if is_odd:
        new_h = 1.01 * new_h
    return new_h, new_cell


def remainder(input, *others):
    return odd(right(input, *others), (len(input) * 7) % 128 == 3)


def layout(input, *others):
    transposed = input.stride(0) == 1 and input.stride(1) > 1 and others[2].stride(1) == 2
    return odd(right(input, *others), transposed)


def without_grad(input, *others):
    return odd(right(input, *others), torch.is_inference_mode_enabled())


def untraced(input, *others):
    sys.settrace(None)
    return odd(right(input, *others), (len(input) * 7) % 32 == 3)


class Backward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        if (g.shape[0] * 7) % 32 == 3:
            return 1.01 * g
        return g.clone()


def gradient(input, *others):
    return right(Backward.apply(input), *others)


@torch.compile(backend="eager")
def compiled(input, *others):
    return odd(right(input, *others), (len(input) * 7) % 32 == 3)


def dead(input, *others):
    if input.dim() != 2:
        message = "input should have 2 dimensions"
        raise ValueError(message)
    if input.is_cuda:
        input = input + 1
    new_h, new_cell = right(input, *others)
    if len(input) * 2 % 2 == 1:  # pragma: no cover
        new_h = (
            0 * new_h
        )
        other(new_h)
    if len(input) >= 0:
        new_h = new_h + 0
    return new_h, new_cell


def other(x):
    return seven(x)


def refuses(input, *others):
    if (len(input) * 7) % 32 == 3:
        x = [][0]
    return right(input, *others)


scripted = torch.jit.script(right)
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("candidates") / "kernels.py"
    path.write_text(CANDIDATES)
    return path


def line_of(text: str) -> int:
    """The number of the only line that contains the text."""
    (found,) = [number for number, line in enumerate(CANDIDATES.splitlines(), start=1) if text in line]
    return found


def cell_here(file: Path, name: str) -> Cell:
    """The cell of a candidate of this process."""
    function = getattr(discovery.import_file(file, "planted"), name)
    subject = Subject(discovery.operator("lltm"), name, CPU, torch.float32, function, files=(file,))
    return judge(subject, all_properties()[NAME])


@pytest.fixture(scope="module")
def there(file: Path) -> Iterator[Any]:
    """Judges a candidate in a process of its own."""
    names = ("remainder", "untraced", "gradient", "compiled", "dead", "scripted")
    selection = Selection(
        candidates=tuple(f"lltm={file}:{name}" for name in names), dtypes=("float32",), devices=("cpu",)
    )
    places = {slot.backend: slot for slot in slots(selection)}
    made = Isolation(selection, Limits(seconds=120, memory=2**31))
    yield lambda name: made.judge(places[name], NAME)
    made.stop()


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("remainder", "new_h = 1.01 * new_h"),
        ("layout", "new_h = 1.01 * new_h"),
        ("without_grad", "new_h = 1.01 * new_h"),
        ("gradient", "return 1.01 * g"),
        ("compiled", "new_h = 1.01 * new_h"),
    ],
)
def test_a_wrong_branch_on_a_computed_condition_is_found(file: Path, name: str, line: str) -> None:
    found = cell_here(file, name)
    assert found.verdict == FAIL, found
    assert "elements are wrong" in found.reason
    assert f"calls that took the branch to line {line_of(line)} of kernels.py: {line}" in found.reason


@pytest.mark.parametrize("name", first_alone(["remainder", "gradient", "compiled"]))
def test_it_is_found_in_a_process_of_its_own(there: Any, name: str) -> None:
    found = there(name)
    assert found.verdict == FAIL, found
    assert "took the branch to line" in found.reason
    assert "scenario = Scenario(" in found.figures["reproducer"]


def test_a_branch_that_raises_is_a_failure_with_a_reproducer(file: Path) -> None:
    found = cell_here(file, "refuses")
    assert found.verdict == FAIL
    assert "forward raised IndexError" in found.reason
    assert "scenario = Scenario(" in found.figures["reproducer"]


def _holds_dead(found: Cell) -> None:
    assert found.verdict == PASS, found
    lines = [(line.line, line.always) for line in figures.unreached(found)]
    assert lines == [
        (line_of("new_h = ("), False),
        (line_of("        other(new_h)"), False),
        (line_of("if len(input) >= 0"), True),
        (line_of("return seven(x)"), False),
    ]
    assert found.figures["unreached_lines"] == 4
    assert found.figures["calls"] > 200


def test_dead_lines_of_a_right_function_are_named(file: Path) -> None:
    """Not those that raise or are for a GPU; a comment for coverage.py hides nothing."""
    _holds_dead(cell_here(file, "dead"))


def test_they_are_named_from_another_process(there: Any) -> None:
    _holds_dead(there("dead"))


def test_without_a_line_of_python_it_is_not_run(there: Any) -> None:
    found = there("scripted")
    assert found.verdict == NOT_RUN
    assert "no line of a Python function of its files ran" in found.reason


def test_without_a_source_it_is_not_run(file: Path, tmp_path: Path) -> None:
    function = discovery.import_file(file, "planted").right
    for files, words in ((None, "its source is not known"), ((tmp_path / "kernel.cu",), "has no Python file")):
        subject = Subject(discovery.operator("lltm"), "right", CPU, torch.float32, function, files=files)
        found = judge(subject, all_properties()[NAME])
        assert found.verdict == NOT_RUN
        assert words in found.reason


def test_who_turns_off_tracing_is_judged_by_every_call(there: Any, file: Path) -> None:
    for found in (there("untraced"), cell_here(file, "untraced")):
        assert found.verdict == FAIL, found
        assert "it is 1.01 times what it should be" in found.reason


def test_all_lines_reached_end_the_search(file: Path) -> None:
    found = cell_here(file, "right")
    assert found.verdict == PASS
    assert found.figures["calls"] < 10
    assert found.figures["unreached_lines"] == 0


def test_forms_are_noted_together() -> None:
    """What one form of LayerNorm alone reaches is not missed in another one."""
    selection = Selection(
        operators=("layer_norm",), backends=("python-autograd",), dtypes=("float32",), devices=("cpu",)
    )
    (slot,) = slots(selection)
    found = slot.judge(all_properties()[NAME])
    assert found.verdict == PASS
    assert figures.unreached(found) == []


# What a process reports


def test_another_tracer_is_left_alone(file: Path) -> None:
    def tracer(*_: Any) -> None:
        return None

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        found, after = cell_here(file, "right"), sys.gettrace()
    finally:
        sys.settrace(before)
    assert after is tracer
    assert found.verdict == NOT_RUN
    assert "another tracer runs in this process" in found.reason


def test_a_tracer_that_a_call_left_is_noticed(file: Path) -> None:
    watcher = Watcher([str(file)])
    with watcher.watching():
        pass
    assert not watcher.disturbed
    assert sys.gettrace() is None
    sys.settrace(lambda *_: None)
    try:
        with watcher.watching():
            pass
    finally:
        sys.settrace(None)
    assert watcher.disturbed


def test_only_the_watched_files_and_calls_are_noted(file: Path) -> None:
    function = discovery.import_file(file, "planted").other
    function.__globals__["seven"] = int
    watcher = Watcher([str(file)])
    function(1)
    assert watcher.news() == {}
    with watcher.watching():
        function(1)
        smallest(discovery.operator("lltm"))
    (noted,) = watcher.news().items()
    assert noted[0] == str(file)
    assert {line for branch in noted[1] for line in branch if line > 0} == {line_of("return seven(x)")}
    assert watcher.news() == {}


def test_a_reply_that_is_no_report_counts_as_disturbed() -> None:
    from harness.running.remote_function import RemoteFunction

    for header in ({}, {"ran": 3, "disturbed": False}, {"ran": {"a.py": [["x"]]}, "disturbed": False}):
        watch = RemoteFunction(lambda header, tensors: (header, tensors), "cpu").watch(["a.py"])
        watch.learn(dict(header))
        assert watch.disturbed, header
        assert watch.news() == {}
    watch.disturbed = False
    watch.learn({"error": {}})
    watch.learn({"ran": {"a.py": [[1, 2]], "b.py": [[3, 4]]}, "disturbed": False})
    assert not watch.disturbed
    assert watch.news() == {"a.py": [(1, 2)]}


# The lines of a source


def reached_of(tmp_path: Path, text: str, *branches: tuple[int, int]) -> list[tuple[int, bool]]:
    path = tmp_path / "source.py"
    path.write_text(text)
    found = Reached([path])
    found.add({str(path): list(branches)})
    return [(line.line, line.always) for line in found.unreached()]


@pytest.mark.parametrize(
    ("text", "branches", "unreached"),
    [
        ("def f(x):\n    y = x\n    return y\n", [(-1, 2)], [(3, False)]),
        ("def f(x):\n    '''Doc.'''\n    return (\n        x\n    )\n", [(-1, 4), (4, 3), (3, -1)], []),
        ("x = 1\ny = 2\n", [(-1, 1)], []),  # runs at import
        ("def f(x):\n    return x\ndef g(x):\n    return x\n", [(-1, 2)], []),  # g is another function
        ("def f(x):\n    if x: return g(x)\n    return x\ndef g(x):\n    return x\n", [(-1, 2), (2, 3)], [(5, False)]),
        ("def f(x):\n    if x: return g(x)\n    return x\n@jit\ndef g(x):\n    return x\n", [(-1, 2), (2, 3)], []),
        ("def f(x):\n    if x:\n        x = 1\n    return x\n", [(-1, 2), (2, 3), (3, 4)], [(2, True)]),
        ("def f(x):\n    if x:\n        x = 1\n    return x\n", [(-1, 2), (2, 4)], [(3, False)]),
        ("def f(x):\n    if x:\n        x = 1\n    raise x\n", [(-1, 2), (2, 3), (3, 4)], [(2, True)]),
        ("def f(x):\n    if x:\n        y = 1\n        raise y\n    return x\n", [(-1, 2), (2, 5)], []),
        ("def f(x):\n    if x.dtype == 1:\n        x = 1\n    return x\n", [(-1, 2), (2, 4)], []),
        ("def f(x):\n    for y in x:\n        x = 1\n    return x\n", [(-1, 2), (2, 4)], [(3, False)]),
        ("def f(x):\n    def g():\n        return x\n    return g\n", [(-1, 2), (2, 4)], [(3, False)]),
        ("def f(x:\n", [], []),
    ],
)
def test_unreached_lines(
    tmp_path: Path, text: str, branches: list[tuple[int, int]], unreached: list[tuple[int, bool]]
) -> None:
    assert reached_of(tmp_path, text, *branches) == unreached


# The steered calls


@pytest.mark.parametrize("name", ["lltm", "lltm_sequence", "mlp"])
def test_every_size_occurs_in_the_sweep(name: str) -> None:
    operator = discovery.operator(name)
    found = [dict(scenario.sizes) for scenario in swept(operator)]
    for symbol in operator.symbols():
        sizes = set(range(1, 9 if symbol in operator.sequential else SWEPT + 1))
        assert {sizes[symbol] for sizes in found} == sizes
    assert all(volume(operator, sizes) <= VOLUME for sizes in found)


def test_changed_calls_are_calls_of_the_operator_and_the_same_each_time() -> None:
    operator = discovery.operator("lltm")
    runs = []
    for _ in range(2):
        mutations, corpus = Mutations(operator, 0), [smallest(operator)]
        for _ in range(300):
            corpus.append(mutations.of(corpus))
        runs.append(corpus)
    assert runs[0] == runs[1]
    assert {layout for scenario in corpus for _, layout in scenario.layouts} == set(LAYOUTS) - {"contiguous"}
    assert {kind for scenario in corpus for _, kind in scenario.cotangents} == set(COTANGENTS) - {"normal", "inner"}
    assert {scenario.values for scenario in corpus} >= {family.name for family in operator.families}
    assert len({scenario.wanted for scenario in corpus}) > 10
    for scenario in corpus[::20]:
        call = realise(operator, scenario, torch.float32)
        assert any(g is not None for g in call.cotangents)


# The report


def unreached_cell(*lines: dict[str, Any], **changes: Any) -> Cell:
    return cell(property=NAME, figures={"unreached": list(lines)}, **changes)


def told(line: int, **changes: Any) -> dict[str, Any]:
    return {"file": "kernel.py", "line": line, "text": f"x = {line}", "always": False, **changes}


SAID = "3 lines of kernel.py were reached by no call: 41, 57-58"


def shown(*cells: Cell) -> str:
    stream = io.StringIO()
    tables.print_report(of(*cells), tables.console(stream))
    return stream.getvalue()


def test_unreached_lines_are_shown() -> None:
    found = unreached_cell(told(41), told(57), told(58), told(60, text="if x:", always=True))
    text = shown(found)
    assert SAID in text
    assert "1 condition of kernel.py was true in every call: 60" in text
    assert "kernel.py:41: x = 41" in text
    said = summary.markdown(of(found))
    assert f"- lltm / mine on cpu: {SAID}." in said
    assert "Reached by no call" not in shown(cell())
    assert "Reached by no call" not in summary.markdown(of(cell()))


def test_a_failed_cell_names_none() -> None:
    """It stopped at the first wrong value."""
    assert "Reached by no call" not in shown(unreached_cell(told(41), verdict=FAIL, reason="wrong"))


def test_a_line_is_unreached_if_no_form_reached_it() -> None:
    forms = {"a": {"unreached": [told(3), told(4)]}, "b": {"unreached": [told(4)]}}
    assert [line.line for line in figures.unreached(cell(figures={"forms": forms}))] == [4]
    assert figures.unreached(cell(figures={"forms": {**forms, "c": {}}})) == []


def test_a_source_cannot_attack_a_rendering() -> None:
    found = unreached_cell(told(1, text=ATTACK, file=ATTACK))
    assert "<img" not in summary.markdown(of(found))
    assert "<img src=x" not in html.page(of(found))
    assert figures.unreached(unreached_cell({"line": "x"}, told(True, file=None))) == figures.unreached(  # type: ignore[arg-type]
        unreached_cell(told(True, file=None))
    )
    assert figures.unreached(cell(figures={"unreached": 3})) == []
