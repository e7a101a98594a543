"""The backends of published packages: without the package there is one sentence, and with it the right calls.

CI does not install the packages. Stand-ins with the same functions take their place: `package_fakes`. They are judged
on the CPU, where PyTorch computes; the packages themselves need a GPU.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from backends.base import CPU, CUDA, Backend, PythonFunction
from harness import discovery
from harness.discovery import FoundBackend
from harness.errors import Broken
from harness.judging.judge import judge
from harness.judging.subject import Subject
from harness.properties import all_properties
from harness.pytest_plugin import plugin
from harness.report.cell import DECLARED, FAIL, NOT_RUN, PASS
from harness.report.figures import unasked
from harness.running import environment
from harness.running.selection import Selection, not_installed, slots
from tests.meta.conftest import ROOT
from tests.meta.package_fakes import PACKAGES, written

#: By the folder of the backend: what pip installs for it.
_DISTRIBUTIONS = {"liger": "liger-kernel", "fla": "fla-core", "flag_gems": "flag-gems", "quack": "quack-kernels"}
_NAMES = {folder: discovery.public_name(folder) for folder in _DISTRIBUTIONS}
_OPERATORS = {
    "liger": ("cross_entropy", "embedding", "geglu", "layer_norm", "rms_norm", "rotary", "softmax", "swiglu"),
    "fla": ("cross_entropy", "layer_norm", "rms_norm", "rotary", "swiglu"),
    "flag_gems": (
        "cross_entropy",
        "embedding",
        "geglu",
        "layer_norm",
        "log_softmax",
        "rms_norm",
        "softmax",
        "swiglu",
    ),
    "quack": ("cross_entropy", "rms_norm"),
}
_EACH = [(backend, operator) for backend, operators in _OPERATORS.items() for operator in operators]

Install = Callable[..., FoundBackend]


def _forget(backend: str) -> None:
    """Remove the adapters and the stand-in from the modules that are imported."""
    names = {name.partition("/")[0].removesuffix(".py") for name in PACKAGES[backend]}
    package = sys.modules.get(f"backends.{backend}")
    for name in list(sys.modules):
        child = name.removeprefix(f"backends.{backend}.")
        if name.partition(".")[0] in names or (child != name and child != "declared"):
            del sys.modules[name]
            vars(package).pop(child, None) if package else None


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Puts the stand-in for a package on sys.path; returns the backend."""
    used: list[str] = []

    def put(backend: str, change: tuple[str, str] = ("", "")) -> FoundBackend:
        _forget(backend)
        used.append(backend)
        written(backend, tmp_path, change)
        monkeypatch.setattr(FoundBackend, "missing", lambda _: "")  # what the package needs has no stand-in
        monkeypatch.syspath_prepend(str(tmp_path))
        return discovery.backend(_NAMES[backend])

    yield put
    for backend in used:
        _forget(backend)


def _subject(found: FoundBackend, operator: str, dtype: torch.dtype = torch.float32) -> Subject:
    implementation = found.implementation(operator)
    assert isinstance(implementation, PythonFunction)
    contract = discovery.operator(operator)
    lacks = {f"{operator}[{form}]": why for form, why in found.backend.lacks.get(operator, {}).items()}
    return Subject(found.in_its_forms(contract), found.name, CPU, dtype, implementation.function, lacks=lacks)


@pytest.mark.parametrize("backend", _DISTRIBUTIONS)
def test_without_its_package_a_backend_gives_one_sentence(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    usual, needed = importlib.util.find_spec, discovery.backend(_NAMES[backend]).backend.needs
    module = next(name for name, what in needed.items() if what == _DISTRIBUTIONS[backend])
    there = {name: usual("json") for name in needed if name != module}
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *a: None if name == module else there.get(name) or usual(name, *a)
    )
    everything = Selection(operators=("rms_norm", "cross_entropy"), dtypes=("float32",))
    assert not_installed(everything)[_NAMES[backend]] == _DISTRIBUTIONS[backend]
    assert _NAMES[backend] not in {slot.backend for slot in slots(everything)}
    named = Selection(operators=("rms_norm",), backends=(_NAMES[backend],), dtypes=("float32",))
    assert not not_installed(named)
    (slot,) = slots(named)
    cell = slot.judge(all_properties()["forward-parity"])
    what = _DISTRIBUTIONS[backend]
    assert (cell.verdict, cell.reason) == (NOT_RUN, f"{what} is not installed: pip install {what}")


def test_a_run_of_everything_says_in_one_line_what_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    monkeypatch.setattr(plugin, "not_installed", lambda _: {"liger": "liger-kernel", "quack": "quack-kernels"})
    monkeypatch.setattr(plugin, "to_build", lambda _: [])
    config: Any = SimpleNamespace(
        args=["tests/conformance"],
        stash={},
        getoption=lambda _: False,
        pluginmanager=SimpleNamespace(get_plugin=lambda _: SimpleNamespace(write_line=lines.append)),
    )
    plugin._announce(config, Selection(operators=("lltm",), backends=("aten-cpp",), devices=("cpu",)))
    said = "liger (pip install liger-kernel), quack (pip install quack-kernels)"
    assert lines == [f"not judged, since a package is not installed: {said}"]


@pytest.mark.parametrize(("backend", "operator"), _EACH)
def test_an_adapter_calls_the_package_with_the_right_arguments(install: Install, backend: str, operator: str) -> None:
    found = install(backend)
    for name in ("forward-parity", "vjp-parity"):
        cell = judge(_subject(found, operator), all_properties()[name])
        assert cell.verdict == PASS, cell.reason
        assert set(unasked(cell)) >= {f"{operator}[{form}]" for form in found.backend.lacks.get(operator, {})}


_LOSES_AN_ARGUMENT = [
    ("liger", "rms_norm", ("F.rms_norm(X, X.shape[-1:], W, eps)", "F.rms_norm(X, X.shape[-1:], W, 1e-6)")),
    ("liger", "layer_norm", ("W.shape, W, B, eps)", "W.shape, W, None, eps)")),
    ("liger", "cross_entropy", ("label_smoothing=label_smoothing", "label_smoothing=0.0")),
    ("fla", "rms_norm", ("weight, eps)", "weight, 1e-6)")),
    ("fla", "rotary", ("if interleaved else", "if False else")),
    ("quack", "rms_norm", ("weight, eps)", "weight, 1e-6)")),
    ("quack", "cross_entropy", ("ignore_index=ignore_index", "ignore_index=-100")),
    ("flag_gems", "rms_norm", ("weight, eps)", "weight * 1.001, eps)")),
    ("flag_gems", "layer_norm", ("weight, bias, eps)", "weight, None, eps)")),
    ("flag_gems", "geglu", ("approximate=approximate", "approximate='none'")),
]


@pytest.mark.parametrize(("backend", "operator", "change"), _LOSES_AN_ARGUMENT, ids=lambda value: str(value)[:12])
def test_a_package_that_ignores_an_argument_is_found(
    install: Install, backend: str, operator: str, change: tuple[str, str]
) -> None:
    cell = judge(_subject(install(backend, change), operator), all_properties()["forward-parity"])
    assert cell.verdict == FAIL, cell.reason


def test_what_a_package_lacks_is_refused_and_says_so(install: Install) -> None:
    x, w = torch.ones(2, 4), torch.ones(4)
    liger = install("liger")
    for operator, call, says in (
        ("rms_norm", lambda f: f(x, None, x), "weight was None, but should be a tensor where a residual is passed"),
        ("layer_norm", lambda f: f(x, (4,)), "weight was None, but should be a tensor"),
        ("layer_norm", lambda f: f(x, (2, 4)), r"normalized_shape was \(2, 4\), but should be of one dimension"),
        ("rotary", lambda f: f(torch.ones(1, 2, 1, 4), x[:, :2], x[:, :2], True), "interleaved was True, but should"),
    ):
        with pytest.raises(NotImplementedError, match=f"{operator}: {says}.*liger-kernel has no function for it"):
            call(_subject(liger, operator).function)
    flag_gems, quack, fla = install("flag_gems"), install("quack"), install("fla")
    with pytest.raises(NotImplementedError, match="residual was a tensor, but should be None"):
        _subject(flag_gems, "rms_norm").function(x, w, x)
    with pytest.raises(NotImplementedError, match=r"label_smoothing was 0\.1, but should be 0\.0"):
        _subject(quack, "cross_entropy").function(x, torch.zeros(2, dtype=torch.int64), label_smoothing=0.1)
    with pytest.raises(NotImplementedError, match="should be of one dimension"):
        _subject(fla, "layer_norm").function(x, (2, 4))


def test_a_width_that_a_packages_backward_refuses_is_a_failure(install: Install) -> None:
    quack = _subject(install("quack"), "rms_norm")
    others = [form.form for form in quack.operator.every_form() if form.form != "vector"]
    vector = replace(quack, operator=quack.operator.without(others))
    cell = judge(vector, all_properties()["memory"])
    assert cell.verdict == FAIL
    assert cell.reason.startswith("backward raised ValueError: RMSNormBackward does not support N > 128k with dtype")


@pytest.mark.parametrize("backend", _DISTRIBUTIONS)
def test_what_it_declares_is_known(backend: str) -> None:
    """Operators, forms and properties that it names exist, and each operator has a file or a reason, not both."""
    found = discovery.backend(_NAMES[backend])
    assert tuple(found.backend.devices) == (CUDA,)
    assert torch.float64 not in found.backend.dtypes
    for operator in found.backend.lacks:
        assert found.in_its_forms(discovery.operator(operator)) is found.in_its_forms(discovery.operator(operator))
    for declaration in found.backend.declared:
        assert declaration.property in all_properties()
        assert declaration.operator in _OPERATORS[backend]
    assert not set(found.backend.absent) & set(_OPERATORS[backend])


def test_an_absent_operator_of_a_package_is_declared_without_the_package() -> None:
    (slot,) = slots(Selection(operators=("rotary",), backends=("quack",), dtypes=("float32",)))
    assert slot.judge(all_properties()["sizes"]).verdict == DECLARED


def test_forms_that_a_backend_lacks_are_left_out() -> None:
    contract = discovery.operator("rms_norm")
    left = contract.without(["weight", "residual"])
    assert [form.form for form in left.every_form()] == ["no-weight", "vector", "residual-alone"]
    for wrong in (["nonsense"], [form.form for form in contract.every_form()]):
        with pytest.raises(ValueError, match="the forms to leave out of rms_norm were"):
            contract.without(wrong)
    backend = Backend("a test", devices=(CPU,), lacks={"rms_norm": {"nonsense": "it is none"}})
    with pytest.raises(Broken, match="lacks of the backend mine: the forms to leave out"):
        FoundBackend("mine", backend, sys.modules[__name__]).in_its_forms(contract)
    with pytest.raises(ValueError, match="lacks says that 'rms_norm' has no form 'vector', but the reason is empty"):
        Backend("a test", devices=(CPU,), lacks={"rms_norm": {"vector": " "}})


def _lines(folder: str) -> Iterator[str]:
    """The section of docs/packages.md about a backend."""
    backend, name = discovery.backend(_NAMES[folder]).backend, _NAMES[folder]
    pins = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line)
    version = pins[_DISTRIBUTIONS[folder]]
    yield f"### {name}\n"
    yield f"`{_DISTRIBUTIONS[folder]}` {version}: {', '.join(_OPERATORS[folder])}.\n"
    yield "| not there | why |\n|---|---|"
    for operator, forms in sorted(backend.lacks.items()):
        yield from (f"| `{operator}[{form}]` | {reason} |" for form, reason in forms.items())
    yield from (f"| `{operator}` | {reason} |" for operator, reason in sorted(backend.absent.items()))
    reasons: dict[tuple[str | None, str], list[str]] = {}
    for each in backend.declared:
        reasons.setdefault((each.operator, each.reason), []).append(each.property)
    if reasons:
        yield "\n| declared of | properties | why |\n|---|---|---|"
    for (operator, reason), properties in reasons.items():
        yield f"| `{operator}` | {', '.join(sorted(set(properties)))} | {reason} |"
    yield ""


def test_the_page_says_what_each_backend_has() -> None:
    page = (ROOT / "docs" / "packages.md").read_text()
    text = "\n".join(line for folder in _DISTRIBUTIONS for line in _lines(folder))
    assert f"<!-- packages -->\n\n{text}\n<!-- end -->" in page, f"docs/packages.md should have:\n\n{text}"


def test_a_record_has_the_versions_of_the_packages_that_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "version", lambda what: f"1.0 of {what}")
    monkeypatch.setattr(FoundBackend, "missing", lambda self: "" if self.name == "liger" else "something")
    assert environment._packages() == {"liger-kernel": "1.0 of liger-kernel", "triton": "1.0 of triton"}
