"""Every test here that takes an `operator` runs for each operator in `spec/`; a new one is included automatically.

With `small_case` it also runs for each case tagged "small". With `case` and `families` it runs for each case tagged
"size" or "small", with all families of finite values at once: for each of 7,000 pairs pytest and pytest-xdist would
take 4 ms. A case whose inputs have more than LARGE elements tests the size only, and has "normal" alone. A test that
takes a `traced` one is short for the first form of each operator, as it compiles something for each.
"""

from __future__ import annotations

import importlib
import math
import pkgutil
from pathlib import Path

import pytest

import spec
from spec.contract import Case, Family, Operator

LARGE = 100_000
HERE = Path(__file__).parent


def _families(operator: Operator, case: Case) -> list[Family]:
    elements = sum(math.prod(arg.shape_for(case.sizes)) for arg in operator.inputs)
    finite = [family for family in operator.families if family.name != "non-finite" and elements <= LARGE]
    return [operator.family("normal"), *finite]


def _operators() -> list[Operator]:
    modules = [importlib.import_module(f"spec.{module.name}") for module in pkgutil.iter_modules(spec.__path__)]
    return [form for module in modules if hasattr(module, "OPERATOR") for form in module.OPERATOR.every_form()]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Fill in `traced`, or `operator`, and with it `small_case`, or `case` and `families`."""
    wanted = set(metafunc.fixturenames)
    if {"operator", "case", "families"} <= wanted:
        scenarios = [
            pytest.param(operator, case, _families(operator, case), id=f"{operator.title}-{case.name}")
            for operator in _operators()
            for case in operator.cases
            if case.tags & {"size", "small"}
        ]
        metafunc.parametrize(("operator", "case", "families"), scenarios)
    elif {"operator", "small_case"} <= wanted:
        scenarios = [
            pytest.param(operator, case, id=f"{operator.title}-{case.name}")
            for operator in _operators()
            for case in operator.cases
            if "small" in case.tags
        ]
        metafunc.parametrize(("operator", "small_case"), scenarios)
    elif "traced" in wanted:
        seen, forms = set[str](), []
        for form in _operators():
            marks = [pytest.mark.long("again")] if form.name in seen else []
            forms.append(pytest.param(form, id=form.title, marks=marks))
            seen.add(form.name)
        metafunc.parametrize("traced", forms)
    elif "operator" in wanted:
        metafunc.parametrize("operator", _operators(), ids=lambda operator: operator.title)


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the groups in the same hook, before the hooks of a conftest
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Group the tests of a file by operator: pytest-xdist looks at every group that was begun, after every test."""
    for item in items:
        if isinstance(item, pytest.Function) and item.path.parent == HERE and hasattr(item, "callspec"):
            operator = item.callspec.params.get("operator") or item.callspec.params.get("traced")
            if operator is not None:
                item.add_marker(pytest.mark.xdist_group(f"{item.path.stem}-{operator.name}"))
