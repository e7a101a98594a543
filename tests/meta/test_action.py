"""The GitHub Action: its bash steps, run here with the inputs as variables, as a runner does it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.rendering.annotations import MOST, SourcePlace, commands
from harness.report.cell import FAIL, NO_EVIDENCE, PASS, Cell
from harness.report.report import Report
from harness.report.suite import KnownProperty, Suite
from tests.meta.conftest import ROOT, environment
from tests.meta.tiers import first_alone

yaml = pytest.importorskip("yaml", reason="PyYAML comes with mkdocs, which `pip install --group docs` brings")

ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
SLOW = """
import torch
from torch import Tensor

def double(x: Tensor) -> Tensor:
    return x * 2

def example():
    return (torch.randn(4, 6),)
"""
FAST = """
import torch

def right(x):
    return x + x


def wrong(x):
    print("::error::not a command")
    return x * 3
"""


@dataclass(frozen=True)
class Done:
    """What the steps of one run left."""

    code: int
    printed: str
    summary: str
    outputs: dict[str, str]
    folder: Path


def _run(folder: Path, path: str, **inputs: str) -> Done:
    """Run the steps that are bash, until one fails; `install` is false, and nothing is uploaded."""
    given = {name: str(about.get("default", "")) for name, about in ACTION["inputs"].items()}
    given |= {name.replace("_", "-"): value for name, value in inputs.items()} | {"install": "false", "artifact": ""}
    files = {name: folder / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    printed, outputs, code = "", {}, 0

    def value(expression: str) -> str:
        kind, _, rest = expression.partition(".")
        return given[rest] if kind == "inputs" else outputs.get(rest.rpartition(".")[2], "")

    for step in STEPS:
        if "if" in step and not _holds(step["if"], value):
            continue
        env = {name: re.sub(r"\$\{\{ (\S+) \}\}", lambda m: value(m[1]), text) for name, text in step["env"].items()}
        env |= {name: str(path) for name, path in files.items()} | {"GITHUB_WORKSPACE": str(folder), "PATH": path}
        script = folder / "step.sh"
        script.write_text(step["run"])
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)]
        done = subprocess.run(
            command, cwd=folder, env=environment(**env), capture_output=True, text=True, check=False, timeout=300
        )
        printed += done.stdout + done.stderr
        found = files["GITHUB_OUTPUT"].read_text() if files["GITHUB_OUTPUT"].exists() else ""
        outputs = dict(line.split("=", 1) for line in found.splitlines())
        code = done.returncode
        if code:
            break
    summary = files["GITHUB_STEP_SUMMARY"]
    return Done(code, printed, summary.read_text() if summary.exists() else "", outputs, folder)


def _holds(condition: str, value: Any) -> bool:
    match = re.fullmatch(r"\$\{\{ (\S+) (==|!=) '(.*)' \}\}", condition)
    assert match, condition
    return (value(match[1]) == match[3]) is (match[2] == "==")


@pytest.fixture
def installed(tmp_path: Path) -> str:
    """PATH with the command that pip would install."""
    return _command(tmp_path, "import sys; from {} import {} as main; sys.exit(main())")


def _command(tmp_path: Path, program: str) -> str:
    entry = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]["lltm-conformance"]
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, text in (("lltm-conformance", program.format(*entry.split(":"))), ("python", "")):
        file = folder / name
        start = f'exec "{sys.executable}" -P -c "{text}" "$@"' if text else f'exec "{sys.executable}" "$@"'
        file.write_text(f"#!/bin/sh\n{start}\n")
        file.chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with a reference and candidates."""
    folder = tmp_path / "repository"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "slow.py").write_text(SLOW)
    (folder / "src" / "fast.py").write_text(FAST)
    return folder


@pytest.mark.parametrize("name", first_alone(["wrong", "right"]))
def test_a_candidate_is_judged_and_drawn(repository: Path, installed: str, name: str) -> None:
    done = _run(
        repository,
        installed,
        candidate=f"src/fast.py:{name}",
        reference="src/slow.py:double",
        example="src/slow.py:example",
        dtypes="float32",
        properties="forward-parity",
        level="values",
    )
    folder = repository / "reports" / "conformance"
    wrong = name == "wrong"
    assert done.code == int(wrong), done.printed
    assert done.outputs == {"exit-code": str(int(wrong)), "report": "reports/conformance/report.json"}
    assert Report.read(folder / "report.json").count(FAIL if wrong else PASS) == 1
    errors = [line for line in done.printed.splitlines() if line.startswith("::error")]
    if wrong:
        assert done.summary.startswith("## ✗ Wrong: values are wrong in float32")
        assert len(errors) == 1
        line = FAST.splitlines().index("def wrong(x):") + 1
        assert errors[0].startswith(f"::error file=src/fast.py,line={line},title=double / wrong%3A forward-parity")
        assert "::output was " in errors[0]
        assert "%0A  - it is 1.5 times what it should be" in errors[0]
    else:
        assert done.summary.startswith("## ✓ Values are right in float32.")
        assert errors == []
    assert {path.name for path in folder.iterdir()} == {
        "report.json",
        "report.html",
        "junit.xml",
        "badge.json",
        "output.txt",
    }
    assert json.loads((folder / "badge.json").read_text())["message"] == ("values wrong" if wrong else "values ✓")


_ECHO = (
    "import sys, json; from {} import {} as main; "
    "print(json.dumps(sys.argv[1:])) or sys.exit(4) if sys.argv[1] == 'judge' else sys.exit(main())"
)


def test_an_input_is_never_read_as_a_command(repository: Path, tmp_path: Path) -> None:
    hostile = "a b;touch x`touch x`$(touch x)\"'\\ *"
    inputs = {
        name.replace("-", "_"): f"{hostile}{number}"
        for number, name in enumerate(ACTION["inputs"])
        if name not in ("install", "artifact", "reports", "dtypes", "properties")
    }
    done = _run(
        repository, _command(tmp_path, _ECHO.replace('"', '\\"')), **inputs, dtypes="float32  bfloat16\nfloat64"
    )
    (line,) = [line for line in done.printed.splitlines() if line.startswith("[")]
    arguments = json.loads(line)
    names = {name.replace("_", "-"): value for name, value in inputs.items()}
    assert "--forward-only" not in arguments, "only the text true switches it on"
    del names["forward-only"]
    for name, value in names.items():
        assert f"--{name}={value}" in arguments
    assert [text for text in arguments if "dtype" in text] == ["--dtype=float32", "--dtype=bfloat16", "--dtype=float64"]
    assert not list(repository.rglob("x"))
    assert done.code == 4
    assert "::error title=conformance::Nothing was judged" in done.printed
    assert done.summary == "### Nothing was judged\n"


def test_a_kernel_for_inference_is_an_input(repository: Path, tmp_path: Path) -> None:
    command = _command(tmp_path, _ECHO.replace('"', '\\"'))
    done = _run(repository, command, candidate="lltm=a.py:f", forward_only="true")
    (line,) = [line for line in done.printed.splitlines() if line.startswith("[")]
    assert "--forward-only" in json.loads(line)


def test_an_empty_input_is_no_option(repository: Path, tmp_path: Path) -> None:
    done = _run(repository, _command(tmp_path, _ECHO.replace('"', '\\"')), candidate="lltm=a.py:f\nmlp=a.py:g")
    (line,) = [line for line in done.printed.splitlines() if line.startswith("[")]
    assert json.loads(line) == [
        "judge",
        "--report=reports/conformance/report.json",
        "--candidate=lltm=a.py:f",
        "--candidate=mlp=a.py:g",
        "--device=cpu",
    ]


def test_what_is_printed_is_no_command_to_the_runner(repository: Path, tmp_path: Path) -> None:
    program = "import sys; print('::error::forged') if sys.argv[1] == 'judge' else None; sys.exit(1)"
    done = _run(repository, _command(tmp_path, program), candidate="lltm=a.py:f")
    lines = done.printed.splitlines()
    stopped = next(n for n, line in enumerate(lines) if line.startswith("::stop-commands::"))
    token = lines[stopped].removeprefix("::stop-commands::")
    assert len(token) > 30
    assert stopped < lines.index("::error::forged") < lines.index(f"::{token}::")


def test_inputs_reach_the_shell_as_variables_alone() -> None:
    for step in STEPS:
        assert "${{" not in step.get("run", "")
    named = {
        name for step in STEPS for text in str(step).split("${{ ") for name in re.findall(r"^inputs\.([\w-]+)", text)
    }
    assert named == set(ACTION["inputs"])


def test_the_suite_is_installed_where_that_is_asked_for() -> None:
    assert STEPS[0]["if"] == "${{ inputs.install == 'true' }}"
    assert STEPS[0]["env"] == {"ACTION_PATH": "${{ github.action_path }}"}
    assert STEPS[0]["run"].endswith('"$ACTION_PATH"')


# Annotations

SUITE = Suite(properties=(KnownProperty("sizes", "", level="values"), KnownProperty("compile", "", level="pytorch")))


def _cell(property: str, verdict: str, reason: str, backend: str = "f") -> Cell:
    return Cell("op", backend, "cpu", "float32", property, verdict, reason)


def _drawn(*cells: Cell) -> list[str]:
    return commands(Report.of(cells, {}, SUITE, "values"), {("op", "f"): SourcePlace("a:b,c.py", 3)}).splitlines()


def test_a_reason_is_one_annotation() -> None:
    (line,) = _drawn(_cell("sizes", FAIL, "50% are wrong\n::warning::forged\r\x1b[31m"))
    assert line == (
        "::error file=a%3Ab%2Cc.py,line=3,title=op / f%3A sizes (float32)::"
        "50%25 are wrong%0A::warning::forged\\x0d\\x1b[31m"
    )


def test_what_is_not_required_is_no_error() -> None:
    assert _drawn(_cell("sizes", PASS, ""), _cell("compile", FAIL, "it is not supported")) == []


def test_an_open_question_is_a_warning_and_a_run_without_a_pass_an_error() -> None:
    error, warning = _drawn(_cell("sizes", NO_EVIDENCE, "nothing was compared"))
    assert error.startswith("::error title=conformance::1 cell of the required levels (values) could not tell")
    assert warning == "::warning file=a%3Ab%2Cc.py,line=3,title=op / f%3A sizes (float32)::nothing was compared"


def test_there_are_no_more_than_github_shows() -> None:
    lines = _drawn(*(_cell("sizes", FAIL, "wrong", f"f{number}") for number in range(30)))
    assert len(lines) == MOST
    assert lines[-1] == "::error title=conformance::and 21 more causes: see the report"
