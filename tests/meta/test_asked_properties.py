"""What `judge` makes of names of properties, and of a file without an option."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from harness.errors import UnknownName, UsageError
from harness.properties import all_properties
from harness.pytest_plugin.asked_properties import SUITE, by_tests, refuse_files, require_known
from harness.report.cell import PASS
from harness.report.merge import merge
from harness.report.report import Report
from tests.meta.conftest import Run
from tests.meta.reports import cell, of
from tests.meta.tiers import WHOLE

_KERNELS = """
from torch.nn.functional import linear

def right(input, hidden_weights, hidden_bias, output_weights, output_bias):
    return linear(linear(input, hidden_weights, hidden_bias).relu(), output_weights, output_bias)
"""


@pytest.mark.parametrize(
    ("keyword", "expression"),
    [
        ("forward-parity", "forward_parity"),
        ("vjp-parity or sizes", "vjp_parity or sizes"),
        ("not (forward-parity and aten-cpp)", "not (forward_parity and aten-cpp)"),
        ("forward-parity-of-mine", "forward-parity-of-mine"),
        ("", ""),
    ],
)
def test_names_of_properties_become_those_of_tests(keyword: str, expression: str) -> None:
    assert by_tests(keyword, all_properties()) == expression


def test_an_unknown_property_suggests_the_near_one() -> None:
    with pytest.raises(UnknownName, match="unknown property 'forward_parity'; did you mean 'forward-parity'"):
        require_known(["sizes", "forward_parity"], all_properties())


def test_a_file_without_an_option_is_told_what_to_write(tmp_path: Path) -> None:
    file = tmp_path / "ok.py"
    file.write_text("raise RuntimeError('it was imported')\ndef _helper(): ...\ndef mine(): ...\n")
    says = rf"judge was given '{file}', but takes options only: write --candidate OPERATOR={file}:mine"
    with pytest.raises(UsageError, match=rf"{says}; its functions: mine; operators: lltm, mlp"):
        refuse_files([str(SUITE / "test_properties.py"), str(file)], ["mlp", "lltm"])
    refuse_files([str(SUITE / "test_properties.py::test_sizes")], ["mlp"])
    with pytest.raises(
        UsageError, match="judge was given 'lltm', but takes options only: write --operator or --backend"
    ):
        refuse_files(["lltm"], ["mlp"])


@pytest.mark.long(WHOLE)
def test_names_as_tables_print_them_select_and_nothing_but_the_report_is_left(python_in: Run, tmp_path: Path) -> None:
    """And a run that selects nothing, or is told wrongly what to do, leaves the earlier report."""
    (tmp_path / "k.py").write_text(_KERNELS)
    judge = functools.partial(python_in, tmp_path, "-m", "harness", "judge")
    chosen = ["--candidate=mlp=k.py:right", "--dtype=float32", "--device=cpu"]
    assert judge(*chosen, "-k", "forward-parity").returncode == 0
    report = tmp_path / "reports" / "conformance.json"
    found = Report.read(report)
    assert [(each.property, each.verdict) for each in found.cells] == [("forward-parity", PASS)]
    named = judge(*chosen, "--property=drawn-calls", "--property=layouts")
    assert named.returncode == 0, named.stdout
    found = Report.read(report)
    assert [each.property for each in found.cells] == ["drawn-calls", "layouts"]
    (file,) = found.environment["candidates"].items()
    assert file[0] == "right/mlp"
    assert file[1]["source"] == f"mlp={(tmp_path / 'k.py').resolve()}:right"
    assert len(file[1]["sha256"]) == 64
    before = report.read_bytes()
    assert judge(*chosen, "-k", "no-such-property").returncode == pytest.ExitCode.NO_TESTS_COLLECTED
    wrong = judge("k.py")
    assert wrong.returncode == pytest.ExitCode.USAGE_ERROR
    assert "write --candidate OPERATOR=k.py:right" in wrong.stderr
    assert report.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["k.py", "reports"]
    assert [path.name for path in report.parent.iterdir()] == ["conformance.json"]


def test_reports_of_two_functions_of_one_name_are_not_joined() -> None:
    def judged(source: str, sha256: str | None, **about: str) -> Report:
        return of(cell(**about), candidates={"mine/lltm": {"source": source, "sha256": sha256}})

    one, same = judged("lltm=/a/k.py:mine", "1" * 64), judged("lltm=/b/k.py:mine", "1" * 64, property="layouts")
    other = judged("lltm=/a/k.py:mine", "2" * 64, property="layouts")
    says = (
        r"mine/lltm is lltm=/a/k.py:mine \(sha256 111111111111\) in the one and .* \(sha256 222222222222\) in the other"
    )
    with pytest.raises(UsageError, match=f"cannot be merged: {says}"):
        merge([("a", one), ("b", other)])
    second = {"other/mlp": {"source": None, "sha256": None}}
    joined = merge([("a", one), ("b", same), ("c", of(cell(property="sizes", dtype="float16"), candidates=second))])
    assert list(joined.environment["candidates"]) == ["mine/lltm", "other/mlp"]
