"""The pages of docs/ are correct: code is in the file that it names, messages are in the harness, the list of
properties is complete, and commands that judge the examples end as the page says."""

from __future__ import annotations

import ast
import importlib.util
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
import torch

from harness.building.build import host_compiler
from harness.errors import Unavailable
from harness.properties import all_properties
from harness.rendering.tables import insert
from harness.report.cell import NOT_RUN, PASS
from harness.report.report import Report
from tests.meta.conftest import ROOT, Run
from tests.meta.tiers import WHOLE, first_alone

_FENCE = re.compile(
    r"^ *```(?P<language>\w+)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<text>.*?)^ *```$", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True)
class Block:
    """A piece of code of a page."""

    page: str
    language: str
    title: str
    text: str


def _blocks() -> Iterator[Block]:
    for page in sorted((ROOT / "docs").glob("*.md")):
        for found in _FENCE.finditer(page.read_text()):
            yield Block(page.name, found["language"], found["title"] or "", found["text"])


BLOCKS = list(_blocks())


def test_code_stands_in_the_file_that_it_names() -> None:
    """A line `...` marks omitted code."""
    quoted = [block for block in BLOCKS if block.title and block.title != "harness"]
    assert len(quoted) > 10
    for block in quoted:
        source = (ROOT / block.title).read_text()
        for part in block.text.split("\n...\n"):
            assert part.strip("\n") in source, f"{block.page}: this is not in {block.title} any more:\n{part}"


def _template(node: ast.AST) -> str:
    """The text with `…` for each inserted value."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(_template(value) if isinstance(value, ast.Constant) else "…" for value in values)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _template(left) + _template(right)
    return "…"


@cache
def _templates() -> tuple[str, ...]:
    found = set()
    for file in (ROOT / "harness").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Constant | ast.JoinedStr | ast.BinOp):
                found.add(_template(node))
    return tuple(found)


def _quoted_messages() -> list[str]:
    messages = [block.text.strip() for block in BLOCKS if block.title == "harness"]
    page = (ROOT / "docs/failures.md").read_text()
    # A line that explains a wrong value, without the numbers of its example.
    lines = re.findall(r"^\| `([^`]+)` \|", page, flags=re.MULTILINE)
    return messages + [line.partition(":")[0] for line in lines]


def _is_written(message: str) -> bool:
    """Whether a text of the harness has the words of the message in the same order."""
    parts = [part.strip() for part in message.split("…") if part.strip(" ()")]
    pattern = re.compile(".*".join(map(re.escape, parts)), re.DOTALL)
    return any(pattern.search(template) for template in _templates())


@pytest.mark.parametrize("message", _quoted_messages())
def test_a_message_that_is_explained_is_one_of_the_harness(message: str) -> None:
    assert _is_written(message), f"no text of harness/ reads {message!r} any more"


def test_a_message_that_nothing_writes_is_noticed() -> None:
    assert not _is_written("… was … at …, but ought to be …")


def test_the_list_of_properties_is_that_of_the_code() -> None:
    rows = [f"| {name} | {held.claim} |" for name, held in sorted(all_properties().items())]
    table = "\n".join(["| property | claim |", "|---|---|", *rows]) + "\n"
    page = (ROOT / "docs/properties.md").read_text()
    assert insert(table, page, "properties") == page, f"docs/properties.md should list:\n{table}"


def test_the_places_of_properties_are_those_of_the_code() -> None:
    rows = [
        f"| {name} | {', '.join(held.dtypes) or 'all'} | {', '.join(held.devices) or 'all'} | {held.why_only} |"
        for name, held in sorted(all_properties().items())
        if held.why_only
    ]
    table = "\n".join(["| property | dtypes | devices | why |", "|---|---|---|---|", *rows]) + "\n"
    page = (ROOT / "docs/properties.md").read_text()
    assert insert(table, page, "places") == page, f"docs/properties.md should have:\n{table}"


def test_sessions_that_pages_name_exist() -> None:
    sessions = set(re.findall(r"^def ([a-z_]+)\(session", (ROOT / "noxfile.py").read_text(), flags=re.MULTILINE))
    sessions |= set(re.findall(r"@nox.session\(name=\"([^\"]+)\"", (ROOT / "noxfile.py").read_text()))
    for page in (ROOT / "docs").glob("*.md"):
        for name in re.findall(r"nox -s \"?([a-z-]+)", page.read_text()):
            assert name in sessions or name.replace("-", "_") in sessions, f"{page.name}: nox -s {name}"


def _commands(example: str, page: str = "verify.md", option: str = "-k") -> list[list[str]]:
    """The commands of a page of docs/ that judge this example with that option, as lists of words."""
    texts = [block.text.replace("\\\n", " ") for block in BLOCKS if (block.page, block.language) == (page, "sh")]
    lines = [line for text in texts for line in text.splitlines() if f"docs/examples/{example}:" in line]
    return [words for words in map(shlex.split, lines) if option in words]


def _lacking(example: str) -> str:
    """Why this machine cannot run the example; empty if it can."""
    if example == "triton_kernel.py" and importlib.util.find_spec("triton") is None:
        return "Triton is not installed: `pip install triton`"
    if example == "cpp_extension.py":
        try:
            host_compiler()
        except Unavailable as error:
            return str(error)
    return ""


@pytest.mark.parametrize("example", first_alone(["first", "wrong_function"]))
def test_the_first_commands_fail_as_the_page_says(example: str, python: Run, tmp_path: Path) -> None:
    (words,) = _commands(f"{example}.py", page="start.md")
    done = python(*words[1:], f"--report={tmp_path / 'report.json'}", "-p", "no:cacheprovider")
    assert done.returncode == 1, done.stdout + done.stderr
    assert _rounded((ROOT / "docs" / "examples" / f"{example}.txt").read_text()) in _rounded(done.stdout)


def _rounded(text: str) -> str:
    """Figures with two digits: a processor with other vector instructions has other last ones."""
    return re.sub(r"\d+\.\d+(e[+-]\d+)?", lambda found: f"{float(found[0]):.2g}", text)


@pytest.mark.long(WHOLE)
def test_the_command_for_a_gpu_holds(python: Run, tmp_path: Path) -> None:
    """Without a GPU the same command is run on the CPU, where current-stream says nothing."""
    (words,) = _commands("rms_norm.py", page="install.md")
    report = tmp_path / "report.json"
    if not torch.cuda.is_available():
        words[words.index("cuda")] = "cpu"
    done = python(*words[1:], f"--report={report}", "-p", "no:cacheprovider")
    assert done.returncode == 0, done.stdout + done.stderr
    assert {"forward-parity", "vjp-parity", "layouts"} <= {cell.property for cell in Report.read(report).cells}


def test_the_command_for_a_kernel_for_inference_holds(python: Run, tmp_path: Path) -> None:
    (words,) = _commands("inference.py", option="--forward-only")
    report = tmp_path / "report.json"
    done = python(*words[1:], f"--report={report}", "-p", "no:cacheprovider")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Gradients were not judged." in done.stdout
    verdicts = {cell.property: cell.verdict for cell in Report.read(report).cells}
    assert (verdicts["forward-parity"], verdicts["gradient-subsets"]) == (PASS, NOT_RUN)


@pytest.mark.parametrize(
    "example", first_alone(["rms_norm.py", "plain_function.py", "cpp_extension.py", "triton_kernel.py"], count=2)
)
def test_an_example_holds_by_the_command_of_its_page(example: str, python: Run, tmp_path: Path) -> None:
    why = _lacking(example)
    if why:
        pytest.skip(why)
    (words,) = _commands(example)
    begin = words.index("python")
    variables = dict(word.split("=", 1) for word in words[:begin])
    report = tmp_path / "report.json"
    # An interrupted build leaves a lock, for which the next build in that folder would wait for ever.
    variables["TORCH_EXTENSIONS_DIR"] = str(tmp_path / "extensions")
    done = python(*words[begin + 1 :], f"--report={report}", "-p", "no:cacheprovider", **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    asked = words[words.index("-k") + 1].replace("_", "-").split(" or ")
    assert {cell.property: cell.verdict for cell in Report.read(report).cells} == dict.fromkeys(asked, PASS)
